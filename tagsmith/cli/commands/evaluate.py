"""`eval`: score models on labelled data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tagsmith.cli import complete, specs, word_lines
from tagsmith.cli.commands.train import WaitOptions
from tagsmith.cli.connection import connected, given_corpus, model_input
from tagsmith.cli.errors import CommandError
from tagsmith.cli.options import InputOptions, LocalOptions, command
from tagsmith.cli.runs import following


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(WaitOptions, InputOptions, LocalOptions):
    """Options of `eval`."""

    names: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL... CORPUS",
            help="Models (name, name:3; files with --local), then a labelled file or a corpus of the server.",
            autocompletion=complete.models,
        ),
    ]


def evaluate(options: EvaluateOptions) -> int:
    """Score models on labelled data: `tagsmith eval ner test.conll`. Several models are compared."""
    if len(options.names) < 2:
        raise CommandError(
            "Give at least one model and then a corpus, for example: tagsmith eval ner test.conll"
        )
    *models, corpus = options.names
    format_options = specs.options_of(options.format_options, repair=options.repair)
    if options.local:
        from tagsmith.cli.local.scoring import LocalScoring, run  # noqa: PLC0415

        paths = [Path(name) for name in models]
        return run(LocalScoring(paths, Path(corpus), options.format, format_options, options.as_json))
    with connected(options.url) as client:
        if not format_options and Path(corpus).is_file():
            format_options = word_lines.options_of_file(Path(corpus), model_input(client, models[0]))
        found = given_corpus(client, corpus, options.format, format_options)
        job = client.evaluate(models, found.id)
        if options.detach:
            return following.detached(job, as_json=options.as_json)
        return following.followed(client, job, as_json=options.as_json, live=options.watch is not False)


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "eval", panel="Train and use")(evaluate)
    command(app, "evaluate", hidden=True)(evaluate)
