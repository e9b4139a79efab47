from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus import intern
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import lines
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.conll import MAX_COLUMNS, ConllReader, read_conll
from tagsmith.core.corpus.formats.scan import columns
from tagsmith.core.corpus.synthetic.generate import generate
from tests.core.corpus.samples import contents, naive_read, pieces, rows_of

LINE = 1000


def read(data: bytes, *, labelled: bool = True, max_line_bytes: int = LINE) -> Corpus:
    return read_conll([data], max_line_bytes=max_line_bytes, labelled=labelled)


def faults_of(data: bytes, *, labelled: bool = True, cut: int | None = None) -> tuple[Fault, ...]:
    chunks = pieces(data, cut) if cut else [data]
    with pytest.raises(Invalid) as caught:
        read_conll(chunks, max_line_bytes=LINE, labelled=labelled)
    return caught.value.faults


FIELD = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters=" "), min_size=1
)
BLANKS = st.text(" \t", max_size=2)
BETWEEN = st.text(" \t", min_size=1, max_size=2)


@st.composite
def column_text(draw: st.DrawFn) -> str:
    """Good text in every layout the reader accepts: blanks, CRLF, a mark in front, document starts."""
    width = draw(st.integers(2, 4))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            lines.append("-DOCSTART- " * draw(st.integers(1, 3)))
        for _ in range(draw(st.integers(1, 4))):
            fields = draw(st.lists(FIELD, min_size=width, max_size=width))
            lines.append(draw(BLANKS) + draw(BETWEEN).join(fields) + draw(BLANKS))
        lines += [draw(BLANKS) for _ in range(draw(st.integers(1, 2)))]
    end = draw(st.sampled_from(["", newline, newline * 3]))
    return draw(st.sampled_from(["", "\ufeff"])) + newline.join(lines) + end


@settings(max_examples=300, deadline=None)
@given(column_text())
def test_text_is_read_as_the_naive_reader_reads_it(text: str) -> None:
    corpus = read(text.encode(), max_line_bytes=1 << 20)
    expected = naive_read(text)
    assert rows_of(corpus) == expected
    for number, column in enumerate(corpus.every_column()):
        values = [row[number] for sentence in expected for row in sentence]
        assert column.vocabulary.strings() == list(dict.fromkeys(values))  # numbered as first seen


@settings(max_examples=200, deadline=None)
@given(column_text(), st.lists(st.integers(0, 2000), max_size=12))
@example("ä b\r\n日本 c\n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
def test_chunks_may_be_cut_anywhere(text: str, cuts: list[int]) -> None:
    data = text.encode()
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[a:b] for a, b in pairwise(bounds)]
    cut = read_conll(chunks, max_line_bytes=1 << 20)
    assert contents(cut) == contents(read(data, max_line_bytes=1 << 20))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096, 65_535, 65_536, 65_537])
def test_a_corpus_longer_than_many_batches_is_the_same_however_it_is_cut(size: int) -> None:
    data = b"".join(generate("references", 400, seed=3))
    data = data[: 30_000 if size < 10 else len(data)]
    data = data[: data.rindex(b"\n\n") + 2]
    whole = read(data)
    assert contents(read_conll(pieces(data, size), max_line_bytes=LINE)) == contents(whole)
    assert rows_of(whole) == naive_read(data.decode())


def test_columns_labels_and_offsets() -> None:
    corpus = read(b"Rockwell NNP B-NP\nsaid VBD O\n\nit PRP B-NP\n")
    assert [column.name for column in corpus.columns] == ["0", "1"]
    assert corpus.labels is not None
    assert corpus.labels.name == "label"
    assert corpus.labels.ids.tolist() == [0, 1, 0]
    assert corpus.offsets.tolist() == [0, 2, 3]
    assert (corpus.sentences, corpus.tokens) == (2, 3)
    assert corpus.columns[0].ids.dtype == np.int32


def test_without_labels_every_column_is_an_attribute() -> None:
    corpus = read(b"a\nb\n\na\n", labelled=False)
    assert corpus.labels is None
    assert [column.ids.tolist() for column in corpus.columns] == [[0, 1, 0]]


