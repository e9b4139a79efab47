"""The probability of a span, against the sum over every labelling that has the span, in every coding of labels."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.evaluate.spans import TokenSpan, spans_of
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.inference.constraints import Allowed
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.constraints import Constraints, allowed_by
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.tagger import Coded, Tagger
from tagsmith.core.model.use.text import tag_text
from tagsmith.core.pipeline.build import build_model

LABELS = {
    "iob1 or iob2": ["O", "I-X", "B-X", "B-Y", "I-Y"],
    "bioes": ["O", "B-X", "I-X", "E-X", "S-X", "S-Y"],
    "bilou": ["O", "B-X", "I-X", "L-X", "U-X"],
    "bmes": ["B", "M", "E", "S"],
    "untyped": ["O", "B", "I"],
    "ioe": ["O", "I-X", "E-X", "I-Y", "E-Y"],
    "brackets": ["O", "[", "]"],
    "classes": ["N", "V", "O"],
}
TEMPLATES = {"plain": "U:%x[0,0]\nB", "rich edges": "U:%x[0,0]\nB\nB1:%x[0,0]"}
WORDS = "a b c d e"


def _tagger(labels: Sequence[str], templates: str, scale: float, seed: int) -> Tagger:
    """A model with random weights for every feature."""
    words = WORDS.split()
    lines = [f"{words[i % len(words)]} {label}\n" for i, label in enumerate([*labels, *reversed(labels)])]
    corpus = read_conll(["".join(lines).encode() + b"\n"], max_line_bytes=100)
    compiled = compile_corpus(FeatureSpec(templates=templates).resolve(1), corpus)
    problem = compiled.problem
    values = np.zeros((problem.rows, problem.width), np.float32)
    count = len(problem.labels)
    values[:, :count] = np.random.default_rng(seed).normal(0, scale, (problem.rows, count))
    return Tagger(build_model(compiled, Weights(problem, readonly(values.reshape(-1), np.float32))))


def _summed(tagger: Tagger, coded: Coded, allowed: Allowed | None) -> dict[TokenSpan, float]:
    """The probability of every span, from the n-best list of all labellings."""
    n, labels = int(coded.offsets[-1]), tagger.labels
    every = decode(tagger, coded, DecodingOptions(nbest=len(labels) ** n), allowed)
    count = int(every.path_counts[0])
    found: dict[TokenSpan, float] = {}
    for row, probability in zip(every.paths[:count], every.path_probabilities[0, :count], strict=True):
        for span in spans_of(tagger.named(row), labels):
            found[span] = found.get(span, 0.0) + probability
    return found


@pytest.mark.parametrize("coding", LABELS)
@pytest.mark.parametrize("templates", TEMPLATES)
@pytest.mark.parametrize("scale", [1.0, 40.0], ids=["by scaling", "by logarithms"])
def test_a_probability_is_the_sum_over_all_labellings_with_the_span(
    coding: str, templates: str, scale: float
) -> None:
    checked = 0
    for seed in range(6):
        tagger = _tagger(LABELS[coding], TEMPLATES[templates], scale, seed)
        coded = tagger.code([WORDS.split()[: 3 + seed % 2]])
        expected = _summed(tagger, coded, None)
        found = decode(tagger, coded, DecodingOptions(spans=True))
        spans = spans_of(tagger.named(found.labels), tagger.labels)
        for span in spans:
            assert found.span_probabilities[span.start] == pytest.approx(expected[span], rel=1e-6, abs=1e-12)
        starts = [span.start for span in spans]
        assert np.count_nonzero(np.delete(found.span_probabilities, starts)) == 0
        checked += len(spans)
    assert checked >= 5


def test_every_span_of_every_labelling_has_the_probability_of_enumeration() -> None:
    tagger = _tagger(LABELS["iob1 or iob2"], TEMPLATES["plain"], 1.0, 7)
    labels = tagger.labels
    coded = tagger.code([WORDS.split()[:3]])
    expected = _summed(tagger, coded, None)
    assert len(expected) == 12  # spans within three tokens, of two types
    seen = set()
    for tags in product(labels, repeat=3):
        allowed = allowed_by(Constraints(tags=[tags]), labels, coded.offsets)
        fixed = decode(tagger, coded, DecodingOptions(), allowed).labels
        seen |= set(spans_of(tagger.named(fixed), labels))
    assert seen == set(expected)


def test_under_constraints_a_probability_is_conditional_on_them() -> None:
    tagger = _tagger(LABELS["iob1 or iob2"], TEMPLATES["plain"], 1.0, 3)
    coded = tagger.code([WORDS.split()[:4]])
    allowed = allowed_by(
        Constraints(valid="iob2", tags=[[None, "B-X", None, None]]), tagger.labels, coded.offsets
    )
    expected = _summed(tagger, coded, allowed)
    found = decode(tagger, coded, DecodingOptions(spans=True), allowed)
    spans = spans_of(tagger.named(found.labels), tagger.labels)
    assert any(span.start == 1 for span in spans)
    for span in spans:
        assert found.span_probabilities[span.start] == pytest.approx(expected[span], rel=1e-6)


def test_sentences_of_one_call_do_not_affect_each_other() -> None:
    tagger = _tagger(LABELS["bioes"], TEMPLATES["rich edges"], 1.0, 2)
    sentences = [["a"], [], ["b", "c"], ["a", "b", "c", "d"]]
    together = decode(tagger, tagger.code(sentences), DecodingOptions(spans=True)).span_probabilities
    apart = [
        decode(tagger, tagger.code([each]), DecodingOptions(spans=True)).span_probabilities
        for each in sentences
    ]
    np.testing.assert_array_equal(together, np.concatenate(apart))


def test_the_probability_of_a_span_is_at_most_that_of_each_of_its_tags() -> None:
    tagger = _tagger(LABELS["iob1 or iob2"], TEMPLATES["plain"], 2.0, 5)
    coded = tagger.code([WORDS.split()])
    found = decode(tagger, coded, DecodingOptions(spans=True, distributions=True))
    for span in spans_of(tagger.named(found.labels), tagger.labels):
        kind = [i for i, label in enumerate(tagger.labels) if label.endswith(f"-{span.type}")]
        of_type = found.distributions[span.start : span.stop, kind].sum(axis=1)
        assert found.span_probabilities[span.start] <= of_type.min() + 1e-6


def test_a_text_has_spans_with_their_text_and_probability() -> None:
    tagger = _tagger(LABELS["iob1 or iob2"], TEMPLATES["plain"], 2.0, 5)
    tagged = tag_text(tagger, " a  b\nc d")
    assert tagged.sentences == [(0, 2), (2, 4)]
    assert [tagged.text[a:b] for a, b in tagged.offsets] == tagged.tokens == ["a", "b", "c", "d"]
    assert tagged.spans
    for span in tagged.spans:
        assert tagged.text[span.begin : span.end] == span.text
        assert tagged.offsets[span.start][0] == span.begin
        assert tagged.offsets[span.stop - 1][1] == span.end
        assert 0 < span.probability <= 1
