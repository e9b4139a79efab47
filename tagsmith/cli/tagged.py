"""Tagged sentences in the forms that `tagsmith tag` writes."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tagsmith.cli import output
from tagsmith.cli.inputs import InputLine
from tagsmith.core.corpus.formats.recognition import UNIVERSAL_TAGS

OutputFormat = Literal["inline", "spans", "columns", "tags", "conllu", "json"]
FORMATS: tuple[OutputFormat, ...] = ("inline", "spans", "columns", "tags", "conllu", "json")

#: Fields of a token in CoNLL-U.
FIELDS = 10
#: Colours of labels on a terminal, chosen by a checksum of the label. The label is always written as well.
COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


@dataclass(frozen=True, slots=True)
class LabelledSpan:
    """A labelled span of a sentence: tokens `start` to `stop`, and in a text characters `begin` to `end`."""

    type: str
    start: int
    stop: int
    text: str
    begin: int | None = None
    end: int | None = None
    probability: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that are known, with the names of the API."""
        fields: dict[str, Any] = {
            "type": self.type,
            "start": self.start,
            "stop": self.stop,
            "text": self.text,
        }
        more = {"begin": self.begin, "end": self.end, "probability": _rounded(self.probability)}
        return fields | {name: value for name, value in more.items() if value is not None}


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """One tagged sentence, or one line of a text. Lists that were not needed are empty."""

    rows: list[list[str]]
    tags: list[str] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    spans: list[LabelledSpan] = field(default_factory=list)
    #: For a text: the line itself, and the words for models that segment text.
    text: str | None = None
    words: list[str] = field(default_factory=list)
    #: Character of the text at which the line begins.
    begin: int = 0
    #: For columns: the lines of the input, which columns and CoNLL-U keep.
    lines: list[InputLine] = field(default_factory=list)


def writer(name: OutputFormat, *, terminal: bool, colour: bool) -> Callable[[TaggedSentence], str]:
    """Return the function that writes a sentence, with its last line break. A terminal gets aligned columns."""
    if name == "inline":
        return lambda sentence: _inline(sentence, colour=colour)
    if name in ("columns", "spans") and terminal:
        plain = _columns if name == "columns" else _spans
        return lambda sentence: _aligned(plain(sentence))
    functions: dict[OutputFormat, Callable[[TaggedSentence], str]] = {
        "spans": _spans,
        "columns": _columns,
        "tags": lambda sentence: " ".join(sentence.tags) + "\n",
        "conllu": _conllu,
        "json": _json,
    }
    return functions[name]


def _aligned(text: str) -> str:
    """Align columns that are separated by tabs."""
    from rich.cells import cell_len  # noqa: PLC0415

    rows = [line.split("\t") for line in text.splitlines()]
    full = [row for row in rows if len(row) > 1]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*full, strict=True)]
    lines = [
        "  ".join(
            cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=False)
        ).rstrip()
        for row in rows
    ]
    return "".join(f"{line}\n" for line in lines)


def _spans(sentence: TaggedSentence) -> str:
    return "".join("\t".join(_span_fields(span, sentence.begin)) + "\n" for span in sentence.spans)


def _span_fields(span: LabelledSpan, before: int) -> Iterator[str]:
    yield span.text
    yield span.type
    yield "" if span.probability is None else f"{span.probability:.2f}"
    first, last = (
        (span.start, span.stop) if span.begin is None or span.end is None else (span.begin, span.end)
    )
    offset = 0 if span.begin is None else before
    yield str(first + offset)
    yield str(last + offset)


def _columns(sentence: TaggedSentence) -> str:
    """One line per token, with its tag at the end. Lines of the input stay as they are."""
    if not sentence.lines:
        ends = _ends(sentence, "\t")
        return "".join(f"{row[0]}{next(ends)}\n" for row in sentence.rows) + "\n"
    separator = "\t" if any("\t" in line.text for line in sentence.lines) else " "
    ends = _ends(sentence, separator)
    return "".join(
        (line.text.rstrip(" \t") + next(ends) if line.token else line.text) + line.end
        for line in sentence.lines
    )


