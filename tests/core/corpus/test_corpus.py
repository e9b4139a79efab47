import numpy as np
import pytest

from tagsmith.core.base.arrays import numbered
from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.vocabulary import Vocabulary
from tests.core.corpus.samples import rows_of


def corpus_of(sentences: int) -> Corpus:
    text = "".join("".join(f"w{i}.{j} L{i % 3}\n" for j in range(1 + i % 4)) + "\n" for i in range(sentences))
    return read_conll([text.encode()], max_line_bytes=1000)


def test_a_subset_has_the_sentences_asked_for_in_that_order() -> None:
    corpus = corpus_of(10)
    chosen = corpus.subset([7, 0, 7])
    assert rows_of(chosen) == [rows_of(corpus)[i] for i in (7, 0, 7)]
    assert chosen.columns[0].vocabulary is corpus.columns[0].vocabulary
    assert chosen.labels is not None
    assert chosen.labels.vocabulary is corpus.labels.vocabulary


def test_an_empty_subset_has_no_tokens() -> None:
    nothing = corpus_of(3).subset([])
    assert (nothing.sentences, nothing.tokens) == (0, 0)


def test_a_subset_of_missing_sentences_is_refused() -> None:
    for index in (-1, 3):
        with pytest.raises(IndexError):
            corpus_of(3).subset([index])


def test_a_split_parts_the_sentences_and_keeps_their_order() -> None:
    corpus = corpus_of(200)
    train, dev = corpus.split(0.1, seed=5)
    assert (train.sentences, dev.sentences) == (180, 20)
    everything = rows_of(corpus)
    places = [[everything.index(sentence) for sentence in rows_of(part)] for part in (train, dev)]
    assert sorted(places[0] + places[1]) == list(range(200))
    assert places[0] == sorted(places[0])
    assert places[1] == sorted(places[1])


def test_a_split_depends_on_the_seed_alone() -> None:
    picks = [rows_of(corpus_of(200).split(0.1, seed)[1]) for seed in (1, 1, 2, -1)]
    assert picks[0] == picks[1]
    assert picks[0] != picks[2] != picks[3]
    # Fixed for all time: a model trained again from its spec must see the same sentences.
    assert [int(s[0][0][1:].split(".")[0]) for s in picks[0]][:5] == [20, 21, 25, 28, 55]


def test_a_split_leaves_something_on_both_sides() -> None:
    for fraction in (0.001, 0.999):
        train, dev = corpus_of(2).split(fraction, seed=1)
        assert (train.sentences, dev.sentences) == (1, 1)


def test_one_sentence_cannot_be_split() -> None:
    with pytest.raises(Invalid) as caught:
        corpus_of(1).split(0.5, seed=1)
    assert caught.value.code == "corpus_too_small"


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, float("nan")])
def test_a_fraction_outside_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        corpus_of(4).split(fraction, seed=1)


@pytest.mark.parametrize(
    ("ids", "offsets"),
    [([0, 1], [0, 1]), ([0, 2], [0, 2]), ([-1, 0], [0, 2]), ([0, 1], [0, 2, 1, 2]), ([0, 1], [1, 2])],
)
def test_ids_and_offsets_that_do_not_fit_are_refused(ids: list[int], offsets: list[int]) -> None:
    column = Column("0", Vocabulary.from_strings(["a", "b"]), np.array(ids, np.int32))
    with pytest.raises(ValueError, match=r"ids|id outside|offsets"):
        Corpus((column,), None, np.array(offsets, np.int64))


def test_columns_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        corpus_of(2).columns[0].ids[0] = 1


def test_codes_are_numbered_in_order_of_first_sight() -> None:
    codes = np.random.default_rng(1).zipf(1.3, 200_000) % 5000
    found, ids = numbered(codes)
    assert found.tolist() == list(dict.fromkeys(codes.tolist()))
    assert (found[ids] == codes).all()
    assert numbered(np.empty(0, np.int64))[0].size == 0
