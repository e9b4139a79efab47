import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.conll import read_conll, write_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.corpus.vocabulary import Vocabulary
from tests.core.corpus.samples import contents, rows_of

FIELD = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters=" "),
    min_size=1,
    max_size=6,
).filter(lambda field: field != "-DOCSTART-")


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    width = draw(st.integers(2, 4))
    row = st.lists(FIELD, min_size=width, max_size=width).map(" ".join)
    sentences = draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=5))
    text = "\n\n".join("\n".join(rows) for rows in sentences)
    # A mark in front, or a word that begins with one would lose it.
    return read_conll([("\ufeff" + text).encode()], max_line_bytes=1 << 16)


@settings(max_examples=300, deadline=None)
@given(corpora())
@example(read_conll(["\ufeff\ufeffa X\n".encode()], max_line_bytes=100))
@example(read_conll([b"# X\n"], max_line_bytes=100))
def test_what_is_written_reads_back_the_same(corpus: Corpus) -> None:
    again = read_conll(write_conll(corpus), max_line_bytes=1 << 16)
    assert contents(again) == contents(corpus)


def test_a_corpus_of_many_chunks_reads_back_the_same() -> None:
    corpus = read_conll(generate("references", 1500, seed=2), max_line_bytes=1000)
    chunks = list(write_conll(corpus))
    assert len(chunks) == 3  # 42,000 tokens in chunks of 20,000
    assert contents(read_conll(chunks, max_line_bytes=1000)) == contents(corpus)


def test_the_text_is_one_token_a_line_and_a_blank_line_a_sentence() -> None:
    text = b"a X O\nb Y B\n\nc X O\n\n"
    assert b"".join(write_conll(read_conll([text], max_line_bytes=100))) == text


def test_a_corpus_without_labels_is_written_without() -> None:
    text = b"a\nb\n\n"
    assert b"".join(write_conll(read_conll([text], max_line_bytes=100, labelled=False))) == text


def test_given_labels_take_the_place_of_the_corpus_labels() -> None:
    corpus = read_conll([b"a O\nb B\n"], max_line_bytes=100)
    assert b"".join(write_conll(corpus, np.array([1, 0], np.int32))) == b"a B\nb O\n\n"
    assert b"".join(write_conll(corpus, np.array([0, 1], np.int32), ["X", "Y"])) == b"a X\nb Y\n\n"
    assert rows_of(corpus) == [[("a", "O"), ("b", "B")]]


def test_labels_that_do_not_fit_are_refused() -> None:
    corpus = read_conll([b"a O\nb B\n"], max_line_bytes=100)
    for labels in ([0], [0, 2], [-1, 0]):
        with pytest.raises(ValueError, match="labels"):
            write_conll(corpus, np.array(labels, np.int32))
    bare = read_conll([b"a\n"], max_line_bytes=100, labelled=False)
    with pytest.raises(ValueError, match="label names"):
        write_conll(bare, np.zeros(1, np.int32))


@pytest.mark.parametrize("value", ["", "a b", "a\tb", "a\nb", "a\x00", "\x7f", "-DOCSTART-"])
def test_values_that_could_not_be_read_back_are_refused(value: str) -> None:
    column = Column("0", Vocabulary.from_strings([value]), np.zeros(1, np.int32))
    with pytest.raises(Invalid) as caught:
        write_conll(Corpus((column,), None, np.array([0, 1])))
    assert caught.value.code == "unwritable_value"
