"""The registry of formats, and the options of each."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus import formats as package
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.base import stored
from tagsmith.core.corpus.formats.segmented import SegmentedOptions
from tests.core.corpus.samples import rows_of


def test_a_reader_is_found_by_name() -> None:
    reader = formats.reader("conll", max_line_bytes=100)
    reader.feed(b"a X\n")
    assert reader.finish().tokens == 1
    assert "conll" in formats.known_formats()


@pytest.mark.parametrize("name", ["", "CONLL", "conlly", "conll\0"])
def test_an_unknown_format_is_refused_by_name(name: str) -> None:
    with pytest.raises(Invalid, match="Use one of: conll, crfsuite, ndjson") as caught:
        formats.reader(name, max_line_bytes=100)
    assert caught.value.code == "unknown_format"


def test_options_come_as_strings_and_are_kept_as_values() -> None:
    options = formats.parse_options("segmented", {"coding": "6"})
    assert options == SegmentedOptions(coding=6, tags="none")
    kept = stored(options)
    assert kept == {
        "labels": None,
        "repair": False,
        "labelled": True,
        "partial": False,
        "coding": 6,
        "tags": "none",
    }
    reader = formats.reader("segmented", max_line_bytes=100, options=kept)
    reader.feed(b"abc")
    assert rows_of(reader.finish()) == [[("a", "B"), ("b", "B2"), ("c", "E")]]


@pytest.mark.parametrize(
    ("name", "values", "parameter", "reason"),
    [
        ("segmented", {"coding": "5"}, "coding", "Input should be 2, 4 or 6"),
        ("segmented", {"coding": "four"}, "coding", "Input should be 2, 4 or 6"),
        ("segmented", {"tags": "yes"}, "tags", "Input should be 'none', 'strip' or 'use'"),
        (
            "segmented",
            {"codign": "4"},
            "codign",
            (
                "This is not an option of segmented. "
                "Its options are labels, repair, labelled, partial, tokenizer, coding, tags."
            ),
        ),
        (
            "crfsuite",
            {"coding": "4"},
            "coding",
            "This is not an option of crfsuite. Its options are labels, repair, labelled, partial, tokenizer.",
        ),
    ],
)
def test_a_wrong_option_is_named(name: str, values: dict[str, str], parameter: str, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        formats.parse_options(name, values)
    assert caught.value.code == "invalid_options"
    (fault,) = caught.value.faults
    assert (fault.parameter, fault.reason) == (parameter, reason)


#: A format in one file: one sentence per line, tokens separated by commas.
TOY = '''
from tagsmith.core.corpus.formats.base import Format, Options
from tagsmith.core.corpus.formats.conll import ConllReader


class ToyOptions(Options):
    """No options."""


class ToyReader(ConllReader):
    """Replaces what separates tokens."""

    def feed(self, chunk):
        super().feed(chunk.replace(b"\\n", b"\\n\\n").replace(b",", b"\\n"))


FORMAT = Format(
    name="a-toy",
    options=ToyOptions,
    reader=lambda options, limits: ToyReader(max_line_bytes=limits.max_line_bytes, labelled=options.labelled),
    writer=lambda corpus, options: iter([b"toy"]),
    media_type="text/csv",
)
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "toy.py").write_text(TOY, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    formats._formats.cache_clear()
    yield
    formats._formats.cache_clear()
    sys.modules.pop(f"{package.__name__}.toy", None)
    vars(package).pop("toy", None)


def test_formats_are_listed_in_a_fixed_order() -> None:
    assert formats.known_formats() == (
        "conll",
        "crfsuite",
        "ndjson",
        "conllu",
        "conllx",
        "segmented",
        "brat",
        "spans",
    )


@pytest.mark.usefixtures("toy")
def test_a_format_is_added_with_one_file() -> None:
    assert formats.known_formats()[-1] == "a-toy"
    corpus = formats.read([b"a X,b Y\nc Z"], "a-toy", max_line_bytes=100)
    assert rows_of(corpus) == [[("a", "X"), ("b", "Y")], [("c", "Z")]]
    assert list(formats.write(corpus, "a-toy")) == [b"toy"]
    assert formats.media_type("a-toy") == "text/csv"
    options = set(formats.option_models()["a-toy"].model_fields)
    assert options == {"labels", "repair", "labelled", "partial", "tokenizer"}
    formats.warm()


@pytest.mark.usefixtures("toy")
def test_two_formats_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY.replace("a-toy", "brat"), encoding="utf-8")
    with pytest.raises(RuntimeError, match="same name"):
        formats.known_formats()


def test_named_attributes_are_written_only_in_formats_that_hold_them() -> None:
    corpus = formats.read([b"A\tw=a\n"], "crfsuite", max_line_bytes=100)
    with pytest.raises(Invalid, match=r"Use crfsuite or ndjson\.") as caught:
        formats.write(corpus, "conll")
    assert caught.value.code == "unwritable_value"
    assert list(formats.write(corpus, "ndjson"))


def test_jsonl_is_another_name_of_ndjson_and_other_fields_are_ignored() -> None:
    line = b'{"id": 0, "tokens": ["Ada", "ran"], "pos": [1, 2], "meta": {"a": [{"b": 1}]}, "ner_tags": ["B-PER", "O"]}'
    reading = formats.reader("jsonl", max_line_bytes=1000)
    reading.feed(line)
    corpus = reading.finish()
    assert reading.format == "ndjson"
    assert b"".join(formats.write(corpus, "jsonl")) == b'{"tokens":["Ada","ran"],"labels":["B-PER","O"]}\n'