def test_the_same_word_in_two_columns_is_numbered_in_each() -> None:
    corpus = read(b"b a\na b\n")
    assert [column.vocabulary.strings() for column in corpus.every_column()] == [["b", "a"], ["a", "b"]]


@pytest.mark.parametrize("tail", [b"", b"\n", b"\n\n", b"\r\n", b"\n \t\n\n", b"\n\n\n-DOCSTART- -X- O\n"])
def test_the_last_sentence_needs_no_blank_line(tail: bytes) -> None:
    assert rows_of(read(b"a X\nb Y" + tail)) == [[("a", "X"), ("b", "Y")]]


def test_document_starts_end_a_sentence_and_are_no_tokens() -> None:
    text = b"-DOCSTART- -DOCSTART- O\na X O\n-DOCSTART-\n\nb Y O\n-DOCSTART-X Y O\n"
    assert rows_of(read(text)) == [[("a", "X", "O")], [("b", "Y", "O"), ("-DOCSTART-X", "Y", "O")]]


def test_a_byte_order_mark_is_skipped_once_at_the_start() -> None:
    mark = b"\xef\xbb\xbf"
    assert rows_of(read(mark + b"a X\n")) == [[("a", "X")]]
    assert rows_of(read(mark + mark + b"a X\n")) == [[("\ufeffa", "X")]]
    assert rows_of(read(b"a X\n" + mark + b"b X\n")) == [[("a", "X"), ("\ufeffb", "X")]]


def test_blanks_of_other_scripts_are_part_of_a_word() -> None:
    assert rows_of(read("a\u00a0b\u3000c X\n".encode())) == [[("a\u00a0b\u3000c", "X")]]


def test_ragged_lines_say_what_was_expected_and_since_when() -> None:
    faults = faults_of(b"\na X O\nb X\n\nc X Y O\nd X O\n")
    assert faults == (
        Fault("expected 3 columns as in line 2, found 2", line=3),
        Fault("expected 3 columns as in line 2, found 4", line=5),
    )


def test_one_column_is_too_few_for_labels_and_said_once() -> None:
    faults = faults_of(b"a\nb\nc\n")
    assert faults == (
        Fault("1 column; a labelled corpus needs at least 2, with the label in the last one", line=1),
    )


def test_one_column_in_the_first_line_does_not_condemn_the_others() -> None:
    faults = faults_of(b"title\na X\nb X\n\nc\n")
    assert [(fault.line, fault.reason[:10]) for fault in faults] == [(1, "1 column; "), (5, "expected 2")]


@pytest.mark.parametrize("data", [b"", b"\n", b" \t\r\n\n", b"\xef\xbb\xbf", b"-DOCSTART- O\n\n"])
def test_an_empty_corpus_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid) as caught:
        read(data)
    assert caught.value.code == "empty_corpus"
    assert caught.value.faults[0].line == 1


@pytest.mark.parametrize("byte", [0, 1, 7, 11, 12, 13, 27, 31, 127])
def test_control_bytes_are_refused_wherever_they_stand(byte: int) -> None:
    bad = bytes([byte])
    assert faults_of(b"ok X\na" + bad + b" X\n") == (Fault(f"control byte 0x{byte:02X} at byte 2", line=2),)
    assert faults_of(b"ok X\n\n" + bad + bad + b"\n") == (
        Fault(f"control byte 0x{byte:02X} at byte 1", line=3),
    )
    assert faults_of(b"ok X\n-DOCSTART- " + bad + b" X\n")[0].line == 2


