"""The page about features agrees with the code."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from benchmarks import common, presets
from tagsmith.app.features import request as requests
from tagsmith.app.features import service
from tagsmith.core.features.columns.derived import Derived
from tagsmith.core.features.presets import Preset
from tagsmith.core.features.spec import FeatureSpec

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "features.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```json\n(.*?)```\n```text\n(.*?)```", PAGE, re.DOTALL)
#: `kind`, meaning, and an optional example: parameters, a value and its result.
KIND = re.compile(r"^\| `([a-z-]+)` \| .+? \| (?:(?:`(\w+)` (.+?): )?`(.+?)` → `(.+?)` )?\|$", re.MULTILINE)


def test_every_example_stands_with_its_answer() -> None:
    assert len(EXAMPLES) == PAGE.count("```json") == PAGE.count("```text") == 7


@pytest.mark.parametrize(("body", "answer"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_give_the_features_that_the_page_shows(body: str, answer: str) -> None:
    request = requests.parse(json.loads(body))
    sources = service.PreviewSources([], None, 1 << 20)
    made = service.read_preview([], request, len(request.rows[0]), sources)
    shown = [re.split(r" {2,}", line) for line in answer.splitlines()]
    words = [row[0] for row in request.rows]
    if "head." in body:
        words = [f"{head} → {word}" for word in words for head in ("root", *words) if head != word]
    assert [[word, *names] for word, names in zip(words, made.features, strict=True)] == shown


def test_the_table_has_every_kind_of_derived_column_with_an_example_that_holds() -> None:
    rows = {row[0]: row[1:] for row in KIND.findall(PAGE)}
    assert list(rows) == list(get_args(Derived.model_fields["kind"].annotation))
    for kind, (field, given, value, expected) in rows.items():
        if not value:
            assert kind in ("first", "substrings")
            continue
        parameter: dict[str, Any] = {field: int(given) if field == "n" else given.strip("`")} if field else {}
        assert Derived.model_validate({"kind": kind, **parameter}).values([value]) == [expected]


def test_the_table_has_every_field_of_the_spec_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| ", PAGE.partition("## Columns")[0], re.MULTILINE)
    assert dict(rows) == {
        name: json.dumps(value) for name, value in FeatureSpec().model_dump(mode="json").items()
    }


def test_every_preset_has_its_section_with_the_recorded_figures() -> None:
    page = (DOCS / "presets.md").read_text(encoding="utf-8")
    assert page == presets.rewritten(page, common.recorded("presets"))
    assert re.findall(r"^## `([a-z-]+)`$", page, re.MULTILINE) == list(get_args(Preset))
