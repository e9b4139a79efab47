"""Numbers at the very edge of what a spec allows: training ends well, or in an error that says what is wrong."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.jobs import kinds
from tagsmith.core.learn.trainers.registry import EXAMPLES
from tagsmith.core.learn.trainers.sgd.schedule import Schedule
from tests.training import train

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
            learned = finished(train(kinds.parse_job(posted), corpus, None))
        except TagsmithError:
            continue
        assert math.isfinite(learned.objective), case