BAD_UTF8 = [
    b"\x80", b"\xbf", b"\xc0\xaf", b"\xc1\xbf", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xe2(\xa1", b"\xe2\x82(",
    b"\xe0\x80\xaf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x80\x80\xaf", b"\xf0\x8f\xbf\xbf",
    b"\xf0\x9f\x98", b"\xf0\x9f\x98(", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80",
    b"\xff", b"\xfe",
]  # fmt: skip


@pytest.mark.parametrize("cut", [None, 1, 2, 3])
@pytest.mark.parametrize("bad", BAD_UTF8, ids=lambda bad: bad.hex())
def test_bytes_that_are_not_utf8_are_refused_also_across_chunks(bad: bytes, cut: int | None) -> None:
    expected = Fault(f"not UTF-8: byte 0x{bad[0]:02X} at byte 3", line=2)
    assert faults_of("ä X\n".encode() + b"ok" + bad + b" X\nb X\n", cut=cut) == (expected,)
    assert faults_of("ä X\n".encode() + b"ok" + bad, cut=cut)[0] == expected


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=1, max_size=6))
def test_utf8_is_judged_as_python_judges_it(data: bytes) -> None:
    try:
        data.decode()
        good = True
    except UnicodeDecodeError:
        good = False
    buffer = np.frombuffer(data, np.uint8)
    assert (lines._encoding_fault(buffer, 0, buffer.size) < 0) == good


def test_every_character_is_read() -> None:
    everything = [chr(c) for c in range(33, 0x110000, 37) if c != 127 and not 0xD800 <= c < 0xE000]
    text = "".join(f"{c} X\n" for c in everything)
    assert read(text.encode()).columns[0].vocabulary.strings() == everything


@pytest.mark.parametrize("cut", [None, 1, 100, 700])
def test_a_line_over_the_limit_is_refused_and_the_next_ones_are_still_looked_at(cut: int | None) -> None:
    fits = b"a" * (LINE - 2) + b" X\n"
    faults = faults_of(fits + b"a" * (LINE - 1) + b" X\nb X Y\n\x00\n" + b"c" * 5000, cut=cut)
    assert [(fault.line, fault.reason) for fault in faults] == [
        (2, "longer than 1000 bytes"),
        (3, "expected 2 columns as in line 1, found 3"),
        (4, "control byte 0x00 at byte 1"),
        (5, "longer than 1000 bytes"),
    ]


@pytest.mark.parametrize("cut", [1, 7, None])
def test_a_byte_order_mark_is_none_behind_a_first_line_over_the_limit(cut: int | None) -> None:
    data = b"x" * (LINE + 1) + b"\n\xef\xbb\xbf\n"
    assert [(fault.line, fault.reason[:8]) for fault in faults_of(data, cut=cut)] == [
        (1, "longer t"),
        (2, "1 column"),
    ]


@pytest.mark.parametrize("cut", [1, 7])
def test_a_byte_order_mark_does_not_count_towards_the_limit(cut: int) -> None:
    data = b"\xef\xbb\xbf" + b"x" * (LINE - 2) + b" O\n"
    assert read_conll(pieces(data, cut), max_line_bytes=LINE).tokens == 1


def test_a_line_of_the_very_limit_is_read_however_it_is_cut() -> None:
    data = b"a" * (LINE - 2) + b" X\n" + b"b" * (LINE - 2) + b" X"
    for cut in (1, 3, LINE, LINE + 1, 5000):
        assert read_conll(pieces(data, cut), max_line_bytes=LINE).tokens == 2


def feed_all(chunks: Iterable[bytes]) -> None:
    """Feed without finishing: what is raised is raised on the way."""
    reader = ConllReader(max_line_bytes=LINE)
    for chunk in chunks:
        reader.feed(chunk)


def test_a_hundred_faults_are_enough() -> None:
    with pytest.raises(Invalid) as caught:
        feed_all(b"a X\nb\n" * 1000 for _ in range(1000))
    assert [fault.line for fault in caught.value.faults] == list(range(2, 202, 2))
    assert "100 lines or more" in caught.value.message
    assert caught.value.code == "invalid_corpus"


def test_a_hundred_long_lines_are_enough_too() -> None:
    with pytest.raises(Invalid) as caught:
        feed_all(b"x" * (LINE + 2) if i % 2 == 0 else b"\n" for i in range(400))
    assert len(caught.value.faults) == 100


