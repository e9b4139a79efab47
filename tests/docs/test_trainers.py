"""The trainer pages agree with the specs of the trainers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import measured
from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.registry import SPECS

PAGES = Path(__file__).parents[2] / "docs" / "trainers"
#: A row of a table of parameters: name, default, range, meaning.
ROW = re.compile(r"^\| `([A-Za-z0-9_.]+)` \| (.+?) \| (.+?) \| .+ \|$", re.MULTILINE)

#: The range of a stage that is nearly any trainer.
ANY_OTHER = "a spec of any trainer except `two-stage` and this one"


def kind_of(spec: type[TrainerSpec]) -> str:
    return str(spec.model_fields["kind"].default)


def page_of(spec: type[TrainerSpec]) -> str:
    return (PAGES / f"{kind_of(spec)}.md").read_text(encoding="utf-8")


def rows(
    schema: dict[str, Any], defaults: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Yield the expected table rows: name, default and range of each field."""
    for name, field in schema["properties"].items():
        inner = schema.get("$defs", {}).get(field.get("$ref", "").rpartition("/")[2], {})
        if inner.get("title") == "Schedule":
            yield from rows(inner, defaults[name], f"{name}.")
        elif inner:
            kind = inner["properties"]["kind"]["const"]
            own = {each: inner["properties"][each].get("default") for each in inner["properties"]}
            changed = {each: value for each, value in defaults[name].items() if value != own[each]}
            changed = {each: value for each, value in changed.items() if not isinstance(value, dict)}
            yield prefix + name, f"`{json.dumps(changed)}`", f"a spec of [`{kind}`]({kind}.md)"
        elif "oneOf" in field:
            yield prefix + name, f'`{{"kind": "{defaults[name]["kind"]}"}}`', ANY_OTHER
        elif prefix or name != "kind":
            yield prefix + name, f"`{json.dumps(defaults[name])}`", range_of(field)


def range_of(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(range_of(each) for each in field["anyOf"])
    if field.get("type") == "null":
        return "`null`"
    if field.get("type") == "boolean":
        return "`true`, `false`"
    if "additionalProperties" in field:
        return f"a number per label, {range_of(field['additionalProperties'])}"
    if "const" in field or "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field.get("enum", [field.get("const")]))
    low = f"{field['minimum'] if 'minimum' in field else field['exclusiveMinimum']:,g}"
    high = f"{field['maximum']:,.0f}" if "maximum" in field else f"{field['exclusiveMaximum']:,g}"
    if "minimum" in field and "maximum" in field:
        return f"{'integer, ' * (field['type'] == 'integer')}{low} to {high}"
    return f"{low} {'<=' if 'minimum' in field else '<'} x {'<=' if 'maximum' in field else '<'} {high}"


@pytest.mark.parametrize("spec", SPECS, ids=kind_of)
def test_the_table_of_parameters_has_every_field_with_its_default_and_range(spec: type[TrainerSpec]) -> None:
    expected = list(rows(spec.model_json_schema(), spec().model_dump(mode="json")))
    section = page_of(spec).split("\n## Parameters\n")[1].split("\n## ")[0]
    assert sorted(ROW.findall(section)) == sorted(expected)


@pytest.mark.parametrize("spec", SPECS, ids=kind_of)
def test_every_page_has_its_sections_and_is_in_the_list(spec: type[TrainerSpec]) -> None:
    kind, page = kind_of(spec), page_of(spec)
    assert page.startswith(f"# `{kind}`")
    sections = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert sections[:5] == ["Objective", "When to choose it", "Parameters", "Memory", "Papers"]
    assert f"({kind}.md)" in (PAGES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [kind_of(spec) for spec in SPECS])
def test_the_measured_section_quotes_the_recorded_results(kind: str) -> None:
    page = (PAGES / f"{kind}.md").read_text(encoding="utf-8")
    assert page == measured.rewritten(page, kind), "results are newer: run `python -m benchmarks.measured`"
