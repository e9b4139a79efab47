"""`spans`: JSON lines with texts and labelled spans of characters, as annotation tools export them.

One text per line, `{"text": "...", "spans": [[0, 3, "PER"]]}`; `entities`, `label` and `labels` are accepted for
`spans`. A span is a list or an object. Other fields are ignored. Labels are in IOB2.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from pydantic import Field

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.base import Format, Limits, Options
from tagsmith.core.corpus.formats.json_lines import InvalidLine, JsonLineReader
from tagsmith.core.corpus.formats.lines import FAULTS, LINE, TOKENS
from tagsmith.core.corpus.formats.ndjson import LABEL_FIELDS
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.formats.writing import TextColumn, batches, written_columns, written_text
from tagsmith.core.corpus.text.placement import CharacterSpan, Conflicts, LabelledTexts, TokenSpan, place
from tagsmith.core.corpus.text.tokenizer import Tokenizer

#: Names of the field that holds the spans. The first one that a line has is read.
_SPAN_FIELDS = ("spans", "entities", "label", "labels")
#: Names of the fields of a span that is an object.
_STARTS, _STOPS, _TYPES = ("start", "start_offset"), ("end", "end_offset"), ("label", "type", "labels")
#: Characters of a span that a message shows.
_SHOWN = 40
_PARTS = 3

#: The tokenizer of texts unless the options name one. A stored corpus is read again, so the version does not change.
DEFAULT = Tokenizer("words", 2)


class SpansReader(JsonLineReader):
    """Reads texts with spans. A text can have several sentences."""

    shape = '{"text": "...", "spans": [[0, 3, "PER"]]}'

    def __init__(
        self,
        *,
        max_line_bytes: int,
        labelled: bool = True,
        tokenizer: Tokenizer = DEFAULT,
        resolve: bool = False,
    ) -> None:
        super().__init__(max_line_bytes=max_line_bytes)
        self._labelled = labelled
        self._tokenizer = tokenizer
        self._resolve = resolve
        self._texts = LabelledTexts(tokenizer, labelled=labelled)
        self._batches = 0

    def _add(self, given: dict[str, Any]) -> None:
        text = given.get("text")
        if not isinstance(text, str):
            raise InvalidLine("must be a string", "text")
        tokens = self._tokenizer.split(text)
        spans: list[TokenSpan] = []
        if self._labelled:
            found = _spans_of(given, text, int(self._state[LINE]))
            tokens, spans, wrong = place(text, tokens, found, resolve=self._resolve)
            if wrong:
                raise InvalidLine(f"{wrong[0].span.name}: {wrong[0].reason}")
        if not self._state[FAULTS]:
            self._texts.add(text, tokens, spans)

    def _end_batch(self, lines: bytes, before: int) -> None:
        del lines, before
        self._texts.join(self._batches)
        self._batches += 1
        self._state[TOKENS] = self._texts.tokens

    def _corpus(self) -> Corpus:
        return self._texts.corpus()


def _spans_of(given: Mapping[str, Any], text: str, line: int) -> list[CharacterSpan]:
    field = next((name for name in _SPAN_FIELDS if name in given), None)
    if field is None:
        raise InvalidLine(f"has none of the fields {', '.join(_SPAN_FIELDS)}")
    spans = [] if given[field] is None else given[field]
    if not isinstance(spans, list):
        raise InvalidLine("must be a list of spans", field)
    return [_span(span, text, line, (field, number)) for number, span in enumerate(spans)]


def _span(span: Any, text: str, line: int, path: tuple[str, int]) -> CharacterSpan:
    parts: list[Any] = span if isinstance(span, list) else []
    if isinstance(span, dict):
        parts = [
            next((span[name] for name in names if name in span), None) for names in (_STARTS, _STOPS, _TYPES)
        ]
    if len(parts) != _PARTS or not all(type(number) is int for number in parts[:2]):
        raise InvalidLine('must be [start, end, label] or {"start": 0, "end": 3, "label": "PER"}', *path)
    start, stop, kind = parts
    if isinstance(kind, list) and len(kind) == 1:
        kind = kind[0]
    if not isinstance(kind, str) or not kind or not kind.isprintable():
        raise InvalidLine("its label must be a string of printable characters", *path)
    if not 0 <= start < stop <= len(text):
        raise InvalidLine(f"{start} to {stop} is outside the text of {len(text)} characters", *path)
    quoted = text[start:stop] if stop - start <= _SHOWN else f"{text[start : start + _SHOWN]}..."
    return CharacterSpan(start, stop, kind, f"{quoted!r} at {start}", line)


def write_spans(corpus: Corpus) -> Iterator[bytes]:
    """Write one sentence per line: its tokens with spaces between them, and its chunks as spans."""
    return _lines(written_columns(corpus, "spans"), corpus.offsets.tolist())


def _lines(columns: list[TextColumn], bounds: list[int]) -> Iterator[bytes]:
    for cells, cuts in batches(columns, bounds):
        lines = []
        for a, b in cuts:
            text, spans = written_text([column[a:b] for column in cells], [(0, b - a)])
            found = [{"start": start, "end": stop, "label": kind} for start, stop, kind in spans]
            lines.append(orjson.dumps({"text": text.removesuffix("\n"), "spans": found}) + b"\n")
        yield b"".join(lines)


class SpansOptions(Options):
    """What to do with spans that do not fit the tokens."""

    conflicts: Conflicts = Field(
        default="refuse",
        description="What to do with spans that overlap or cut a token: `refuse`, or `resolve` (keep the longest, "
        "extend to whole tokens).",
    )


def _reader(options: SpansOptions, limits: Limits) -> SpansReader:
    return SpansReader(
        max_line_bytes=limits.max_line_bytes,
        labelled=options.labelled,
        tokenizer=options.tokenizer or DEFAULT,
        resolve=options.conflicts == "resolve",
    )


def _writer(corpus: Corpus, _: SpansOptions) -> Iterator[bytes]:
    return write_spans(corpus)


def _recognises(head: Head) -> bool:
    """JSON objects with a text, and without labelled tokens. Some tools add the tokens of the text."""
    fields = head.json_fields
    return "text" in fields and not ("tokens" in fields and fields & {*LABEL_FIELDS})


FORMAT = Format(
    name="spans",
    options=SpansOptions,
    reader=_reader,
    writer=_writer,
    media_type="application/x-ndjson",
    recognises=_recognises,
    order=7,
)
