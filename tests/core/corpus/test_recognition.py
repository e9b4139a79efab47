"""Formats and compression recognised by content, and the columns of column text."""

import gzip
import io
import lzma
import zipfile

import pytest
import zstandard

from tagsmith.core.base.errors import Invalid, TooLarge
from tagsmith.core.corpus.content_encoding import decoded
from tagsmith.core.corpus.formats import registry as formats
from tests.core.corpus.samples import pieces, rows_of

MANY = 1 << 30
CONLL = b"-DOCSTART- -X- O\n\nRockwell NNP B-NP\nsaid VBD O\n\nIt PRP B-NP\n"
CONLLU = b"# text = a b\n1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n2\tb\t_\tY\t_\t_\t_\t_\t_\t_\n"
CRFSUITE = b"B-NP\tw[0]=Rockwell\tw[1]=said\tcap\nO\tw[0]=said\tlength:4\n\n"
NDJSON = b'\n{"tokens": ["a", "b"], "tags": ["X", "Y"]}\n'
SPANS = b'{"id": 1, "text": "Ada ran.", "meta": {}, "label": [[0, 3, "PER"]]}\n'
SEGMENTED = "上海  推  三大任务\n共同富裕\n".encode()


def zipped(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


BRAT = zipped(**{"a.txt": b"Paris", "a.ann": b"T1\tLOC 0 5\tParis\n"})


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conll", CONLL),
        ("conll", b"\xef\xbb\xbf" + CONLL.replace(b" ", b"\t").replace(b"\n", b"\r\n")),
        ("conllu", CONLLU),
        ("conllu", (CONLLU + b"\n").replace(b"\n", b"\r\n") * 2000),
        ("crfsuite", CRFSUITE),
        ("ndjson", NDJSON),
        ("ndjson", NDJSON.replace(b'"a"', b'"' + b"a" * 100_000 + b'"')),
        ("ndjson", b'{"id": "0", "tokens": ["a"], "ner_tags": ["O"]}\n'),
        ("ndjson", b'{"text": "a", "tokens": ["a"], "labels": ["O"]}\n'),
        ("segmented", SEGMENTED),
        ("spans", SPANS),
        ("spans", SPANS.replace(b'"meta": {}', b'"meta": "' + b"a" * 100_000 + b'"')),
        ("spans", b'{"text": "a b", "tokens": [{"text": "a", "start": 0, "end": 1}], "spans": []}\n'),
        ("brat", BRAT),
        # In doubt: column text, whose messages describe the lines.
        ("conll", "上 B\n海 E\n\n推 S\n".encode()),
        ("conll", b"word Case=Nom|Number=Sing NOUN\nother _ VERB\n"),
    ],
)
def test_a_format_is_recognised_however_the_text_is_cut(name: str, text: bytes, size: int) -> None:
    reading = formats.reader("auto", max_line_bytes=1 << 20)
    for piece in pieces(text, max(size, len(text) // 5000)):
        reading.feed(piece)
    found = reading.finish()
    assert reading.format == name
    if name != "brat":
        assert rows_of(found) == rows_of(formats.read([text], name, max_line_bytes=1 << 20))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"Rockwell NNP B-NP\nsaid VBD\n", 2),
        (b"a\tX\nb\n\nc\tX\td\n", 2),
        (b"An ordinary sentence of English.\nAnother one, which is longer than that.\n", 2),
        (CONLLU + b"1\ta\n", 5),
    ],
)
def test_a_faulty_text_is_not_taken_for_another_format(text: bytes, line: int) -> None:
    with pytest.raises(Invalid) as caught:
        formats.read([text], "auto", max_line_bytes=1000)
    assert caught.value.faults[0].line == line
    assert "name the format" in caught.value.message


def test_an_empty_text_is_refused_whatever_it_was_to_be() -> None:
    with pytest.raises(Invalid) as caught:
        formats.read([], "auto", max_line_bytes=1000)
    assert caught.value.code == "empty_corpus"


def test_an_option_of_another_format_than_the_recognised_one_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        formats.read([NDJSON], "auto", max_line_bytes=1000, options={"coding": "4"})
    assert (caught.value.code, caught.value.faults[0].parameter) == ("invalid_options", "coding")


# -- compression --

PACKED = {
    "plain": CONLL,
    "gzip": gzip.compress(CONLL),
    "zstd": zstandard.compress(CONLL),
    "xz": lzma.compress(CONLL),
    "xz, two streams": lzma.compress(CONLL[:9]) + bytes(8) + lzma.compress(CONLL[9:]),
    "zip": zipped(**{"train.conll": CONLL, "__MACOSX/._train.conll": b"x", "folder/": b""}),
}


def undone(data: bytes, size: int = 1 << 16, limit: int = MANY) -> bytes:
    return b"".join(decoded(pieces(data, size), None, max_decoded_bytes=limit, recognise=True))


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
@pytest.mark.parametrize("name", PACKED)
def test_compressed_data_is_recognised_by_its_first_bytes(name: str, size: int) -> None:
    assert undone(PACKED[name], size) == CONLL


