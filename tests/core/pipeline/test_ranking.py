"""What to label next: the order of sentences against enumeration, ties, copies, and lines that are read again."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.jit import readonly
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import ranking
from tagsmith.core.pipeline.build import build_model
from tagsmith.core.pipeline.ranking import Measure, Ranking, RankPlan, rank, written

WORDS = "a b c d e".split()
MEASURES: tuple[Measure, ...] = ("probability", "margin", "entropy")
ENOUGH = 1 << 30


def tagger_of(corpus: Corpus, features: FeatureSpec, scale: float = 1.0) -> Tagger:
    """A model of a labelled corpus, with random weights for every feature."""
    compiled = compile_corpus(features.resolve(len(corpus.columns)), corpus)
    problem = compiled.problem
    values = np.zeros((problem.rows, problem.width), np.float32)
    count = len(problem.labels)
    values[:, :count] = np.random.default_rng(5).normal(0, scale, (problem.rows, count))
    return Tagger(build_model(compiled, Weights(problem, readonly(values.reshape(-1), np.float32))))


def read(lines: Sequence[object], *, labelled: bool = False) -> Corpus:
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return formats.read([data], "ndjson", max_line_bytes=1 << 20, options={"labelled": labelled})


def corpus_of(sentences: Sequence[Sequence[str]]) -> Corpus:
    return read([{"tokens": list(words)} for words in sentences])


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    lines = "".join(f"{word} {label}\n" for word, label in zip(WORDS, "XYZYX", strict=True))
    corpus = read_conll([lines.encode()], max_line_bytes=100)
    return tagger_of(corpus, FeatureSpec(templates="U:%x[0,0]\nU1:%x[-1,0]\nB"))


@pytest.fixture(scope="module")
def sentences() -> list[list[str]]:
    """Distinct sentences of one to five words."""
    rng = np.random.default_rng(3)
    drawn = {tuple(rng.choice(WORDS, rng.integers(1, 6)).tolist()) for _ in range(60)}
    return [list(each) for each in sorted(drawn)]


def ranked(tagger: Tagger, corpus: Corpus, **changes: Any) -> Ranking:
    plan = {"by": "probability", "top": 500, "diverse": False, "per_token": True, **changes}
    return finished(rank(tagger, corpus, RankPlan(**plan), ENOUGH))


def measured(tagger: Tagger, words: list[str], by: Measure, *, per_token: bool) -> float:
    """A measure by its definition, over the probabilities of all labellings of a sentence."""
    every = decode(tagger, tagger.code([words]), DecodingOptions(nbest=len(tagger.labels) ** len(words)))
    p = every.path_probabilities[0]
    assert p.sum() == pytest.approx(1)
    if by == "margin":
        return float(np.log(p[0]) - np.log(p[1]))
    found = np.log(p[0]) if by == "probability" else -(p * np.log(p)).sum()
    return float(found / len(words) if per_token else found)


@pytest.mark.parametrize("by", MEASURES)
@pytest.mark.parametrize("per_token", [True, False])
def test_the_least_sure_sentences_come_first(
    tagger: Tagger, sentences: list[list[str]], by: Measure, per_token: bool
) -> None:
    expected = [measured(tagger, words, by, per_token=per_token) for words in sentences]
    keys = [-each if by == "entropy" else each for each in expected]
    order = sorted(range(len(sentences)), key=lambda i: (round(keys[i], 9), i))
    found = ranked(tagger, corpus_of(sentences), by=by, per_token=per_token)
    assert found.indices.tolist() == order
    np.testing.assert_allclose(found.scores, [expected[i] for i in order], atol=1e-9)
    top = ranked(tagger, corpus_of(sentences), by=by, per_token=per_token, top=7)
    assert top.indices.tolist() == order[:7]


def test_without_division_long_sentences_come_first(tagger: Tagger, sentences: list[list[str]]) -> None:
    lengths = np.array([len(words) for words in sentences])
    means = [
        lengths[ranked(tagger, corpus_of(sentences), per_token=per_token, top=20).indices].mean()
        for per_token in (False, True)
    ]
    assert means[0] > means[1]


def test_the_tags_are_those_of_the_model(tagger: Tagger, sentences: list[list[str]]) -> None:
    found = ranked(tagger, corpus_of(sentences), top=10)
    lines = [json.loads(line) for line in b"".join(written(found)).splitlines()]
    assert [line["tags"] for line in lines] == tagger.tag([sentences[line["index"]] for line in lines])
    assert [line["tokens"] for line in lines] == [sentences[line["index"]] for line in lines]
    assert [line["score"] for line in lines] == np.round(found.scores, 6).tolist()


@pytest.mark.parametrize("diverse", [False, True])
def test_equal_sentences_are_listed_once_as_the_first_of_them(
    tagger: Tagger, sentences: list[list[str]], diverse: bool
) -> None:
    found = ranked(tagger, corpus_of([*sentences, *reversed(sentences)]), diverse=diverse)
    assert found.distinct == len(sentences)
    assert (found.indices < len(sentences)).all()
    assert np.unique(found.indices).size == found.indices.size


def test_of_equal_scores_the_first_in_the_corpus_comes_first(tagger: Tagger) -> None:
    """The model knows none of these words, so it is equally sure about them."""
    found = ranked(tagger, corpus_of([["z3"], ["z1"], ["z2"]]))
    assert found.indices.tolist() == [0, 1, 2]
    assert len(set(found.scores.tolist())) == 1


def test_near_copies_are_left_out_of_a_diverse_list(tagger: Tagger) -> None:
    copies = [["a", "b", "c", "d", f"n{i}"] for i in range(50)]
    corpus = corpus_of([*copies, ["e", "e"], ["d", "a", "d"]])
    assert ranked(tagger, corpus, top=3, diverse=True).tagged.sentences == 3
    assert ranked(tagger, corpus, diverse=True).tagged.sentences == 3
    assert ranked(tagger, corpus).tagged.sentences == 52


@pytest.mark.parametrize("by", MEASURES)
def test_the_bytes_do_not_depend_on_the_size_of_slices(
    tagger: Tagger, sentences: list[list[str]], by: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = corpus_of(sentences)
    whole = b"".join(written(ranked(tagger, corpus, by=by, diverse=True)))
    monkeypatch.setattr(ranking, "SLICE_TOKENS", 3)
    steps = rank(tagger, corpus, RankPlan(by=by, top=500, diverse=True, per_token=True), ENOUGH)
    told: list[float] = []
    sliced = finished(steps, told.append)
    assert b"".join(written(sliced)) == whole
    assert len(told) > len(sentences) / 3
    assert all(before <= after for before, after in pairwise(told))
    assert 0 < told[0] < told[-1] <= 1


COLUMNS = {"tokens": [["a", "X1"], ["b", "Y1"], ["c", "X1"]], "tags": ["X", "Y", "X"]}
BAGS = {"tokens": [{"w": "a", "x": 0.1}, {"w": "b", "x": 2.5}, {"c": True}], "tags": ["X", "Y", "X"]}


@pytest.mark.parametrize("line", [COLUMNS, BAGS], ids=["columns", "attributes"])
def test_lines_are_read_again_without_change(line: dict[str, Any]) -> None:
    others = [{"tokens": line["tokens"][::-1], "tags": ["Y", "X", "Y"]}, {"tokens": line["tokens"][:1]}]
    labelled = read([line, others[0]], labelled=True)
    tagger = tagger_of(labelled, FeatureSpec())
    corpus = read([line, *others])
    found = ranked(tagger, corpus)
    data = b"".join(written(found))
    again = formats.read([data], "ndjson", max_line_bytes=1 << 20)
    assert again.labels is not None
    assert b"".join(formats.write(again, "ndjson")) == b"".join(formats.write(found.tagged, "ndjson"))
    # The same model says the same about what it has read again.
    once_more = ranked(tagger, again)
    assert once_more.scores.tolist() == found.scores.tolist()


def test_a_margin_without_a_second_labelling_is_null_and_comes_last() -> None:
    corpus = read_conll([b"a X\nb X\n"], max_line_bytes=100)
    tagger = tagger_of(corpus, FeatureSpec(templates="U:%x[0,0]\nB"))
    found = ranked(tagger, corpus_of([["a"], ["b", "a"]]), by="margin")
    assert [json.loads(line)["score"] for line in b"".join(written(found)).splitlines()] == [None, None]


def test_a_sentence_too_long_for_the_memory_is_refused(tagger: Tagger) -> None:
    plan = RankPlan(by="entropy", top=5, diverse=False, per_token=True)
    with pytest.raises(Invalid, match="too long") as raised:
        finished(rank(tagger, corpus_of([["a"] * 5000]), plan, 1 << 20))
    assert (raised.value.code, raised.value.faults[0].pointer) == ("too_large", "/corpus")
    assert "5,000 tokens" in raised.value.faults[0].reason


def test_a_corpus_with_too_few_columns_is_refused_as_in_tagging() -> None:
    two = read_conll([b"a P X\nb Q Y\n"], max_line_bytes=100)
    tagger = tagger_of(two, FeatureSpec(templates="U:%x[0,1]\nB"))
    with pytest.raises(Invalid) as raised:
        ranked(tagger, corpus_of([["a"]]))
    assert raised.value.code == "missing_column"
