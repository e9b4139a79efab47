"""Tagged sentences in the forms that `tagsmith tag` writes."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tagsmith.cli import output
from tagsmith.cli.inputs import InputLine
from tagsmith.core.corpus.formats.recognition import UNIVERSAL_TAGS
from tagsmith.core.corpus.formats.scan.fields import (
    DEPREL,
    EMPTY,
    FORM,
    HEAD,
    MISC,
    UPOS,
    WIDTH,
    sentence_lines,
)

OutputFormat = Literal["inline", "spans", "columns", "tags", "conllu", "json"]
FORMATS: tuple[OutputFormat, ...] = ("inline", "spans", "columns", "tags", "conllu", "json")

#: Those that can hold trees.
TREE_FORMATS: tuple[OutputFormat, ...] = ("conllu", "columns", "json")

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
    #: Of a parser: the number of the head of each token, from 1, and its relation to it. `probabilities` are of heads.
    heads: list[int] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)
    relation_probabilities: list[float] = field(default_factory=list)
    #: For a text: the first token of each sentence, and the first after it.
    sentences: list[tuple[int, int]] = field(default_factory=list)


def writer(
    name: OutputFormat, *, terminal: bool, colour: bool, places: Sequence[int | None] = (FORM,)
) -> Callable[[TaggedSentence], str]:
    """Return the function that writes a sentence, with its last line break. A terminal gets aligned columns.

    `places` has the field of CoNLL-U of each column.
    """
    if name == "inline":
        return lambda sentence: _inline(sentence, colour=colour)
    if name in ("columns", "spans") and terminal:
        plain = _columns if name == "columns" else _spans
        return lambda sentence: _aligned(plain(sentence))
    functions: dict[OutputFormat, Callable[[TaggedSentence], str]] = {
        "spans": _spans,
        "columns": _columns,
        "tags": lambda sentence: " ".join(sentence.tags) + "\n",
        "conllu": lambda sentence: _conllu(sentence, places),
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
    """What is added to each token: its tag or its head and relation, and its probability if there is one."""
    trees = (
        [list(map(str, sentence.heads)), sentence.relations]
        if sentence.relations
        else [map(str, sentence.heads)]
    )
    for place, found in enumerate(zip(*trees, strict=True) if sentence.heads else zip(sentence.tags)):
        cells = ["", *found]
        if sentence.probabilities:
            cells.append(f"{sentence.probabilities[place]:.4f}")
        yield separator.join(cells)


def _conllu(sentence: TaggedSentence, places: Sequence[int | None]) -> str:
    """Tags of Universal Dependencies go to UPOS, others to MISC. CoNLL-U input keeps its lines and other fields."""
    fill = _filling(sentence)
    if all(line.text.count("\t") == WIDTH - 1 for line in sentence.lines if line.token) and sentence.lines:
        tokens = itertools.count()
        return "".join(
            ("\t".join(fill(line.text.split("\t"), next(tokens), 0)) if line.token else line.text) + line.end
            for line in sentence.lines
        )
    # Heads are numbers of words of a sentence, so each sentence of a text is written on its own.
    bounds = sentence.sentences if sentence.heads and sentence.sentences else [(0, len(sentence.rows))]
    text, parts = sentence.text, []
    for first, last in bounds:
        if text is not None and len(bounds) == 1:
            parts.append(f"# text = {text}\n")
        cells = sentence_lines(sentence.rows[first:last], places)
        parts += ["\t".join(fill(each, first + i, first)) + "\n" for i, each in enumerate(cells)]
        parts.append("\n")
    return "".join(parts)


def _filling(sentence: TaggedSentence) -> Callable[[list[str], int, int], list[str]]:
    """Return the function that puts what was found into the fields of a token, given its number and that of the first.

    Both are numbers within the entry, from 0; the first token is that of the sentence.
    """
    universal = UNIVERSAL_TAGS.issuperset(sentence.tags)

    def with_tree(cells: list[str], token: int, first: int) -> list[str]:
        head = sentence.heads[token]
        cells[HEAD] = str(head - first if head else 0)
        cells[DEPREL] = sentence.relations[token] if sentence.relations else EMPTY
        return cells

    def with_tag(cells: list[str], token: int, first: int) -> list[str]:
        del first
        tag = sentence.tags[token]
        if universal:
            cells[UPOS] = tag
        else:
            cells[MISC] = _misc(cells[MISC], tag)
        return cells

    return with_tree if sentence.heads else with_tag


def _misc(before: str, tag: str) -> str:
    return f"Tag={tag}" if before == "_" else f"{before}|Tag={tag}"


def _json(sentence: TaggedSentence) -> str:
    tokens: list[Any] = [row[0] if len(row) == 1 else row for row in sentence.rows]
    made: dict[str, Any] = {} if sentence.text is None else {"text": sentence.text}
    made |= {"words": sentence.words} if sentence.words else {"tokens": tokens}
    if sentence.tags:
        made["tags"] = sentence.tags
    if sentence.heads:
        made |= tree_of(sentence)
    else:
        made["spans"] = [span.as_dict() for span in sentence.spans]
    if sentence.probabilities:
        made["marginals"] = [_rounded(each) for each in sentence.probabilities]
    if sentence.relation_probabilities:
        made["relation_marginals"] = [_rounded(each) for each in sentence.relation_probabilities]
    return json.dumps(made, ensure_ascii=False) + "\n"


def tree_of(sentence: TaggedSentence) -> dict[str, Any]:
    """Return the tree with the names of the API."""
    return {"heads": sentence.heads} | ({"relations": sentence.relations} if sentence.relations else {})


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
