"""Corpora written in each format, and read again."""

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tests.core.corpus.samples import contents, rows_of
from tests.core.corpus.test_conllu import TEXT as CONLLU


def read(data: bytes, name: str, **options: str) -> Corpus:
    reader = formats.reader(name, max_line_bytes=1 << 16, options=options)
    reader.feed(data)
    return reader.finish()


def written(corpus: Corpus, name: str, **options: str) -> bytes:
    return b"".join(formats.write(corpus, name, options))


def conll(text: str) -> Corpus:
    return read_conll([text.encode()], max_line_bytes=1000)


@pytest.mark.parametrize(
    ("name", "options", "data"),
    [
        ("conllu", {}, CONLLU.encode()),
        ("conllu", {"columns": "feats,form,misc", "label": "xpos"}, CONLLU.encode()),
        ("segmented", {}, "上海  市\n好\n新  闻\n".encode()),
        ("segmented", {"coding": "6"}, b"abcdef  a  ab  abc\n"),
        ("segmented", {"coding": "2", "tags": "use"}, "迈向/v  //w\n好/a\n".encode()),
    ],
)
def test_what_is_written_reads_back_as_the_same_corpus(
    name: str, options: dict[str, str], data: bytes
) -> None:
    corpus = read(data, name, **options)
    assert contents(read(written(corpus, name, **options), name, **options)) == contents(corpus)


@pytest.mark.parametrize(("name", "options"), [("conllu", {"columns": "form,xpos"}), ("conll", {})])
def test_generated_corpora_go_through_other_formats_unchanged(name: str, options: dict[str, str]) -> None:
    corpus = read_conll(generate("references", 1500, seed=2), max_line_bytes=1000)
    assert rows_of(read(written(corpus, name, **options), name, **options)) == rows_of(corpus)


@pytest.mark.parametrize(
    ("name", "options"),
    [("brat", {"tokens": "blanks"}), ("spans", {"tokenizer": '{"kind": "blanks", "sentences": "lines"}'})],
)
def test_spans_go_through_standoff_formats_unchanged(name: str, options: dict[str, str]) -> None:
    corpus = read_conll(generate("references", 1500, seed=2), max_line_bytes=1000)
    again = read(written(corpus, name), name, **options)
    assert rows_of(again) == [[(row[0], row[-1]) for row in rows] for rows in rows_of(corpus)]


def test_segmented_text_is_written_as_it_is_usually_spaced() -> None:
    assert written(read("上海 市\n\n好\n".encode(), "segmented"), "segmented") == "上海  市\n好\n".encode()


def test_labels_are_put_into_the_coding_asked_for() -> None:
    corpus = conll("a B-X\nb I-X\nc O\nd B-Y\n")
    assert written(corpus, "conll", labels="bioes") == b"a B-X\nb E-X\nc O\nd S-Y\n\n"
    with pytest.raises(Invalid) as caught:
        written(conll("a O\nb I-X\n\nc I-Y\nd B-Y\n\ne B-X"), "conll", labels="bioes")
    assert caught.value.code == "label_faults"


def test_one_character_a_token_makes_words_from_any_format() -> None:
    corpus = conll("上 B\n海 E\n市 S\n")
    assert written(corpus, "segmented") == "上海  市\n".encode()


@pytest.mark.parametrize(
    ("name", "options", "corpus", "code"),
    [
        ("conllu", {}, conll("a X O\n"), "invalid_options"),
        ("conllu", {"columns": "form,form"}, conll("a X O\n"), "invalid_options"),
        ("segmented", {}, conll("a NN\n"), "not_segmented"),
        ("segmented", {}, conll("ab S\n"), "unwritable_value"),
        ("segmented", {"tags": "use"}, conll("a S\n"), "invalid_options"),
        ("conll", {}, read(b"1\ta b" + b"\t_" * 8, "conllu"), "unwritable_value"),
        ("brat", {"coding": "4"}, conll("a O\n"), "invalid_options"),
        ("nothing", {}, conll("a O\n"), "unknown_format"),
    ],
)
def test_what_a_format_cannot_say_is_refused_before_the_first_byte(
    name: str, options: dict[str, str], corpus: Corpus, code: str
) -> None:
    with pytest.raises(Invalid) as caught:
        formats.write(corpus, name, options)
    assert caught.value.code == code
    assert caught.value.faults
