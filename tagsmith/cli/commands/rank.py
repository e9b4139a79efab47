"""`rank`: the sentences that a model is least sure about, to be labelled next."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from tagsmith.cli import complete, inputs, output, recognition, specs, word_lines
from tagsmith.cli.commands.train import WaitOptions
from tagsmith.cli.connection import STANDARD_INPUT, connected, given_corpus, model_input, uploaded, version_of
from tagsmith.cli.errors import INTERRUPTED, CommandError, unknown
from tagsmith.cli.files import target_of
from tagsmith.cli.options import InputOptions, LocalOptions, command
from tagsmith.cli.recognition import ModelInput
from tagsmith.cli.runs import following

if TYPE_CHECKING:
    from tagsmith.client import Client
    from tagsmith.core.corpus.text.tokenizer import Tokenizer
    from tagsmith.wire import CorpusInfo, Job

MEASURES = ("probability", "margin", "entropy")
#: The names of labels in NDJSON, as `tagsmith.core.corpus.formats.ndjson` has them, whose import takes long.
LABEL_FIELDS = ("tags", "labels", "ner_tags")
_UNLABELLED = {"labelled": "false"}


@dataclass(frozen=True, kw_only=True)
class RankOptions(WaitOptions, InputOptions, LocalOptions):
    """Options of `rank`."""

    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="name, name:3, name@alias; a file with --local.",
            autocompletion=complete.models,
        ),
    ]
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="A file with or without labels, raw text, - for standard input, or a corpus of the server.",
            autocompletion=complete.corpora,
        ),
    ]
    by: Annotated[
        str,
        typer.Option(
            metavar="MEASURE",
            help="probability (of the best tags), margin (to the second best tags) or entropy.",
            autocompletion=lambda incomplete: [each for each in MEASURES if each.startswith(incomplete)],
        ),
    ] = "probability"
    per_token: Annotated[
        bool,
        typer.Option(
            "--per-token/--per-sentence",
            help="Divide by the number of tokens; without it, long sentences come first.",
        ),
    ] = True
    top: Annotated[
        int, typer.Option("--top", "-n", min=1, metavar="N", help="The most sentences to list.")
    ] = 500
    diverse: Annotated[bool, typer.Option("--diverse", help="Leave out near copies.")] = False
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Default: standard output.")
    ] = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The fields of the spec that say which sentences to list."""
        return {"by": self.by, "per_token": self.per_token, "top": self.top, "diverse": self.diverse}

    @property
    def file(self) -> Path | None:
        """The input, if it is a file or standard input."""
        path = Path(self.corpus)
        return path if self.local or self.corpus == "-" or path.is_file() else None


@dataclass(frozen=True, slots=True)
class RankInput:
    """A file to read, and how."""

    path: Path
    format: str | None
    format_options: dict[str, str]


def rank(options: RankOptions) -> int:
    """List the sentences that a model is least sure about: `tagsmith rank ner raw.txt -o next.ndjson`."""
    if options.by not in MEASURES:
        raise unknown("measure", options.by, MEASURES)
    if options.detach and (options.local or options.out is not None):
        raise CommandError(
            "--detach does not wait for the list. Leave it out, or leave out --local and --out."
        )
    if options.local:
        from tagsmith.cli.local import ranking  # noqa: PLC0415

        return ranking.run(options)
    with connected(options.url) as client:
        corpus = _corpus(client, options)
        job = client.rank(options.model, corpus.id, **options.chosen)
        if options.detach:
            return following.detached(job, as_json=options.as_json)
        with target_of(options.out, "--out", input=options.file) as target:
            return _followed(client, job, options, target)


def _corpus(client: "Client", options: RankOptions) -> "CorpusInfo":
    """Upload what is a file; find what is not."""
    from tagsmith.client.files import corpus_name  # noqa: PLC0415

    if options.file is None:
        return given_corpus(client, options.corpus, options.format, {})
    name = STANDARD_INPUT if options.corpus == "-" else corpus_name(options.file)
    model = model_input(client, options.model)
    with input_of(options, model, lambda: _tokenizer(client, options.model)) as given:
        return uploaded(client, given.path, given.format, given.format_options, name)