@pytest.mark.parametrize("data", [b"", b"P", b"\x1f", b"a B\n"])
def test_data_shorter_than_any_magic_passes_through(data: bytes) -> None:
    assert undone(data) == data


@pytest.mark.parametrize("name", ["gzip", "zstd", "xz", "zip"])
def test_damaged_data_is_refused_wherever_it_is_cut(name: str) -> None:
    data = PACKED[name]
    for stop in range(6, len(data) - 1):
        with pytest.raises(Invalid) as caught:
            undone(data[:stop])
        assert caught.value.code in ("corrupt_encoding", "invalid_archive")


@pytest.mark.parametrize("name", ["gzip", "zstd", "xz", "zip"])
def test_the_limit_is_that_of_the_decoded_data(name: str) -> None:
    assert undone(PACKED[name], limit=len(CONLL)) == CONLL
    with pytest.raises(TooLarge):
        undone(PACKED[name], limit=len(CONLL) - 1)


def test_a_zip_of_annotations_stays_one_and_any_other_of_several_files_is_refused() -> None:
    assert undone(BRAT, size=3) == BRAT
    with pytest.raises(Invalid, match="Pack one file") as caught:
        undone(zipped(**{"a.conll": b"x", "b.conll": b"y"}))
    assert caught.value.code == "invalid_archive"


def test_a_member_that_leads_out_of_its_archive_is_refused() -> None:
    with pytest.raises(Invalid, match="not a readable zip file"):
        undone(zipped(**{"../train.conll": CONLL}))


# -- columns of column text --


def columns_of(options: dict[str, str], text: bytes = CONLL) -> dict[str, list[str]]:
    corpus = formats.read([text], "conll", max_line_bytes=1000, options=options)
    return {column.name: column.vocabulary.strings() for column in corpus.every_column()}


WORDS, TAGS = ["Rockwell", "said", "It"], ["NNP", "VBD", "PRP"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"0": WORDS, "1": TAGS}),
        ({"columns": "0"}, {"0": WORDS}),
        ({"columns": "1"}, {"0": TAGS}),
        ({"columns": "1,0"}, {"0": TAGS, "1": WORDS}),
        ({"names": "word,pos"}, {"word": WORDS, "pos": TAGS}),
        ({"names": "word, pos, chunk"}, {"word": WORDS, "pos": TAGS}),
        ({"names": "word,pos,chunk", "columns": "pos"}, {"pos": TAGS}),
        ({"names": "word,pos", "columns": "1,word"}, {"pos": TAGS, "word": WORDS}),
    ],
)
def test_columns_are_chosen_by_number_or_name_and_the_label_stays(
    options: dict[str, str], expected: dict[str, list[str]]
) -> None:
    assert columns_of(options) == {**expected, "label": ["B-NP", "O"]}


def test_without_labels_every_column_can_be_chosen() -> None:
    unlabelled = {"labelled": "false", "columns": "2"}
    assert columns_of(unlabelled) == {"0": ["B-NP", "O"]}


@pytest.mark.parametrize(
    ("options", "parameter", "reason"),
    [
        ({"columns": "2"}, "columns", "column 2 is the label; the features are columns 0 to 1"),
        ({"columns": "3"}, "columns", "column 3 does not exist"),
        ({"columns": "word"}, "columns", "neither a number nor a name"),
        ({"columns": "0,0"}, "columns", "occurs twice"),
        ({"columns": "0,word", "names": "word,pos"}, "columns", "occurs twice"),
        ({"columns": "chunk", "names": "word,pos,chunk"}, "columns", "is the label"),
        ({"columns": ""}, "columns", "neither"),
        ({"columns": "-1"}, "columns", "neither"),
        ({"names": "word"}, "names", "1 names for 2 columns"),
        ({"names": "a,b,c,d"}, "names", "4 names for 2 columns"),
        ({"names": "word,word"}, "names", "occurs twice"),
        ({"names": "0,1"}, "names", "is not a name"),
        ({"names": "a,b c"}, "names", "is not a name"),
    ],
)
def test_columns_that_the_text_does_not_have_are_refused(
    options: dict[str, str], parameter: str, reason: str
) -> None:
    with pytest.raises(Invalid) as caught:
        columns_of(options)
    (fault,) = caught.value.faults
    assert (caught.value.code, fault.parameter) == ("invalid_options", parameter)
    assert reason in fault.reason


def test_a_corpus_read_with_chosen_columns_is_written_with_those() -> None:
    options = {"names": "word,pos", "columns": "pos"}
    corpus = formats.read([CONLL], "conll", max_line_bytes=1000, options=options)
    stored = formats.parse_options("conll", options).model_dump(mode="json")
    writing = formats.writing_options("conll", stored, "conll", {})
    assert b"".join(formats.write(corpus, "conll", writing)) == b"NNP B-NP\nVBD O\n\nPRP B-NP\n\n"
    with pytest.raises(Invalid, match="not for writing"):
        formats.writing_options("conll", stored, "conll", {"columns": "0"})
