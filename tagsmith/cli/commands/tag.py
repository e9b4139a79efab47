"""`tag`: label text, columns or NDJSON with a model."""

import gc
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Protocol

import typer

from tagsmith.cli import complete, inputs, output, recognition
from tagsmith.cli.connection import connected
from tagsmith.cli.errors import CommandError, unknown
from tagsmith.cli.inputs import Rows
from tagsmith.cli.options import LocalOptions, command
from tagsmith.cli.recognition import Content
from tagsmith.cli.tagged import FORMATS, LabelledSpan, OutputFormat, TaggedSentence, writer

if TYPE_CHECKING:
    from tagsmith.cli.local.tagging import LocalEngine
    from tagsmith.client import Client
    from tagsmith.wire import TagResponse

INPUTS: tuple[Content, ...] = ("text", "columns", "ndjson", "conllu")
#: Sentences of one request or one call of the engine: large compared with its cost, small compared with memory.
BATCH = 500


@dataclass(frozen=True, kw_only=True)
class TagCommandOptions(LocalOptions):
    """Options of `tag`."""

    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="name, name:3, name@alias; a file with --local.",
            autocompletion=complete.models,
        ),
    ]
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Default: standard input.")] = None
    input: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="text, columns, ndjson or conllu; recognised by default."),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help="inline, spans, columns, tags, conllu or json. "
            "Default: columns for columns, json for ndjson; for text inline on a terminal, else spans.",
        ),
    ] = None
    probabilities: Annotated[
        bool | None,
        typer.Option("--probabilities/--no-probabilities", help="Of tags and spans; default: for text."),
    ] = None
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="words, blanks or characters; default: that of the model."),
    ] = None
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Default: standard output.")
    ] = None


