"""Texts with labelled spans of characters, as annotation tools export them."""

import json
from typing import Any

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tests.core.corpus.samples import PeakMemory, pieces, rows_of

ADA = "Ada ran to New York."
ROWS = [[("Ada", "B-PER"), ("ran", "O"), ("to", "O"), ("New", "B-LOC"), ("York", "I-LOC"), (".", "O")]]


def read(*lines: Any, format: str = "spans", **options: str) -> Corpus:  # noqa: A002
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return formats.read([text.encode()], format, max_line_bytes=1000, options=options)


@pytest.mark.parametrize("format", ["spans", "auto"])
@pytest.mark.parametrize(
    "line",
    [
        {"text": ADA, "spans": [[0, 3, "PER"], [11, 19, "LOC"]]},
        {"text": ADA, "spans": [[11, 19, "LOC"], [0, 3, "PER"]]},
        # Doccano
        {"id": 7, "text": ADA, "label": [[0, 3, "PER"], [11, 19, "LOC"]]},
        {"text": ADA, "entities": [{"id": 1, "label": "PER", "start_offset": 0, "end_offset": 3},
                                   {"id": 2, "label": "LOC", "start_offset": 11, "end_offset": 19}]},
        # Prodigy
        {"text": ADA, "tokens": [{"text": "Ada", "start": 0, "end": 3, "id": 0}], "answer": "accept",
         "spans": [{"start": 0, "end": 3, "label": "PER"}, {"start": 11, "end": 19, "label": "LOC"}]},
        # Label Studio, JSON-MIN
        {"text": ADA, "label": [{"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]},
                                {"start": 11, "end": 19, "text": "New York", "labels": ["LOC"]}]},
        {"text": ADA, "labels": [{"start": 0, "end": 3, "type": "PER"}, {"start": 10, "end": 19, "type": "LOC"}]},
    ],
)  # fmt: skip
def test_exports_of_annotation_tools_are_read(line: dict[str, Any], format: str) -> None:  # noqa: A002
    corpus = read(line, format=format)
    assert rows_of(corpus) == ROWS
    assert corpus.tokenizer == Tokenizer("words", 2)


def test_a_text_without_spans_has_no_labels_but_o_and_characters_count_not_bytes() -> None:
    corpus = read({"text": "Ä ö", "spans": None}, {"text": "Ü 😀 Ada", "spans": [[4, 7, "PER"]]})
    assert rows_of(corpus) == [[("Ä", "O"), ("ö", "O")], [("Ü", "O"), ("😀", "O"), ("Ada", "B-PER")]]


def test_sentences_end_by_the_rules_but_not_inside_a_span() -> None:
    line = {"text": "He left. She won.\nYahoo! Inc. is big.", "spans": [[18, 29, "ORG"]]}
    lengths = [len(rows) for rows in rows_of(read(line))]
    assert len(lengths) == 3
    assert rows_of(read(line))[2][:3] == [("Yahoo", "B-ORG"), ("!", "I-ORG"), ("Inc.", "I-ORG")]


def test_the_tokenizer_splits_the_texts_and_conflicts_are_resolved_if_asked() -> None:
    line = {"text": "pre-war York", "spans": [[4, 7, "X"], [8, 12, "LOC"]]}
    assert rows_of(read(line, tokenizer='{"pattern": "[a-z]+"}'))[0][1] == ("war", "B-X")
    resolved = rows_of(read(line, tokenizer="blanks", conflicts="resolve"))
    assert resolved == [[("pre-war", "B-X"), ("York", "B-LOC")]]


def test_unlabelled_texts_need_no_spans() -> None:
    assert read({"text": "Ada ran"}, labelled="false").labels is None


SPAN = 'must be [start, end, label] or {"start": 0, "end": 3, "label": "PER"}'
LABEL = "its label must be a string of printable characters"
CUT = "begins or ends inside a token; choose another tokenizer, or extend it with conflicts=resolve"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ([], 'must be an object {"text": "...", "spans": [[0, 3, "PER"]]}'),
        ({"text": 3}, "/text: must be a string"),
        ({"text": "Ada"}, "has none of the fields spans, entities, label, labels"),
        ({"text": "Ada", "label": "PER"}, "/label: must be a list of spans"),
        ({"text": "Ada", "spans": [[0, 3]]}, f"/spans/0: {SPAN}"),
        ({"text": "Ada", "spans": ["Ada"]}, f"/spans/0: {SPAN}"),
        ({"text": "Ada", "spans": [{"start": 0, "label": "PER"}]}, f"/spans/0: {SPAN}"),
        ({"text": "Ada", "spans": [[0, True, "PER"]]}, f"/spans/0: {SPAN}"),
        ({"text": "Ada", "spans": [[0, 3, ""]]}, f"/spans/0: {LABEL}"),
        ({"text": "Ada", "spans": [[0, 3, ["A", "B"]]]}, f"/spans/0: {LABEL}"),
        ({"text": "Ada", "spans": [[0, 3, "A\0"]]}, f"/spans/0: {LABEL}"),
        ({"text": "Ada", "spans": [[0, 4, "PER"]]}, "/spans/0: 0 to 4 is outside the text of 3 characters"),
        ({"text": "Ada", "spans": [[2, 2, "PER"]]}, "/spans/0: 2 to 2 is outside the text of 3 characters"),
        ({"text": "Ada", "spans": [[-3, 3, "PER"]]}, "/spans/0: -3 to 3 is outside the text of 3 characters"),
        ({"text": "Ada", "spans": [[0, 10**30, "PER"]]}, f"/spans/0: {SPAN}"),
        ({"text": "a  b", "spans": [[1, 2, "X"]]}, "' ' at 1: contains no token"),
        ({"text": "Adas", "spans": [[0, 3, "PER"]]}, f"'Ada' at 0: {CUT}"),
        ({"text": "a" * 99, "spans": [[0, 98, "X"]]}, f"'{'a' * 40}...' at 0: {CUT}"),
        ({"text": "Ada\nBob", "spans": [[0, 7, "PER"]]}, "'Ada\\nBob' at 0: crosses the end of a line of text"),
        ({"text": ADA, "spans": [[11, 19, "LOC"], [15, 19, "X"]]}, "'York' at 15: overlaps 'New York' at 11"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_located(line: Any, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        read({"text": "ok", "spans": []}, line)
    (fault,) = caught.value.faults
    assert fault.line == 2
    assert fault.reason.startswith(reason), fault.reason


def test_every_wrong_line_is_reported_and_bytes_that_are_not_utf8_with_the_remedy() -> None:
    with pytest.raises(Invalid) as caught:
        read({"text": 1}, {"text": "a", "spans": []}, {"text": 2})
    assert [fault.line for fault in caught.value.faults] == [1, 3]
    with pytest.raises(Invalid, match="iconv") as caught:
        formats.read([b'{"text": "\xfc", "spans": []}\n'], "auto", max_line_bytes=1000)
    assert caught.value.faults[0].reason == "not UTF-8: byte 0xFC at byte 11"


def test_memory_does_not_grow_with_the_text() -> None:
    line = json.dumps({"text": ADA, "meta": "x" * 500, "spans": [[0, 3, "PER"]]}).encode() + b"\n"
    reader = formats.reader("spans", max_line_bytes=1000)
    reader.feed(line * 200)
    with PeakMemory() as memory:
        for piece in pieces(line * 40_000, 1 << 16):
            reader.feed(piece)
    assert memory.grown_bytes < len(line) * 40_000 * 2
    assert reader.finish().tokens == 6 * 40_200