def _ends(sentence: TaggedSentence, separator: str) -> Iterator[str]:
    """What is added to each token: its tag, and its probability if there is one."""
    for place, tag in enumerate(sentence.tags):
        cells = ["", tag]
        if sentence.probabilities:
            cells.append(f"{sentence.probabilities[place]:.4f}")
        yield separator.join(cells)


def _conllu(sentence: TaggedSentence) -> str:
    """Tags of Universal Dependencies go to UPOS, others to MISC. CoNLL-U input keeps its lines and other fields."""
    universal = UNIVERSAL_TAGS.issuperset(sentence.tags)
    tags = iter(sentence.tags)
    if all(line.text.count("\t") == FIELDS - 1 for line in sentence.lines if line.token) and sentence.lines:
        return "".join(
            (_with_tag(line.text.split("\t"), next(tags), universal=universal) if line.token else line.text)
            + line.end
            for line in sentence.lines
        )
    lines = [] if sentence.text is None else [f"# text = {sentence.text}\n"]
    for number, row in enumerate(sentence.rows, start=1):
        cells = [str(number), row[0], *["_"] * (FIELDS - 2)]
        lines.append(_with_tag(cells, next(tags), universal=universal) + "\n")
    return "".join(lines) + "\n"


def _with_tag(cells: list[str], tag: str, *, universal: bool) -> str:
    if universal:
        cells[3] = tag
    else:
        cells[9] = _misc(cells[9], tag)
    return "\t".join(cells)


def _misc(before: str, tag: str) -> str:
    return f"Tag={tag}" if before == "_" else f"{before}|Tag={tag}"


def _json(sentence: TaggedSentence) -> str:
    tokens: list[Any] = [row[0] if len(row) == 1 else row for row in sentence.rows]
    made: dict[str, Any] = {} if sentence.text is None else {"text": sentence.text}
    made |= {"words": sentence.words} if sentence.words else {"tokens": tokens}
    if sentence.tags:
        made["tags"] = sentence.tags
    made["spans"] = [span.as_dict() for span in sentence.spans]
    if sentence.probabilities:
        made["marginals"] = [_rounded(each) for each in sentence.probabilities]
    return json.dumps(made, ensure_ascii=False) + "\n"


def _inline(sentence: TaggedSentence, *, colour: bool) -> str:
    """The text itself, each span with its label behind it."""
    if sentence.words:
        return " ".join(sentence.words) + "\n"
    text = sentence.text if sentence.text is not None else " ".join(row[0] for row in sentence.rows)
    parts, done = [], 0
    for span in sentence.spans:
        begin, end = (span.begin, span.end) if span.begin is not None else _places(sentence, span)
        assert begin is not None
        assert end is not None
        parts += [text[done:begin], _marked(text[begin:end], span, colour=colour)]
        done = end
    return "".join([*parts, text[done:]]) + "\n"


def _places(sentence: TaggedSentence, span: LabelledSpan) -> tuple[int, int]:
    """Characters of a span in tokens that are joined by blanks."""
    begin = sum(len(row[0]) + 1 for row in sentence.rows[: span.start])
    return begin, begin + sum(len(row[0]) + 1 for row in sentence.rows[span.start : span.stop]) - 1


def _marked(text: str, span: LabelledSpan, *, colour: bool) -> str:
    certain = "" if span.probability is None else f" {span.probability:.2f}"
    if not colour:
        return f"[{text} {span.type}{certain}]"
    style = COLOURS[sum(span.type.encode()) % len(COLOURS)]
    console = output.console()
    with console.capture() as capture:
        console.print(output.styled(text, f"bold {style}"), end="", soft_wrap=True)
        console.print(output.styled(f" {span.type}{certain}", f"dim {style}"), end="", soft_wrap=True)
    return f"[{capture.get()}]"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
