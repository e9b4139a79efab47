"""Files that are not corpora are refused with what they are and what to do, in one fault."""

import pytest

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.content_encoding import decoded
from tagsmith.core.corpus.formats import registry as formats
from tests.core.corpus.samples import pieces
from tests.core.corpus.test_recognition import zipped

CONLL = "Zürich B-LOC\nist O\n\n" * 300


def refused(text: bytes, format: str = "auto", size: int = 1 << 20) -> Fault:  # noqa: A002
    with pytest.raises(Invalid) as caught:
        formats.read(pieces(text, size), format, max_line_bytes=1 << 20)
    assert caught.value.code == "not_a_corpus"
    (fault,) = caught.value.faults
    assert fault.line == 1
    return fault


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("format", ["auto", "conll", "ndjson", "brat"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CONLL.encode("utf-16"), "This is UTF-16. Convert it: iconv -f UTF-16 -t UTF-8 FILE"),
        (CONLL.encode("utf-32"), "This is UTF-32. Convert it: iconv -f UTF-32 -t UTF-8 FILE"),
        (CONLL.encode("utf-16-le"), "This is UTF-16LE. Convert it: iconv -f UTF-16LE -t UTF-8 FILE"),
        (CONLL.encode("utf-16-be"), "This is UTF-16BE. Convert it: iconv -f UTF-16BE -t UTF-8 FILE"),
        (b"a b\n".decode().encode("utf-16-le"), "This is UTF-16LE. Convert it: iconv -f UTF-16LE -t UTF-8 FILE"),
        (b"%PDF-1.7\n%\xe2\xe3\n", "This is a PDF file, not text."),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "This is a PNG image, not text."),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "This is a JPEG image, not text."),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(9), "This is a Word or Excel file, not text."),
        (b"\x7fELF\1\1" + b"\1\0\2\3" * 500, "This is a binary file, not text."),
    ],
)  # fmt: skip
def test_another_encoding_or_type_of_file_is_named(text: bytes, said: str, format: str, size: int) -> None:  # noqa: A002
    assert refused(text, format, size).reason == said


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("xl/workbook.xml", "This is an Excel file, not text."),
        ("word/document.xml", "This is a Word file, not text."),
        ("content.xml", "This is an OpenDocument file, not text."),
    ],
)
def test_a_document_that_is_a_zip_file_is_named(member: str, said: str) -> None:
    data = zipped(**{"[Content_Types].xml": b"<x/>", member: b"<x/>"})
    with pytest.raises(Invalid) as caught:
        list(decoded([data], None, max_decoded_bytes=1000, recognise=True))
    assert [fault.reason for fault in caught.value.faults] == [said]


@pytest.mark.parametrize("format", ["auto", "conll"])
def test_latin_1_is_one_fault_with_its_line_and_the_remedy(format: str) -> None:  # noqa: A002
    text = "Bern B-LOC\nliegt O\n\n" + CONLL
    with pytest.raises(Invalid) as caught:
        formats.read([text.encode("latin-1")], format, max_line_bytes=1000)
    assert caught.value.faults == (Fault("not UTF-8: byte 0xFC at byte 2", line=4),)
    assert caught.value.message == (
        "The corpus is not UTF-8 text. If it is Latin-1, convert it: iconv -f LATIN1 -t UTF-8 FILE"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"text": "Ada", "label": []}]', "This is one JSON array. Write one JSON object per line: jq -c '.[]' FILE"),
        ('[\n  {\n    "tokens": ["Ada"]\n  }\n]\n', "This is one JSON array."),
        ('[["Ada ran", {"entities": [[0, 3, "PER"]]}]]', "This is one JSON array."),
        ('{\n  "classes": ["PER"],\n  "annotations": 3\n}\n', "This is a JSON object of several lines."),
        ('[{"id": 1, "data": {"text": "Ada"}, "annotations": [{"result": []}]}]', "export of Label Studio"),
        ('[\n{"data": {"text": "Ada"},\n "annotations": [\n', "export of Label Studio"),
        ("sentence_id,word,tag\n1,Ada,B-PER\n1,ran,O\n", "This is a table with the header sentence_id, word, tag."),
        ('Sentence #,Word,POS,Tag\nSentence: 1,Ada,NNP,O\n,"1,000",CD,O\n', "the header Sentence #, Word, POS, Tag."),
        ("word;tag\nAda;B-PER\n", "separated by tabs and the label last, and an empty line after each sentence."),
    ],
)  # fmt: skip
def test_json_and_tables_that_no_format_reads_are_named(text: str, said: str) -> None:
    assert said in refused(text.encode()).reason


@pytest.mark.parametrize(
    "text",
    [
        b"[ [ O\nAda NNP B-PER\n",
        b"[ -LRB- O\n{ -LRB- O\n",
        b"a,b X\nc,d Y\n",
        b", , O\n, , O\n",
        b"{ ( O\nx y z\n",
    ],
)
def test_column_text_with_brackets_and_commas_is_read(text: bytes) -> None:
    assert formats.read([text], "auto", max_line_bytes=1000).tokens == 2
