"""`tag`: label or parse text, columns, NDJSON or CoNLL-U with a model."""

import gc
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from tagsmith.cli import complete, inputs, output, recognition, word_lines
from tagsmith.cli.connection import connected, model_input
from tagsmith.cli.errors import FAILURE, CommandError, unknown
from tagsmith.cli.files import target_of
from tagsmith.cli.inputs import Rows
from tagsmith.cli.options import LocalOptions, command
from tagsmith.cli.recognition import Content, ModelInput
from tagsmith.cli.tagged import (
    FORMATS,
    TREE_FORMATS,
    LabelledSpan,
    OutputFormat,
    TaggedSentence,
    writer,
)
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.formats.scan import fields as word_fields

if TYPE_CHECKING:
    from tagsmith.cli.local.tagging import LocalEngine
    from tagsmith.client import Client
    from tagsmith.wire import TagResponse

INPUTS: tuple[Content, ...] = ("text", "columns", "ndjson", "conllu")
TOO_LARGE = 413
ItemT = TypeVar("ItemT")
#: What a server returns for each format: tags, spans or both.
OUTPUTS: dict[OutputFormat, str] = {
    "inline": "spans",
    "spans": "spans",
    "columns": "tags",
    "tags": "tags",
    "conllu": "tags",
    "json": "both",
}


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
            "Default: columns for columns, json for ndjson, conllu for conllu; for text inline on a terminal, else "
            "spans, and conllu from a parser.",
        ),
    ] = None
    probabilities: Annotated[
        bool | None,
        typer.Option(
            "--probabilities/--no-probabilities", help="Of tags, spans and heads; default: of spans in text."
        ),
    ] = None
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="words, blanks, characters or JSON; default: that of the model."),
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
    with_probabilities: bool
    tokenizer: str | None
    #: The fields of CoNLL-U that are the columns of the model, None for columns that are no fields.
    places: Sequence[int | None] = (word_fields.FORM,)
    parses: bool = False

    @classmethod
    def of(cls, options: TagCommandOptions, content: Content, model: ModelInput) -> "TagPlan":
        """Return the plan of the options for this content."""
        named = "json" if options.as_json else options.format
        default = _default_format(content, options.out, parses=model.parses)
        chosen = next((each for each in FORMATS if each == named), default)
        if content == "ndjson" and chosen != "json":
            raise CommandError(f"NDJSON cannot be written as {chosen}. Leave --format out.")
        if model.parses and chosen not in TREE_FORMATS:
            raise CommandError(
                f"{options.model} is a parser. Its trees cannot be written as {chosen}: use conllu."
            )
        with_probabilities = options.probabilities
        if with_probabilities is None:
            with_probabilities = content == "text" and not model.parses
        places: Sequence[int | None] = (word_fields.FORM,)
        if content == "conllu":
            places = word_lines.places_of(options.model, model)
        elif model.parses and content == "columns":
            places = word_fields.places_of(model.names)
        return cls(content, chosen, with_probabilities, options.tokenizer, places, model.parses)


def _default_format(content: Content, out: Path | None, *, parses: bool) -> OutputFormat:
    if content == "text" and parses:
        return "conllu"
    if content == "text":
        return "inline" if str(out or "-") == "-" and sys.stdout.isatty() else "spans"
    return {"columns": "columns", "ndjson": "json", "conllu": "conllu"}[content]  # type: ignore[return-value]


def tag(options: TagCommandOptions) -> int:
    """Tag or parse text, columns, NDJSON or CoNLL-U: `tagsmith tag ner < article.txt`."""
    if options.input is not None and options.input not in INPUTS:
        raise unknown("input", options.input, INPUTS)
    if options.format is not None and options.format not in FORMATS:
        raise unknown("format", options.format, FORMATS)
    if options.file is not None and not options.file.exists() and Path(options.model).is_file():
        raise CommandError(
            f"{options.model} is a file. Give the model first: tagsmith tag {options.file} {options.model}"
        )
    run = _run_local if options.local else _run_on_server
    model = Path(options.model) if options.local else None
    with (
        inputs.opened(options.file) as source,
        target_of(options.out, "--out", input=options.file, model=model) as target,
    ):
        failed = run(options, source, target)
    if failed:
        lines = "1 line was" if failed == 1 else f"{failed:,} lines were"
        raise CommandError(f"{lines} not tagged. See `error` in the output.", code=FAILURE)
    return 0


