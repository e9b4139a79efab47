"""`train`: train a model from a labelled file or a corpus of the server."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagsmith.cli import complete, lexicons, specs
from tagsmith.cli.commands.corpora import print_read
from tagsmith.cli.connection import connected, given_corpus
from tagsmith.cli.errors import CommandError
from tagsmith.cli.options import DEFAULT_ALIAS, FeatureOptions, InputOptions, LocalOptions, command
from tagsmith.cli.runs import following, results

if TYPE_CHECKING:
    from tagsmith.client import Client


@dataclass(frozen=True, kw_only=True)
class TrainerOptions(FeatureOptions):
    """The trainer of a run, and the dev set."""

    trainer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help=f"Default: {specs.DEFAULT_TRAINER}. `tagsmith trainers` lists all.",
            autocompletion=complete.trainers,
        ),
    ] = None
    passes: Annotated[int | None, typer.Option(min=1, metavar="N", help="Passes over the corpus.")] = None
    dev: Annotated[
        str | None,
        typer.Option(
            metavar="DEV", help="Score after each pass: a file, a corpus, or a part to hold out, such as 0.1."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class WaitOptions:
    """Whether to wait for a job, and what to show meanwhile."""

    watch: Annotated[
        bool | None,
        typer.Option("--watch/--no-watch", help="Show a live line; default: on a terminal."),
    ] = None
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the end.")] = False


@dataclass(frozen=True, kw_only=True)
class TrainCommandOptions(WaitOptions, TrainerOptions, InputOptions, LocalOptions):
    """Options of `train`."""

    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="A labelled file, - for standard input, or a corpus of the server.",
            autocompletion=complete.corpora,
        ),
    ]
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", metavar="NAME", help="Name of the model; a file with --local."),
    ] = None
    promote: Annotated[
        bool, typer.Option("--promote", help=f"Serve the new version: let {DEFAULT_ALIAS} point to it.")
    ] = False


def train(options: TrainCommandOptions) -> int:
    """Train a model: `tagsmith train data.conll --model ner --preset ner --dev dev.conll`."""
    spec = specs.with_trainer(specs.base(options), options.trainer, options.passes)
    spec = specs.with_settings(spec, options.settings)
    model = options.model or specs.text_in(spec, "model")
    if not model:
        raise CommandError("Give the model a name: --model NAME" + (" (a file)." if options.local else "."))
    format_options = specs.options_of(options.format_options, repair=options.repair)
    live = sys.stdout.isatty() if options.watch is None else options.watch
    if options.local:
        from tagsmith.cli.local.training import LocalRun, run  # noqa: PLC0415

        if options.detach or options.promote:
            raise CommandError("--detach and --promote need a server. Leave them out with --local.")
        return run(
            LocalRun(
                spec=spec,
                folder=specs.folder_of(options),
                corpus=Path(options.corpus),
                dev=options.dev,
                model=Path(model),
                format=options.format,
                format_options=format_options,
                as_json=options.as_json,
                live=live,
            )
        )
    _check_name(model)
    with connected(options.url) as client:
        posted = _posted(client, options, spec, format_options) | {"kind": "train", "model": model}
        if options.promote:
            posted["promote"] = DEFAULT_ALIAS
        job = client.submit(posted)
        if options.detach:
            return following.detached(job, as_json=options.as_json)
        return following.followed(client, job, as_json=options.as_json, live=live)


def _check_name(model: str) -> None:
    """Refuse what cannot be the name of a model before anything is uploaded."""
    from tagsmith.core.base import names  # noqa: PLC0415

    if re.fullmatch(names.NAME_PATTERN, model) is None:
        raise CommandError(f"--model {model}: {names.wrong_name(model)}")


def _posted(
    client: "Client", options: TrainCommandOptions, spec: dict[str, Any], format_options: dict[str, str]
) -> dict[str, Any]:
    """Upload what is a file, and return the spec with the corpora."""
    corpus = given_corpus(client, options.corpus, options.format, format_options)
    if not options.as_json:
        print_read(options.corpus, corpus, client.report(corpus.id))
        results.print_method(spec)
    spec = lexicons.uploaded(client, spec, specs.folder_of(options))
    return {**spec, "corpus": corpus.id, **dev_of(client, options.dev, options.format, format_options)}


def dev_of(
    client: "Client", dev: str | None, format_name: str | None, format_options: dict[str, str]
) -> dict[str, Any]:
    """Return the dev set of a spec: a part of the corpus, or a corpus, uploaded if it is a file."""
    if dev is None:
        return {}
    if (fraction := specs.fraction_of(dev)) is not None:
        return {"dev": {"fraction": fraction}}
    return {"dev": {"corpus": given_corpus(client, dev, format_name, format_options).id}}


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "train", panel="Train and use")(train)
