"""The reference pages are complete: `python -m tests.docs.reference` would change nothing."""

import ast
import re
from pathlib import Path

import pytest

from tagsmith.app.metrics import names
from tagsmith.core.base import errors
from tagsmith.core.service.settings import PREFIX, Settings
from tests.docs import codes, commands, reference

WRITE = "run `python -m tests.docs.reference`"


@pytest.mark.parametrize(
    "name", ["settings.md", "metrics.md", "errors.md", "command-line.md", "http.md", "arc-templates.md"]
)
def test_a_reference_page_is_up_to_date(name: str) -> None:
    path = reference.DOCS / name
    assert path.read_text(encoding="utf-8") == reference.pages()[path], WRITE


def test_every_command_and_option_has_a_sentence() -> None:
    for name, command in commands.every_command().items():
        assert (command.help or "").strip(), name
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert parameter.help, f"{name} {parameter.opts}"


def test_every_setting_has_a_row_with_a_sentence() -> None:
    rows = [
        line for line in reference.SETTINGS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    assert [row.split("`")[1] for row in rows] == [PREFIX + name.upper() for name in Settings.model_fields]
    assert all(
        field.description and field.description.endswith(".") for field in Settings.model_fields.values()
    )


def test_every_metric_has_a_row_with_a_sentence() -> None:
    rows = [
        line for line in reference.METRICS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    assert [row.split("`")[1].split("{")[0] for row in rows] == list(names.METRICS)
    assert all(spec.help.endswith(".") for spec in names.METRICS.values())


def test_every_error_code_has_a_row_with_a_sentence() -> None:
    described = reference.sentences(reference.ERRORS.read_text(encoding="utf-8"))
    found = codes.find()
    assert described.keys() == found.keys(), WRITE
    without = [name for name, sentence in described.items() if not sentence.text.endswith(".")]
    assert without == [], "write a sentence in docs/errors.md"
    # Codes that no response can have are not among those of responses.
    assert [
        name
        for name, code in found.items()
        if not code.statuses and described[name].heading == reference.PROBLEMS
    ] == []


def test_every_type_of_a_fault_is_described() -> None:
    page = reference.ERRORS.read_text(encoding="utf-8").split("## Types of faults")[1].split("\n## ")[0]
    assert re.findall(r"^- `(\w+)`: .+\.$", page, re.MULTILINE) == list(errors.FaultType)


SOURCE = """
class Busy(Conflict):
    default_code = "busy"

def plain():
    raise Invalid("x", code="plain_code")

def default():
    raise Busy("x")

def chosen(flag):
    raise NotFound("x", code="one" if flag else "two")

def assigned(flag):
    if flag:
        message, code = "x", "three"
    else:
        code = "four"
    raise Invalid(message, code=code)

def helper(faults, code):
    return TooLarge("x", faults, code=code)

def calls():
    raise helper([], "five")

def again():
    try:
        plain()
    except Invalid as error:
        raise Invalid("x", code=error.code) from None

def responds(scope):
    return problem_response(scope, 418, "teapot", "x")

FAILED = {"code": "lost", "message": "x"}
"""


def found_in(source: str) -> set[tuple[str, int | None]]:
    base = ast.parse(Path(errors.__file__).read_text(encoding="utf-8"))
    tree = ast.parse(source)
    return set(codes.Module(tree, codes.Classes([base, tree])).codes())


def test_codes_are_found_however_they_are_given() -> None:
    assert found_in(SOURCE) == {
        ("plain_code", 422), ("busy", 409), ("one", 404), ("two", 404), ("three", 422), ("four", 422), ("five", 413),
        ("teapot", 418), ("lost", None),
    }  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        'raise Invalid("x", code=f"new_{pattern}")',
        'raise Invalid("x", code=table[0])',
        'raise Invalid("x", code=compute())',
    ],
)
def test_a_code_that_cannot_be_found_fails(line: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        found_in(f"def function(table, pattern):\n    {line}\n")
