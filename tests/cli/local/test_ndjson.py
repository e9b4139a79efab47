"""NDJSON with faults: a line that cannot be tagged has an error, a line that cannot be read ends the command."""

import json
from typing import Any

import pytest

from tests.cli.command import CommandRunner


def test_tokens_and_texts_of_other_types_are_refused(run: CommandRunner) -> None:
    wrong: list[Any] = [{"text": each} for each in (None, 5, [], ["a", "b"], {})]
    wrong += [{"tokens": each} for each in (None, [1], 3, "Anna lives", {}, {"a": "b"}, [["a"], "b"], [[1]])]
    wrong += [[1]]
    ran = run("tag", "--local", "m", stdin="\n".join(map(json.dumps, [*wrong, {"text": "Ada"}])))
    assert (ran.code, ran.err) == (1, "14 lines were not tagged. See `error` in the output.\n")
    made = [json.loads(line) for line in ran.out.splitlines()]
    assert ["error" in each for each in made] == [True] * 14 + [False]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"text": "a\\ud800b"}', "Line 2 of the input has half of a surrogate pair"),
        ('{"text": "a"},', "Line 2 of the input is not valid JSON"),
        ("5", "Line 2 of the input must be an object with text or tokens."),
    ],
)
def test_a_line_that_cannot_be_read_is_named(run: CommandRunner, line: str, says: str) -> None:
    ran = run("tag", "--local", "m", stdin='{"text": "Ada \\ud83d\\ude00"}\n' + line)
    assert ran.code == 2
    assert ran.err.startswith(says)


def test_an_object_with_a_fault_in_the_first_line_is_not_text(run: CommandRunner) -> None:
    ran = run("tag", "--local", "m", stdin='{"text": "Ada wrote"},\n{"text": "Grace"},\n')
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Line 1 of the input is not valid JSON: Extra data")
