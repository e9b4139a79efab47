"""Reading and writing labels that are left open, and weights of sentences."""

from typing import Any

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.report import report

COLUMNS = b"a X\nb ?\n\nc X|Y\nd Y\n\ne Z\n\n"
LINES = b"""{"tokens": ["a", "b"], "tags": ["X", null]}
{"tokens": ["c", "d"], "tags": [["X", "Y"], "Y"], "weight": 2.5}
{"tokens": ["e"], "tags": ["Z"], "weight": 1}
"""
CRFSUITE = b"X\ta\nY\tb\n\n@weight:2.5\nX\tc\n\nY\td\n@weight:1e-3\tY\te\n\nX\tf\n"


def read(name: str, text: bytes, chunk: int = 0, **options: Any) -> Corpus:
    reader = formats.reader(name, max_line_bytes=1_000, options={k: str(v) for k, v in options.items()})
    for begin in range(0, len(text), chunk or len(text)):
        reader.feed(text[begin : begin + (chunk or len(text))])
    return reader.finish()


def labels_of(corpus: Corpus) -> list[str]:
    assert corpus.labels is not None
    names = corpus.labels.vocabulary.strings()
    return [names[i] for i in corpus.labels.ids.tolist()]


def written(corpus: Corpus, name: str) -> bytes:
    return b"".join(formats.write(corpus, name, formats.writing_options(name, {}, name, {})))


def test_columns_and_json_lines_say_the_same() -> None:
    columns, lines = read("conll", COLUMNS, partial="true"), read("ndjson", LINES, partial="true")
    for corpus in (columns, lines):
        assert corpus.partial
        assert labels_of(corpus) == ["X", "?", "X|Y", "Y", "Z"]
        assert corpus.label_names == ["X", "Y", "Z"]
        assert corpus.complete().tolist() == [2]
    assert columns.weights is None
    assert lines.weights is not None
    assert lines.weights.tolist() == [1.0, 2.5, 1.0]


@pytest.mark.parametrize("chunk", [0, 1, 7])
def test_a_weight_of_crfsuite_is_that_of_its_sequence(chunk: int) -> None:
    corpus = read("crfsuite", CRFSUITE, chunk)
    assert corpus.weights is not None
    assert corpus.weights.tolist() == np.float32([1.0, 2.5, 1e-3, 1.0]).tolist()
    assert corpus.offsets.tolist() == [0, 2, 3, 5, 6]
    assert labels_of(corpus) == ["X", "Y", "X", "Y", "Y", "X"]


@pytest.mark.parametrize(("name", "text"), [("ndjson", LINES), ("crfsuite", CRFSUITE)])
def test_what_is_written_is_read_back(name: str, text: bytes) -> None:
    options = {"partial": "true"} if name == "ndjson" else {}
    first = read(name, text, **options)
    again = read(name, written(first, name), **options)
    assert labels_of(again) == labels_of(first)
    assert first.weights is not None
    assert again.weights is not None
    assert again.weights.tobytes() == first.weights.tobytes()
    assert again.offsets.tolist() == first.offsets.tolist()


def test_open_labels_are_written_to_json_as_null_and_lists() -> None:
    lines = written(read("conll", COLUMNS, partial="true"), "ndjson").decode().splitlines()
    assert '"labels":["X",null]' in lines[0]
    assert '"labels":[["X","Y"],"Y"]' in lines[1]


@pytest.mark.parametrize("weight", ["0", "-1", '"2"', "true", "null", "1e9", "[2]"])
def test_a_weight_that_is_none_is_a_fault_with_its_line(weight: str) -> None:
    line = b'{"tokens": ["a"], "tags": ["X"], "weight": ' + weight.encode() + b"}\n"
    with pytest.raises(Invalid) as caught:
        read("ndjson", LINES + line, partial="true")
    assert caught.value.faults[0].line == 4
    assert "/weight: a weight is a number" in caught.value.faults[0].reason


@pytest.mark.parametrize(
    ("tags", "reason"),
    [("[[]]", "at least one label"), ('[["A", 1]]', "non-empty string"), ("[7]", "name of a class")],
)
def test_a_list_of_labels_names_labels(tags: str, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        read("ndjson", b'{"tokens": ["a"], "tags": ' + tags.encode() + b"}\n", partial="true")
    assert caught.value.faults[0].line == 1
    assert reason in caught.value.faults[0].reason


def test_null_without_the_option_is_refused_with_a_hint() -> None:
    with pytest.raises(Invalid) as caught:
        read("ndjson", LINES)
    assert "set partial=true" in caught.value.faults[0].reason


def test_an_empty_alternative_is_refused_with_its_place() -> None:
    with pytest.raises(Invalid) as caught:
        read("conll", b"a X\n\nb X\nc X|\n\n", partial="true")
    assert caught.value.code == "invalid_partial_label"
    assert "sentence 1, token 1" in caught.value.faults[0].reason


def test_a_corpus_without_any_label_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        read("conll", b"a ?\nb ?\n\n", partial="true")
    assert caught.value.code == "unlabelled_corpus"


@pytest.mark.parametrize("option", [{"labels": "bioes"}, {"repair": "true"}])
def test_open_labels_have_no_coding_to_convert_or_repair(option: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="not valid"):
        read("conll", COLUMNS, partial="true", **option)


def test_without_the_option_a_question_mark_is_a_label() -> None:
    corpus = read("conll", COLUMNS)
    assert not corpus.partial
    assert corpus.label_names == ["X", "?", "X|Y", "Y", "Z"]


def test_a_report_counts_labelled_tokens_and_weights() -> None:
    found = report(read("ndjson", LINES, partial="true"))
    assert (found.labelled_tokens, found.weighted_sentences) == (3, 1)
    assert found.label_counts == {"X": 1, "?": 1, "X|Y": 1, "Y": 1, "Z": 1}
    assert found.label_scheme is None
    assert report(read("conll", COLUMNS)).labelled_tokens == 5


def test_only_complete_sentences_are_held_out() -> None:
    text = b"a X\nb ?\n\n" * 8 + b"c X\n\nd Y\n\n"
    corpus = read("conll", text, partial="true")
    for seed in range(5):
        train, dev = corpus.split(0.5, seed)
        assert (train.sentences, dev.sentences) == (9, 1)
        assert dev.complete().size == 1
    with pytest.raises(Invalid) as caught:
        read("conll", COLUMNS, partial="true").split(0.5, 1)
    assert caught.value.code == "no_complete_sentence"


def test_weights_stay_with_their_sentences() -> None:
    corpus = read("crfsuite", CRFSUITE)
    part = corpus.subset(np.array([1, 2]))
    assert part.weights is not None
    assert part.weights.tolist() == np.float32([2.5, 1e-3]).tolist()


def test_open_labels_cannot_be_written_as_annotations() -> None:
    with pytest.raises(Invalid) as caught:
        written(read("conll", COLUMNS, partial="true"), "brat")
    assert caught.value.code == "unwritable_value"
