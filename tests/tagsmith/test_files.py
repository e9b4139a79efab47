"""Names and templates from files of users, by one rule in the client, the command line and the page."""

from pathlib import Path

import pytest

from tagsmith.client.files import corpus_name, read_templates, templates_of

#: Names of files, and of the corpora that are uploaded from them. A test of the page reads them too.
NAMES = {
    "x.conll.xz": "x",
    "x.conll.GZ": "x",
    "data.iob2": "data",
    "wiki.v2.conll": "wiki.v2",
    "train": "train",
    "train.gz": "train",
    ".conll": ".conll",
}


@pytest.mark.parametrize(("file", "name"), NAMES.items())
def test_a_corpus_has_the_name_of_its_file_without_suffixes(file: str, name: str) -> None:
    assert corpus_name(Path("data") / file) == name


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
    assert templates_of(text) == {"templates": text, "syntax": syntax}


def test_a_template_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "templates"
    path.write_text("U:%x[0,0]\n", encoding="utf-8-sig")
    assert read_templates(path)["templates"] == "U:%x[0,0]\n"
