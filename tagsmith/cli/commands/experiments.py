"""`compare`, `tune`, `trainers`: which trainer, and with which settings."""

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from tagsmith.cli import complete, lexicons, output, specs
from tagsmith.cli.commands.train import TrainerOptions, WaitOptions, dev_of
from tagsmith.cli.connection import connected, given_corpus
from tagsmith.cli.errors import CommandError, unknown
from tagsmith.cli.options import FeatureOptions, InputOptions, JsonOptions, ServerOptions, command
from tagsmith.cli.runs import following

#: What `compare` runs if no trainers are given: one of each family.
USUAL = ("sgd-l1", "adf", "averaged-perceptron", "lbfgs")
DEFAULT_DEV = "0.1"
_SIGNS = {"minimum": ">=", "above": ">", "maximum": "<=", "below": "<"}


@dataclass(frozen=True, kw_only=True)
class CompareOptions(WaitOptions, FeatureOptions, InputOptions, ServerOptions):
    """Options of `compare`."""

    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help="A labelled file, or a corpus of the server.")
    ]
    trainers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TRAINER]...", help=f"Default: {', '.join(USUAL)}.", autocompletion=complete.trainers
        ),
    ] = None
    dev: Annotated[
        str, typer.Option(metavar="DEV", help="A file, a corpus, or a part of the corpus to hold out.")
    ] = DEFAULT_DEV
    passes: Annotated[int | None, typer.Option(min=1, metavar="N", help="Passes of each trainer.")] = None


@dataclass(frozen=True, kw_only=True)
class TuneOptions(WaitOptions, TrainerOptions, InputOptions, ServerOptions):
    """Options of `tune`."""

    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help="A labelled file, or a corpus of the server.")
    ]
    search: Annotated[
        list[str] | None,
        typer.Option(
            "--search",
            "-s",
            metavar="FIELD=A,B,C",
            help="Values to try, for example trainer.l1=0.1,0.3,1. May be repeated; all combinations are tried.",
        ),
    ] = None
    folds: Annotated[int | None, typer.Option(min=2, metavar="N", help="Parts of the cross-validation.")] = (
        None
    )
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", metavar="NAME", help="Then train this model with the best values."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TrainersOptions(JsonOptions):
    """Options of `trainers`."""

    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="Show the fields of one trainer.", autocompletion=complete.trainers
        ),
    ] = None


def compare(options: CompareOptions) -> int:
    """Train several trainers on the same data and compare them."""
    spec = specs.with_settings(specs.base(options), options.settings)
    kinds = options.trainers or ([] if "trainers" in spec else USUAL)
    spec = specs.with_trainers(spec, kinds, options.passes)
    dev = options.dev if options.dev != DEFAULT_DEV or "dev" not in spec else None
    return _submitted(options, {**spec, "kind": "compare"}, dev)


def tune(options: TuneOptions) -> int:
    """Search for the best values of fields by cross-validation, or on --dev."""
    spec = specs.with_trainer(specs.base(options), options.trainer, options.passes)
    spec = specs.with_settings(spec, options.settings)
    if options.search:
        fields: dict[str, list[Any]] = {}
        for each in options.search:
            fields |= {name: list(values) for name, values in specs.choices_of(each).items()}
        spec["search"] = {"kind": "grid", "fields": fields}
    if "search" not in spec:
        raise CommandError("Say what to search, for example: --search trainer.l1=0.1,0.3,1")
    if options.dev is not None and specs.fraction_of(options.dev) is not None:
        raise CommandError("tune scores on a dev corpus or by folds. Give --dev FILE, or --folds 5.")
    if options.folds is not None:
        spec["folds"] = options.folds
    if options.model is not None:
        spec["train"] = {"model": options.model}
    return _submitted(options, {**spec, "kind": "tune"}, options.dev)


def trainers(options: TrainersOptions) -> int:
    """List the trainers, or show the fields of one."""
    from tagsmith.core.learn.trainers import catalogue  # noqa: PLC0415

    found = [asdict(each) for each in catalogue.trainers()]
    if options.kind is None:
        if options.as_json:
            output.print_json(found)
            return 0
        default = specs.DEFAULT_TRAINER
        rows = [
            [f"[bold]{each['kind']}[/]" + (" (default)" if each["kind"] == default else ""), each["family"],
             output.escaped(each["summary"])]
            for each in found
        ]  # fmt: skip
        output.print_table(["TRAINER", "FAMILY", "WHAT IT DOES"], rows)
        output.say(f"[dim]Fields of one:[/]  tagsmith trainers {default}")
        return 0
    chosen = [each for each in found if each["kind"] == options.kind]
    if not chosen:
        raise unknown("trainer", options.kind, [each["kind"] for each in found])
    if options.as_json:
        output.print_json(chosen[0])
        return 0
    output.say(f"[bold]{options.kind}[/]  {output.escaped(chosen[0]['summary'])}")
    output.say(output.escaped(chosen[0]["description"]))
    rows = [
        [field["name"], output.escaped(field["type"]), output.escaped(_range_of(field)), _default_of(field)]
        for field in chosen[0]["fields"]
    ]
    output.print_table(["FIELD", "TYPE", "RANGE", "DEFAULT"], rows)
    output.say(f"[dim]Set one:[/]  tagsmith train ... --trainer {options.kind} --set trainer.FIELD=VALUE")
    return 0


def _range_of(field: dict[str, Any]) -> str:
    bounds = [f"{_SIGNS[name]} {value:g}" for name, value in field["bounds"].items()]
    return ", ".join(field["choices"] or bounds)


def _default_of(field: dict[str, Any]) -> str:
    value = field["default"]
    return output.escaped(value if isinstance(value, str) else json.dumps(value))


def _submitted(options: CompareOptions | TuneOptions, spec: dict[str, Any], dev: str | None) -> int:
    format_options = specs.options_of(options.format_options, repair=options.repair)
    with connected(options.url) as client:
        corpus = given_corpus(client, options.corpus, options.format, format_options)
        spec = lexicons.uploaded(client, spec, specs.folder_of(options))
        job = client.submit(
            {**spec, "corpus": corpus.id, **dev_of(client, dev, options.format, format_options)}
        )
        if options.detach:
            return following.detached(job, as_json=options.as_json)
        return following.followed(client, job, as_json=options.as_json, live=options.watch is not False)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "compare", panel="Train and use")(compare)
    command(app, "tune", panel="Train and use")(tune)
    command(app, "trainers", panel="Train and use")(trainers)