def _tokenizer(client: "Client", reference: str) -> "Tokenizer":
    from tagsmith.core.corpus.text.tokenizer import Tokenizer  # noqa: PLC0415

    signature = client.version(*version_of(client, reference)).signature
    if signature is None or signature.tokenizer is None:
        raise CommandError(f"{reference} does not take text. Give sentences of tokens.")
    try:
        return Tokenizer.of(signature.tokenizer.model_dump(exclude_none=True))
    except ValueError as error:
        raise CommandError(f"The tokenizer of {reference} is newer than this command. {error}") from None


def _followed(client: "Client", job: "Job", options: RankOptions, target: IO[bytes]) -> int:
    """Wait for the list and write it. What is said meanwhile goes to standard error, because the list may not."""
    ended = following.to_end(client, job, live=options.watch is not False, stderr=True)
    if ended is None:
        return INTERRUPTED
    if ended.state != "succeeded":
        raise following.failure_of(ended)
    target.write(client.output(ended.id))
    result = ended.result or {}
    print_listed(result["sentences"], result["distinct"], calibrated=result.get("calibrated"))
    if options.as_json and target is not sys.stdout.buffer:
        output.print_json(ended)
    return 0


def print_listed(sentences: int, distinct: int, *, calibrated: bool | None) -> None:
    """Print how many sentences are in the list, on standard error."""
    output.say(f"Listed {sentences:,} of {output.counted(distinct, 'distinct sentence')}.", stderr=True)
    if calibrated is False:
        output.say(
            "[dim]The model was not trained to give probabilities: its scores order sentences and mean no more.[/]",
            stderr=True,
        )


@contextmanager
def input_of(
    options: RankOptions, model: ModelInput, tokenizer: "Callable[[], Tokenizer]"
) -> Iterator[RankInput]:
    """Recognise a file. Raw text is split by the tokenizer of the model, into a file that is removed afterwards."""
    path = Path(options.corpus)
    format_options = specs.options_of(options.format_options, repair=options.repair)
    with TemporaryDirectory() as folder:
        if options.corpus == "-":
            path = Path(folder) / STANDARD_INPUT
            path.write_bytes(sys.stdin.buffer.read())
        if options.format is not None or options.format_options or not path.is_file():
            yield RankInput(path, options.format, format_options)
            return
        with inputs.opened(path) as source:
            head, blocks = inputs.head_of(recognition.decoded(source), typed=False)
            content = recognition.content_of(head, model)
            if content == "text" and model.columns in (1, None):
                tokens = Path(folder) / "tokens"
                tokens.write_bytes(b"".join(_split(blocks, tokenizer())))
                yield RankInput(tokens, "ndjson", _UNLABELLED)
                return
        if of_words := word_lines.reading_options(head, model, labelled=False):
            yield RankInput(path, None, format_options | of_words)
            return
        lines = [line for line in head.filled if not line.startswith(inputs.DOCUMENT_START)]
        bare = {"columns": _has_no_label, "ndjson": _has_no_tags}.get(content)
        if bare is not None and lines and bare(lines[0], model):
            chosen = "conll" if content == "columns" else "ndjson"
            yield RankInput(path, chosen, format_options | _UNLABELLED)
        else:
            yield RankInput(path, None, format_options)


def _has_no_label(line: str, model: ModelInput) -> bool:
    """Whether a line has the columns that the model needs, and no other."""
    return model.columns is not None and len(line.split()) <= model.columns


def _has_no_tags(line: str, _: ModelInput) -> bool:
    try:
        found = json.loads(line)
    except ValueError:
        return False  # reported by the reader, with its place
    return isinstance(found, dict) and "tokens" in found and not any(name in found for name in LABEL_FIELDS)


def _split(blocks: Iterator[bytes], tokenizer: "Tokenizer") -> Iterator[bytes]:
    """Yield the sentences of a text as NDJSON. A line may have several."""
    from tagsmith.core.model.use.text import sentences_of  # noqa: PLC0415

    for lines in inputs.read_lines(blocks):
        for sentence in sentences_of([line.text for line in lines], tokenizer):
            if sentence.tokens:
                yield json.dumps({"tokens": sentence.tokens}, ensure_ascii=False).encode() + b"\n"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "rank", panel="Train and use")(rank)