def _run_local(options: TagCommandOptions, source: BufferedIOBase, target: IO[bytes]) -> int:
    engine = _local_engine(Path(options.model))
    plan, blocks = _planned(options, source, engine.model_input)
    if plan.content == plan.format == "columns" and not plan.parses:
        engine.tag_columns(blocks, target, with_probabilities=plan.with_probabilities)
        return 0
    return _run(engine.with_plan(plan), plan, blocks, target)


def _run_on_server(options: TagCommandOptions, source: BufferedIOBase, target: IO[bytes]) -> int:
    with connected(options.url) as client:
        found = model_input(client, options.model)
        plan, blocks = _planned(options, source, found)
        return _run(ServerEngine(client, options.model, plan), plan, blocks, target)


def _local_engine(path: Path) -> "LocalEngine":
    """Open a model file. Numba creates half a million objects on the way, which no collection can free."""
    gc.disable()
    from tagsmith.cli.local import tagging  # noqa: PLC0415

    engine = tagging.LocalEngine.open(path)
    gc.freeze()
    gc.enable()
    return engine


def _planned(
    options: TagCommandOptions, source: BufferedIOBase, model: ModelInput
) -> tuple[TagPlan, Iterator[bytes]]:
    """Return what to do with the source, and its content."""
    blocks = recognition.decoded(source)
    content = next((each for each in INPUTS if each == options.input), None)
    head, blocks = inputs.head_of(blocks, typed=source.isatty() or content is not None)
    if content is None:
        content = recognition.content_of(head, model)
    _check_columns(options.model, content, head, model)
    return TagPlan.of(options, content, model), blocks


def _check_columns(name: str, content: Content, head: Head, model: ModelInput) -> None:
    """Raise CommandError for input that lacks what the model needs."""
    lines = [line for line in head.filled if not line.startswith(inputs.DOCUMENT_START)]
    if content == "ndjson" or model.columns is None or not lines:
        return
    if model.columns == 0:
        raise CommandError(f"{name} takes tokens with named attributes. Give NDJSON with tokens.")
    if content == "conllu":
        return  # its fields are known by name
    have = len(lines[0].split())
    if model.columns > 1 and (content == "text" or have < model.columns):
        raise CommandError(
            f"{name} needs {model.columns} columns per token; line {head.lines.index(lines[0]) + 1} has {have}. "
            "To tag raw text, train with --option columns=0."
        )


def _run(engine: TaggingEngine, plan: TagPlan, blocks: Iterable[bytes], target: IO[bytes]) -> int:
    """Tag the input, and return the number of lines of NDJSON that could not be tagged."""
    if plan.content == "ndjson":
        failed = 0
        for made in engine.objects(inputs.read_objects(blocks)):
            failed += "error" in made
            target.write(json.dumps(made, ensure_ascii=False).encode() + b"\n")
            target.flush()
        return failed
    terminal = target is sys.stdout.buffer and sys.stdout.isatty()
    colour = terminal and not output.console().no_color
    write = writer(plan.format, terminal=terminal, colour=colour, places=plan.places)
    for sentences in _tagged(engine, plan, blocks):
        target.write("".join(map(write, sentences)).encode())
        target.flush()
    return 0