class TaggingEngine(Protocol):
    """Something that tags: a server, or a model file."""

    def rows(self, sentences: list[Rows]) -> list[TaggedSentence]:
        """Tag sentences."""
        ...

    def text(self, lines: list[str]) -> list[TaggedSentence]:
        """Tag lines of text; each gives one entry."""
        ...

    def objects(self, objects: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Tag the objects of NDJSON; each gives one."""
        ...


@dataclass(frozen=True, slots=True)
class TagPlan:
    """What to read and to write."""

    content: Content
    format: OutputFormat
    probabilities: bool
    tokenizer: str | None

    @classmethod
    def of(cls, options: TagCommandOptions, head: bytes, columns: int | None) -> "TagPlan":
        """Return the plan of the options, completed by what the input looks like."""
        if options.input is not None and options.input not in INPUTS:
            raise unknown("input", options.input, INPUTS)
        if options.format is not None and options.format not in FORMATS:
            raise unknown("format", options.format, FORMATS)
        content = options.input or recognition.content_of(head, columns)
        chosen = options.format or _default_format(content, options.out)
        likely = content == "text" if options.probabilities is None else options.probabilities
        return cls(content, chosen, likely, options.tokenizer)


def _default_format(content: Content, out: Path | None) -> OutputFormat:
    if content == "text":
        return "inline" if out is None and sys.stdout.isatty() else "spans"
    return {"columns": "columns", "ndjson": "json", "conllu": "conllu"}[content]  # type: ignore[return-value]


def tag(options: TagCommandOptions) -> int:
    """Tag text, columns or NDJSON: `tagsmith tag ner < article.txt`."""
    with inputs.opened(options.file) as source, _target(options.out) as target:
        head, blocks = inputs.head_of(source)
        if options.local:
            engine = _local_engine(Path(options.model))
            plan = TagPlan.of(options, head, engine.columns)
            if plan.content == "columns" and plan.format == "columns" and not options.as_json:
                engine.tag_columns(blocks, target, probabilities=plan.probabilities)
            else:
                _run(engine.with_plan(plan), plan, blocks, target, as_json=options.as_json)
            return 0
        plan = TagPlan.of(options, head, None)
        with connected(options.url) as client:
            _run(ServerEngine(client, options.model, plan), plan, blocks, target, as_json=options.as_json)
    return 0


def _local_engine(path: Path) -> "LocalEngine":
    """Open a model file. Numba creates half a million objects on the way, which no collection can free."""
    gc.disable()
    from tagsmith.cli.local import tagging  # noqa: PLC0415

    engine = tagging.LocalEngine.open(path)
    gc.freeze()
    gc.enable()
    return engine


def _run(
    engine: TaggingEngine, plan: TagPlan, blocks: Iterable[bytes], target: IO[bytes], *, as_json: bool
) -> None:
    import json  # noqa: PLC0415

    if plan.content == "ndjson":
        for made in engine.objects(inputs.objects_of(blocks)):
            target.write(json.dumps(made, ensure_ascii=False).encode() + b"\n")
        return
    terminal = target is sys.stdout.buffer and sys.stdout.isatty()
    chosen: OutputFormat = "json" if as_json else plan.format
    write = writer(chosen, terminal=terminal, colour=terminal and not output.console().no_color)
    for sentence in _tagged(engine, plan, blocks):
        target.write(write(sentence).encode())


def _tagged(engine: TaggingEngine, plan: TagPlan, blocks: Iterable[bytes]) -> Iterator[TaggedSentence]:
    if plan.content != "text":
        sentences = inputs.sentences_of(blocks, tabs=plan.content == "conllu")
        while batch := list(islice(sentences, BATCH)):
            yield from engine.rows(batch)
        return
    lines = inputs.lines_of(blocks)
    begin = 0
    # The first line is tagged at once: a person who types sees the result.
    for size in _sizes():
        batch_of_lines = list(islice(lines, size))
        if not batch_of_lines:
            return
        for line, sentence in zip(batch_of_lines, engine.text(batch_of_lines), strict=True):
            yield _placed(sentence, line, begin)
            begin += len(line) + 1


def _sizes() -> Iterator[int]:
    yield 1
    while True:
        yield BATCH


def _placed(sentence: TaggedSentence, line: str, begin: int) -> TaggedSentence:
    return TaggedSentence(
        sentence.rows, sentence.tags, sentence.probabilities, sentence.spans, line, sentence.words, begin
    )


class ServerEngine:
    """Tags with a model of a server. The first response fixes the version for all that follow."""

    def __init__(self, client: "Client", model: str, plan: TagPlan) -> None:
        self._client = client
        self._model = model
        self._plan = plan
        #: Formats that need a tag per token; the others need spans.
        self._output = "tags" if plan.format in ("columns", "tags", "conllu") else "spans"

    def rows(self, sentences: list[Rows]) -> list[TaggedSentence]:
        """Tag sentences of columns."""
        # Of CoNLL-U, the form is what models of text use.
        given = (
            [[row[1:2] for row in rows] for rows in sentences]
            if self._plan.content == "conllu"
            else sentences
        )
        response = self._tag(sentences=given)
        return [self._entry(response, i, rows) for i, rows in enumerate(sentences)]

    def text(self, lines: list[str]) -> list[TaggedSentence]:
        """Tag lines of text."""
        response = self._tag(text=lines)
        # A model that segments text tags characters.
        found = response.tokens or [[each for each in line if not each.isspace()] for line in lines]
        return [
            self._entry(response, i, [[token] for token in tokens], lines[i])
            for i, tokens in enumerate(found)
        ]

    def objects(self, objects: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Tag the objects of NDJSON with the streaming interface."""
        options: dict[str, Any] = {"output": "tags" if self._plan.format == "tags" else "spans"}
        if self._plan.probabilities:
            options["marginals"] = True
        for line in self._client.tag_lines(self._model, objects, **options):
            yield output.plain(line)

    def _tag(self, **given: Any) -> "TagResponse":
        options: dict[str, Any] = {"marginals": True} if self._plan.probabilities else {}
        if self._plan.tokenizer is not None and "text" in given:
            options["tokenizer"] = self._plan.tokenizer
        response = self._client.tag(self._model, output=self._output, **given, **options)
        self._model = f"{response.model}:{response.version}"
        return response

    def _entry(self, response: "TagResponse", i: int, rows: Rows, text: str | None = None) -> TaggedSentence:
        marginals = response.marginals[i] if response.marginals else []
        tags = response.tags[i] if response.tags else []
        spans = []
        for span in response.spans[i] if response.spans else ():
            given = getattr(span, "probability", None)
            likely = given if given is not None else min(marginals[span.start : span.stop], default=None)
            inside = span.begin is not None and span.end is not None and text is not None
            words = " ".join(row[0] for row in rows[span.start : span.stop])
            said = (text or "")[span.begin : span.end] if inside else words
            spans.append(LabelledSpan(span.type, span.start, span.stop, said, span.begin, span.end, likely))
        words_found = response.words[i] if response.words else []
        return TaggedSentence(rows, tags, marginals, spans, text, words_found)


class _target:  # noqa: N801  # used as a function
    """Standard output, or a file that appears when it is complete."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._draft = None if path is None else path.with_name(f".{path.name}.part")
        self._file: IO[bytes] | None = None

    def __enter__(self) -> IO[bytes]:
        if self._draft is None:
            sys.stdout.flush()
            return sys.stdout.buffer
        if self._path is not None and self._path.is_dir():
            raise CommandError(f"{self._path} is a folder. Give the name of a file.")
        self._file = self._draft.open("wb")
        return self._file

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._file is None or self._draft is None or self._path is None:
            sys.stdout.buffer.flush()
            return
        self._file.close()
        if kind is None:
            self._draft.replace(self._path)
        else:
            self._draft.unlink()


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "tag", panel="Train and use")(tag)
