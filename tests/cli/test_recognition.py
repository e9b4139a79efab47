"""What a file is, recognised by its content."""

import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from tagsmith.cli import recognition
from tagsmith.cli.recognition import ModelInput
from tagsmith.core.corpus.formats.recognition import Head

CONLLU = b"# text = It is\n1\tIt\tit\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n2\tis\tbe\tAUX\tVBZ\t_\t0\troot\t_\t_\n\n"
UNKNOWN, WORDS, TWO, NAMED = (ModelInput(columns) for columns in (None, 1, 2, 0))
CHARACTERS = ModelInput(1, characters=True)


@pytest.mark.parametrize(
    ("text", "model", "content"),
    [
        ("Ada wrote to Charles.\n", WORDS, "text"),
        ("New York\n", UNKNOWN, "text"),
        ("One line.\nAnother line of text.\n", UNKNOWN, "text"),
        ("Good morning\nHello world\nNice day\n", UNKNOWN, "text"),
        ("Good morning\nHello world\nNice day\n", WORDS, "text"),
        ("Good morning\nHello world\n\nNice day\n", WORDS, "text"),
        ("Ada NNP\nwrote VBD\nto TO\n", WORDS, "text"),
        ("Ada NNP\nwrote VBD\nto TO\n\nShe PRP\n", WORDS, "columns"),
        ("Ada B-author\nand O\n\nAda B-author\n", WORDS, "columns"),
        ("Ada\tNNP\nwrote\tVBD\n", UNKNOWN, "columns"),
        ("Ada NNP\nwrote VBD\n", TWO, "columns"),
        ("Ada NNP B-PER\nwrote VBD O\n", TWO, "columns"),
        ("Ada wrote to Charles.\n", TWO, "text"),
        ("Good morning\n", NAMED, "text"),
        ("Ada\nwrote\nto\n\nShe\n", UNKNOWN, "columns"),
        ("Ada\nwrote\nto\n\nShe\n", WORDS, "columns"),
        ("我们在上海\n上海很大\n我们很好\n", CHARACTERS, "text"),
        ("我\n们\n\n上\n", CHARACTERS, "columns"),
        ('{"text": "Ada wrote."}\n', UNKNOWN, "ndjson"),
        ('["Ada", "wrote"]\n', UNKNOWN, "ndjson"),
        ("[sic] is not JSON here\n", UNKNOWN, "text"),
        ("{sic} is not JSON either\n", UNKNOWN, "text"),
        ('{"text": "Ada wrote."},\n', UNKNOWN, "ndjson"),
        (CONLLU.decode(), UNKNOWN, "conllu"),
        ("1\tHun\thun\tP\tPP\t_\t2\tsubj\t_\t_\n2\tsov\tsove\tV\tVA\t_\t0\tROOT\t_\t_\n", UNKNOWN, "conllu"),
        ("", UNKNOWN, "text"),
    ],
)
def test_what_is_to_be_tagged(text: str, model: ModelInput, content: str) -> None:
    assert recognition.content_of(Head(text.encode(), whole=True), model) == content


def test_an_object_longer_than_the_head_is_ndjson() -> None:
    head = Head(b'{"text": "Ada wrote ', whole=False)
    assert recognition.content_of(head, UNKNOWN) == "ndjson"


@pytest.mark.parametrize(
    "compressed",
    [
        gzip.compress,
        lzma.compress,
        lambda data: zstandard.ZstdCompressor().compress(data),
        bytes,
    ],
)
def test_compressed_files_are_opened_by_their_first_bytes(compressed: object, tmp_path: Path) -> None:
    path = tmp_path / "no-suffix"
    path.write_bytes(compressed(b"Ada B-PER\n"))  # type: ignore[operator]
    with path.open("rb") as file:
        assert b"".join(recognition.decoded(file)) == b"Ada B-PER\n"
