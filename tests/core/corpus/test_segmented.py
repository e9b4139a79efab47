"""Segmented text, and the codings of words as labels of characters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.formats.segmented import Tags, read_segmented
from tagsmith.core.corpus.labels import segmentation
from tagsmith.core.corpus.labels.segmentation import LABELS, Coding, Word, words_of
from tagsmith.core.evaluate.spans import spans_of
from tests.core.corpus.samples import contents, pieces, rows_of

LINE = 1 << 16

letters = st.characters(
    exclude_categories=("Cs", "Cc", "Zs"), exclude_characters="\u2028\u2029\ufeff\u00ad\t /"
)
words = st.lists(st.text(letters, min_size=1, max_size=7), min_size=1, max_size=6)
codings = st.sampled_from([2, 4, 6])


def literal_labels(word: str, coding: Coding) -> list[str]:
    """A word's labels, as the table in the module says them."""
    rest = len(word) - 1
    if coding == 2:
        return ["B"] + ["I"] * rest
    if not rest:
        return ["S"]
    if coding == 4:
        return ["B", *["M"] * (rest - 1), "E"]
    return [*["B", "B2", "B3"][:rest], *["M"] * (rest - 3), "E"]


@pytest.mark.parametrize(
    ("coding", "said"),
    [
        (2, ["B", "BI", "BII", "BIII", "BIIII"]),
        (4, ["S", "BE", "BME", "BMME", "BMMME"]),
        (6, ["S", "BE", "B,B2,E", "B,B2,B3,E", "B,B2,B3,M,E"]),
    ],
)
def test_words_of_each_length_are_coded_as_the_table_says(coding: Coding, said: list[str]) -> None:
    for length, labels in enumerate(said, start=1):
        expected = labels.split(",") if "," in labels else list(labels)
        codes = segmentation.encode(np.array([length]), coding)
        assert [LABELS[coding][code] for code in codes.tolist()] == expected


@settings(max_examples=200, deadline=None)
@given(words, codings)
def test_words_come_back_from_their_labels(sentence: list[str], coding: Coding) -> None:
    corpus = read_segmented(["  ".join(sentence).encode()], max_line_bytes=LINE, coding=coding)
    (rows,) = rows_of(corpus)
    characters, labels = zip(*rows, strict=True)
    assert list(labels) == [label for word in sentence for label in literal_labels(word, coding)]
    found = words_of(labels)
    assert ["".join(characters[word.start : word.stop]) for word in found] == sentence
    # What the scorer counts as chunks are the same words.
    assert [(span.start, span.stop) for span in spans_of(labels, LABELS[coding])] == [
        (word.start, word.stop) for word in found
    ]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([f"{p}{t}" for p in LABELS[6] for t in ("", "-n", "-v")]), max_size=12))
def test_any_labels_make_words_that_cover_the_sentence(labels: list[str]) -> None:
    found = words_of(labels)
    assert [place for word in found for place in range(word.start, word.stop)] == list(range(len(labels)))
    for word in found:
        tags = {segmentation.split(label)[1] for label in labels[word.start : word.stop]}
        assert tags == {word.tag}


def test_labels_that_contradict_each_other_part_words_at_every_start_and_after_every_end() -> None:
    assert words_of(["M", "E", "M", "B", "B", "S", "E"]) == [
        Word(0, 2, None),
        Word(2, 3, None),
        Word(3, 4, None),
        Word(4, 5, None),
        Word(5, 6, None),
        Word(6, 7, None),
    ]


@pytest.mark.parametrize(
    ("tags", "rows"),
    [
        ("none", [("a", "B"), ("/", "M"), ("n", "E"), ("b", "S")]),
        ("strip", [("a", "S"), ("b", "S")]),
    ],
)
def test_a_slash_means_what_the_option_says(tags: Tags, rows: list[tuple[str, str]]) -> None:
    corpus = read_segmented([b"a/n b\n"], max_line_bytes=LINE, tags=tags)
    assert rows_of(corpus) == [rows]


def test_tags_become_part_of_the_labels() -> None:
    corpus = read_segmented(["迈向/v  新/a  //w ab/c/n\n".encode()], max_line_bytes=LINE, tags="use")
    assert rows_of(corpus) == [
        [
            ("迈", "B-v"),
            ("向", "E-v"),
            ("新", "S-a"),
            ("/", "S-w"),
            ("a", "B-n"),
            ("b", "M-n"),
            ("/", "M-n"),
            ("c", "E-n"),
        ]
    ]
    assert words_of([row[1] for row in rows_of(corpus)[0]])[0] == Word(0, 2, "v")


def test_words_without_a_tag_are_named_when_tags_are_used() -> None:
    with pytest.raises(Invalid) as caught:
        read_segmented([b"a/x b/y\nc/x d\n/x\nx/\n"], max_line_bytes=LINE, tags="use")
    assert [(fault.line, fault.reason) for fault in caught.value.faults] == [
        (2, "word 2 has no tag after a slash"),
        (3, "word 1 has no tag after a slash"),
        (4, "word 1 has no tag after a slash"),
    ]


def test_byte_order_mark_carriage_returns_blank_lines_and_wide_spaces_are_no_text() -> None:
    data = "\ufeff共同\u3000创造  \r\n \t\r\n\u3000\n\n好\t的".encode()
    corpus = read_segmented([data], max_line_bytes=LINE)
    assert rows_of(corpus) == [
        [("共", "B"), ("同", "E"), ("创", "B"), ("造", "E")],
        [("好", "S"), ("的", "S")],
    ]


def test_unlabelled_text_is_its_characters() -> None:
    corpus = read_segmented(["上海 市\n好\n".encode()], max_line_bytes=LINE, labelled=False)
    assert corpus.labels is None
    assert rows_of(corpus) == [[("上",), ("海",), ("市",)], [("好",)]]


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"a b\n\xff\n", 2, "not UTF-8: byte 0xFF at byte 1"),
        (b"a\x00b\n", 1, "control byte 0x00 at byte 2"),
        (b"a\n" + b"b" * 101 + b"\n", 2, "longer than 100 bytes"),
        (b" \n", 1, "The file has no token."),
        (b"", 1, "The file has no token."),
    ],
)
def test_faults_are_located(data: bytes, line: int, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_segmented([data], max_line_bytes=100)
    (fault,) = caught.value.faults
    assert (fault.line, fault.reason) == (line, reason)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_where_chunks_are_cut_does_not_matter(size: int) -> None:
    data = "上海/n  市/n  好/a\r\n\u3000新/a  闻/n\n".encode() * 5
    whole = read_segmented([data], max_line_bytes=LINE, tags="use")
    assert contents(read_segmented(pieces(data, size), max_line_bytes=LINE, tags="use")) == contents(whole)
