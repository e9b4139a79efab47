"""Numbers at the very edge of what a spec allows: training ends well, or in an error that says what is wrong."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from core import specs
from core.corpus import conll
from core.corpus.corpus import Corpus
from core.corpus.generate import generate
from core.errors import TagsmithError
from core.learn.loop import train
from core.learn.registry import EXAMPLES
from core.learn.schedule import Schedule
from core.steps import finished

#: Which makes a run long, not odd.
PASSES = "passes"
WORDS = {"templates": "U00:%x[0,0]\nB"}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return conll.read_conll(generate("references", 12, 1), max_line_bytes=1000)


def edges(schema: Any) -> Iterator[float]:
    """The least and the largest number of a field."""
    for choice in schema.get("anyOf", [schema]):
        if "minimum" in choice:
            yield choice["minimum"]
        if "exclusiveMinimum" in choice:
            yield math.nextafter(choice["exclusiveMinimum"], math.inf)
        if "maximum" in choice:
            yield choice["maximum"]
        if "exclusiveMaximum" in choice:
            yield math.nextafter(choice["exclusiveMaximum"], -math.inf)


def odd(kind: type[Any]) -> list[dict[str, Any]]:
    """Each number of a spec in turn at each of its edges."""
    properties = kind.model_json_schema()["properties"]
    return [{name: edge} for name, schema in properties.items() if name != PASSES for edge in edges(schema)]


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.model_fields["kind"].default)
def test_no_number_that_a_spec_allows_breaks_a_trainer(corpus: Corpus, kind: type[Any]) -> None:
    base = {"kind": kind.model_fields["kind"].default}
    cases = odd(kind)
    if "schedule" in kind.model_fields:
        cases += [{"schedule": each} for each in odd(Schedule)]
    for case in cases:
        trainer = {**base, PASSES: 7, **case}
        posted = {"kind": "train", "model": "m", "corpus": "crp_x", "features": WORDS, "trainer": trainer}
        try:
            learned = finished(train(specs.parse_job(posted), corpus, None))
        except TagsmithError:
            continue
        assert math.isfinite(learned.objective), case