def _tagged(engine: TaggingEngine, plan: TagPlan, blocks: Iterable[bytes]) -> Iterator[list[TaggedSentence]]:
    if plan.content != "text":
        places = [place for place in plan.places if place is not None]
        word = word_lines.row_of(places) if plan.content == "conllu" else None
        for sentences in inputs.read_sentences(blocks, word):
            tagged = iter(engine.rows([each.rows for each in sentences if each.rows]))
            yield [
                replace(next(tagged) if each.rows else TaggedSentence([]), lines=each.lines)
                for each in sentences
                if each.rows or plan.format in ("columns", "conllu")
            ]
        return
    for lines in inputs.read_lines(blocks):
        found = engine.text([line.text for line in lines])
        yield [replace(each, begin=line.begin) for line, each in zip(lines, found, strict=True)]


class ServerEngine:
    """Tags with a model of a server. The first response fixes the version for all that follow."""

    def __init__(self, client: "Client", model: str, plan: TagPlan) -> None:
        self._client = client
        self._model = model
        self._options: dict[str, Any] = {"output": "tags" if plan.parses else OUTPUTS[plan.format]}
        if plan.with_probabilities:
            self._options["marginals"] = True
        self._tokenizer = {} if plan.tokenizer is None else {"tokenizer": _tokenizer_of(plan.tokenizer)}

    def rows(self, sentences: list[Rows]) -> list[TaggedSentence]:
        """Tag sentences of columns."""
        return self._parts(self._rows, sentences)

    def text(self, lines: list[str]) -> list[TaggedSentence]:
        """Tag lines of text. Models that segment text have no tokens beside spans, which need none."""
        return self._parts(self._text, lines)

    def _rows(self, sentences: list[Rows]) -> list[TaggedSentence]:
        response = self._tag(sentences=sentences)
        return [_entry(response, i, rows) for i, rows in enumerate(sentences)]

    def _text(self, lines: list[str]) -> list[TaggedSentence]:
        response = self._tag(text=lines, **self._tokenizer)
        tokens = response.tokens or [[] for _ in lines]
        return [
            replace(_entry(response, i, [[token] for token in tokens[i]]), text=line)
            for i, line in enumerate(lines)
        ]

    def objects(self, objects: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Tag the objects of NDJSON with the streaming interface."""
        options = {**self._options, **self._tokenizer}
        return map(output.plain, self._client.tag_lines(self._model, objects, **options))

    def _parts(
        self, tag: Callable[[list[ItemT]], list[TaggedSentence]], items: list[ItemT]
    ) -> list[TaggedSentence]:
        """Tag items in one request or, if it is too large for the server, in halves."""
        from tagsmith.client import ApiError  # noqa: PLC0415

        if not items:
            return []
        try:
            return tag(items)
        except ApiError as error:
            if error.status != TOO_LARGE:
                raise
        if len(items) == 1:
            raise CommandError("A line is too long for the server. Split it, or use --local.")
        half = len(items) // 2
        return self._parts(tag, items[:half]) + self._parts(tag, items[half:])

    def _tag(self, **given: Any) -> "TagResponse":
        response = self._client.tag(self._model, **given, **self._options)
        self._model = f"{response.model}:{response.version}"
        return response


def _tokenizer_of(text: str) -> Any:
    """Return the name of a tokenizer, or the object that a text is."""
    try:
        return json.loads(text) if text.startswith("{") else text
    except ValueError as error:
        raise CommandError(f"--tokenizer {text} is not valid JSON: {error}.") from None


def _entry(response: "TagResponse", i: int, rows: Rows) -> TaggedSentence:
    """Return one sentence or text of a response."""
    spans = [
        LabelledSpan(
            each.type, each.start, each.stop, each.text or "", each.begin, each.end, each.probability
        )
        for each in (response.spans[i] if response.spans else ())
    ]
    return TaggedSentence(
        rows,
        response.tags[i] if response.tags else [],
        response.marginals[i] if response.marginals else [],
        spans,
        words=response.words[i] if response.words else [],
        heads=response.heads[i] if response.heads else [],
        relations=response.relations[i] if response.relations else [],
        relation_probabilities=response.relation_marginals[i] if response.relation_marginals else [],
        sentences=list(response.sentences[i]) if response.sentences else [],
    )


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "tag", panel="Train and use")(tag)