def test_too_many_columns_are_refused() -> None:
    assert len(read(b"a " * MAX_COLUMNS).columns) == MAX_COLUMNS - 1
    assert faults_of(b"a " * (MAX_COLUMNS + 1)) == (Fault("257 columns; the limit is 256", line=1),)
    assert len(faults_of(b"a X\n" + b"a " * 400 + b"\n")) == 1


def test_reading_compiles_each_kernel_once() -> None:
    read(b"a X\n")
    read("ä X Y\r\n".encode(), labelled=False)
    read_conll(iter([b"a X\n" * 50_000]), max_line_bytes=LINE)
    kernels = [columns.scan, intern._intern, intern._rehash]
    assert [len(kernel.signatures) for kernel in kernels] == [1, 1, 1]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [
        b"# id 1\nAda B-PER\nran O\n\n# id 2\nBob B-PER\n",
        b"# id 5239d808\tdomain=train\nAda B-PER\nran O\n\n# id 2 x\n# y z w\nBob B-PER\n",
        b"\n#\tid 1\r\nAda B-PER\r\nran O\r\n\r\n# id 2\r\nBob B-PER\r\n",
        b"-DOCSTART- -X- O O\n\n# id 1\nAda B-PER\nran O\n\nBob B-PER\n",
    ],
)
def test_comments_before_a_sentence_are_skipped(text: bytes, size: int) -> None:
    corpus = read_conll(pieces(text, size), max_line_bytes=LINE)
    assert rows_of(corpus) == [[("Ada", "B-PER"), ("ran", "O")], [("Bob", "B-PER")]]


def test_a_hash_with_the_columns_of_a_token_is_a_token() -> None:
    text = b"# SYM O\n1 CD O\n\n# SYM O\n2 CD O\n"
    assert [rows[0] for rows in rows_of(read(text))] == [("#", "SYM", "O")] * 2


def test_a_comment_inside_a_sentence_or_without_a_blank_is_a_fault() -> None:
    assert faults_of(b"a X\n# id 1\nb X\n") == (Fault("expected 2 columns as in line 1, found 3", line=2),)
    assert faults_of(b"a X\n\n#id 1 2\nb X\n") == (Fault("expected 2 columns as in line 1, found 3", line=3),)


SPACED = b"# id 1\nNew York\tB-LOC\nis\tO\n\nfar  away\tO\n"
SPACED_ROWS = [[("New York", "B-LOC"), ("is", "O")], [("far  away", "O")]]


@pytest.mark.parametrize("format", ["auto", "conll"])
@pytest.mark.parametrize("options", [{}, {"separator": "tab"}])
def test_values_between_tabs_may_contain_blanks(format: str, options: dict[str, str]) -> None:  # noqa: A002
    reading = formats.reader(format, max_line_bytes=LINE, options=options)
    reading.feed(SPACED)
    corpus = reading.finish()
    assert rows_of(corpus) == SPACED_ROWS
    stored = reading.options.model_dump(mode="json")
    assert stored["separator"] == "tab"
    written = b"".join(formats.write(corpus, "conll", formats.writing_options("conll", stored, "conll", {})))
    assert written == b"New York\tB-LOC\nis\tO\n\nfar  away\tO\n\n"
    assert rows_of(formats.read([written], "auto", max_line_bytes=LINE)) == SPACED_ROWS


@pytest.mark.parametrize("text", [b"a\tNN B-X\nb\tNN O\n", b"a  NN\tB-X\nb NN O\n", b"a NN B-X\nb NN O\n"])
def test_blanks_separate_columns_where_they_give_every_line_as_many(text: bytes) -> None:
    reading = formats.reader("conll", max_line_bytes=LINE)
    reading.feed(text)
    assert rows_of(reading.finish()) == [[("a", "NN", "B-X"), ("b", "NN", "O")]]
    assert reading.options.model_dump()["separator"] == "blank"
    with pytest.raises(Invalid, match="invalid in 1 line"):
        formats.read([SPACED], "conll", max_line_bytes=LINE, options={"separator": "blank"})
