"""What a file is, recognised by its content."""

import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from tagsmith.cli import recognition

CONLLU = b"# text = It is\n1\tIt\tit\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n2\tis\tbe\tAUX\tVBZ\t_\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize(
    ("head", "columns", "content"),
    [
        (b"Ada wrote to Charles.\n", None, "text"),
        (b"New York\n", None, "text"),
        (b"One line.\nAnother line of text.\n", None, "text"),
        (b"Ada NNP\nwrote VBD\nto TO\n", None, "columns"),
        (b"Ada\tNNP\nwrote\tVBD\n", None, "columns"),
        (b"Ada NNP\nwrote VBD\n", 2, "columns"),
        (b"Ada\nwrote\nto\n\nShe\n", None, "columns"),
        (b'{"text": "Ada wrote."}\n', None, "ndjson"),
        (b'["Ada", "wrote"]\n', None, "ndjson"),
        (b"[sic] is not JSON here\n", None, "text"),
        (CONLLU, None, "conllu"),
        (b"", None, "text"),
    ],
)
def test_what_is_to_be_tagged(head: bytes, columns: int | None, content: str) -> None:
    assert recognition.content_of(head, columns) == content


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("# Unigram\nU00:%x[-2,0]\nU01:%x[-1,0]/%x[0,0]\n\nB\n", "crf++"),
        ("U00:%x[0,0]\nB01:%x[0,0]\n", "crf++"),
        ("u:%x[0,0]\nb\n", "wapiti"),
        ("*:%x[ 0,0]\n", "wapiti"),
        ('U:suffix=%m[0,0,".$"]\nB\n', "wapiti"),
        ("U:word=%X[0,0]\n", "wapiti"),
        ("U:first=%x[@1,0]\n", "wapiti"),
    ],
)
def test_the_syntax_of_templates(text: str, syntax: str) -> None:
    assert recognition.template_syntax(text) == syntax


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
