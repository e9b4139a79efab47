"""Codings of chunks: recognised, checked and changed into each other."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.labels.codings import LabelCoding, check_labels, convert, recode
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.evaluate.spans import TokenSpan, spans_of
from tests.core.corpus.samples import rows_of

CODINGS: tuple[LabelCoding, ...] = get_args(LabelCoding)
TYPES = ("NP", "VP", "a-b", "")

#: A sentence as chunks: (type or None for outside, length).
sentences = st.lists(
    st.lists(st.tuples(st.sampled_from([None, *TYPES]), st.integers(1, 4)), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


def label(tag: str, kind: str) -> str:
    return f"{tag}-{kind}" if kind else tag


def literal(chunks: Sequence[tuple[str | None, int]], coding: LabelCoding) -> list[str]:
    """Chunks as labels, by the table of the module, a chunk at a time."""
    said: list[str] = []
    previous: str | None = None  # type of a chunk that ends right before
    for kind, length in chunks:
        if kind is None:
            said += ["O"] * length
            previous = None
            continue
        tags = {
            "iob1": ["B" if previous == kind else "I", *"I" * (length - 1)],
            "iob2": ["B", *"I" * (length - 1)],
            "bioes": ["S"] if length == 1 else ["B", *"I" * (length - 2), "E"],
            "bilou": ["U"] if length == 1 else ["B", *"I" * (length - 2), "L"],
            "bmes": ["S"] if length == 1 else ["B", *"M" * (length - 2), "E"],
        }[coding]
        said += [label(tag, kind) for tag in tags]
        previous = kind
    return said


def corpus_of(labels: Sequence[Sequence[str]]) -> Corpus:
    flat = [each for sentence in labels for each in sentence]
    names = list(dict.fromkeys(flat))
    ids = np.array([names.index(each) for each in flat], np.int32)
    offsets = np.cumsum([0, *map(len, labels)])
    words = Column("0", Vocabulary.from_strings(["w"]), np.zeros(len(flat), np.int32))
    return Corpus((words,), Column("label", Vocabulary.from_strings(names), ids), offsets)


def labels_of(corpus: Corpus) -> list[list[str]]:
    return [[row[-1] for row in sentence] for sentence in rows_of(corpus)]


@settings(max_examples=150, deadline=None)
@given(sentences, st.sampled_from(CODINGS), st.sampled_from(CODINGS))
def test_chunks_are_the_same_labels_in_each_coding_as_if_written_one_by_one(
    chunks: list[list[tuple[str | None, int]]], source: LabelCoding, target: LabelCoding
) -> None:
    corpus = corpus_of([literal(each, source) for each in chunks])
    assert corpus.labels is not None
    column = convert(corpus.labels, corpus.offsets, target)
    names = {each for sentence in chunks for each in literal(sentence, source)}
    if {name.partition("-")[0] for name in names} & {"B", "I", "S"}:  # else classes
        found = labels_of(Corpus(corpus.columns, column, corpus.offsets))
        assert found == [literal(each, target) for each in chunks]


def every_label(tags: str) -> list[str]:
    return ["O", *(label(tag, kind) for tag in tags for kind in ("X", "Y", ""))]


def any_labels(tags: str) -> st.SearchStrategy[tuple[str, list[list[str]]]]:
    sentence = st.lists(st.sampled_from(every_label(tags)), min_size=1, max_size=8)
    return st.tuples(st.just(tags), st.lists(sentence, min_size=1, max_size=4))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["BI", "BIES", "BILU", "BMES", "IE"]).flatmap(any_labels), st.sampled_from(CODINGS))
def test_whatever_the_labels_the_scorer_finds_the_same_spans_afterwards(
    tagged: tuple[str, list[list[str]]], target: LabelCoding
) -> None:
    tags, labels = tagged
    if not {each.partition("-")[0] for sentence in labels for each in sentence} & set("BIESM"):
        return  # O alone, or U and L without B or I: classes
    corpus = corpus_of(labels)
    assert corpus.labels is not None
    column = convert(corpus.labels, corpus.offsets, target)
    again = labels_of(Corpus(corpus.columns, column, corpus.offsets))
    written = {"iob1": "BI", "iob2": "BI", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES"}[target]
    for old, new in zip(labels, again, strict=True):
        assert spans_of(new, every_label(written)) == spans_of(old, every_label(tags))
    assert check_labels(column, corpus.offsets).fault_count == 0


@pytest.mark.parametrize(
    ("coding", "labels"),
    [
        ("iob1", ["I-X", "I-X", "B-X", "O"]),
        ("iob2", ["B-X", "I-X", "O"]),
        ("bioes", ["B-X", "I-X", "E-X", "S-Y", "O"]),
        ("bilou", ["B-X", "I-X", "L-X", "U-Y", "O"]),
        ("bmes", ["B", "M", "E", "S"]),
        ("bmes", ["B", "B2", "B3", "M", "E", "S"]),
        (None, ["NN", "VB"]),
        (None, ["B-X", "L-X", "E-X"]),
        (None, ["I-X", "E-X"]),
    ],
)
def test_a_coding_is_recognised_by_its_tags(coding: LabelCoding | None, labels: list[str]) -> None:
    corpus = corpus_of([labels])
    assert corpus.labels is not None
    checked = check_labels(corpus.labels, corpus.offsets)
    assert (checked.scheme, checked.fault_count) == (coding, 0)


def test_bilou_is_scored_as_the_chunks_it_says() -> None:
    assert spans_of(["B-X", "L-X", "U-X", "U-Y", "B-X", "I-X", "L-X", "O"]) == [
        TokenSpan("X", 0, 2),
        TokenSpan("X", 2, 3),
        TokenSpan("Y", 3, 4),
        TokenSpan("X", 4, 7),
    ]


def test_faults_are_named_and_nothing_is_changed_unless_repair_is_asked_for() -> None:
    corpus = corpus_of([["B-X", "I-X"], ["O", "I-X", "I-Y"], ["I-X"]])
    with pytest.raises(Invalid) as caught:
        recode(corpus, "bioes", repair=False)
    assert caught.value.code == "label_faults"
    assert [fault.reason for fault in caught.value.faults] == [
        "sentence 1, token 1 (counted from 0): I-X after O",
        "sentence 1, token 2 (counted from 0): I-Y after I-X",
        "sentence 2, token 0 (counted from 0): I-X at the start of a sentence",
    ]
    mended = recode(corpus, "bioes", repair=True)
    assert mended.repaired == 3
    assert labels_of(mended.corpus) == [["B-X", "E-X"], ["O", "S-X", "S-Y"], ["S-X"]]


def test_repair_alone_keeps_the_coding() -> None:
    mended = recode(corpus_of([["B-X", "I-X"], ["O", "I-X", "I-Y"]]), None, repair=True)
    assert labels_of(mended.corpus) == [["B-X", "I-X"], ["O", "B-X", "B-Y"]]
    assert mended.repaired == 2


def test_labels_as_they_are_stay_the_same_object() -> None:
    corpus = corpus_of([["B-X", "I-X"], ["O", "I-X"]])
    assert recode(corpus, None, repair=False).corpus is corpus
    good = corpus_of([["B-X", "I-X"]])
    assert recode(good, "iob2", repair=True).corpus is good


def test_plain_classes_cannot_be_put_into_a_coding_of_chunks() -> None:
    with pytest.raises(Invalid) as caught:
        recode(corpus_of([["NN", "VB"]]), "iob2", repair=True)
    assert caught.value.code == "unknown_label_coding"
    assert caught.value.faults[0].parameter == "labels"


@pytest.mark.parametrize("name", ["B", "I"])
def test_a_coding_of_one_untyped_label_can_be_changed(name: str) -> None:
    recoded = recode(read_conll([f"a {name}\n".encode()], max_line_bytes=100), "bioes", repair=False).corpus
    assert recoded.labels is not None
    assert recoded.labels.vocabulary.strings() == ["S"]
