"""`models`: list, show, promote, roll back, compare, export, import and delete models."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagsmith.cli import complete, output
from tagsmith.cli.connection import connected, version_of
from tagsmith.cli.errors import CommandError
from tagsmith.cli.files import check_model_target
from tagsmith.cli.options import DEFAULT_ALIAS, ListOptions, LocalOptions, ServerOptions, command, group
from tagsmith.cli.runs import results

if TYPE_CHECKING:
    from tagsmith.client import Client
    from tagsmith.wire import ModelInfo, ModelVersion

SUFFIX = ".tagsmith"
#: Metrics that `diff` lists; counts are in --json.
SCORES = ("f1", "accuracy", "precision", "recall", "uas", "las")


@dataclass(frozen=True, kw_only=True)
class ModelOptions(ServerOptions):
    """A command for one model or version."""

    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="name, name:3 or name@alias.", autocompletion=complete.models),
    ]


@dataclass(frozen=True, kw_only=True)
class ShowModelOptions(LocalOptions):
    """Options of `models show`."""

    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="name, name:3, name@alias; a file with --local.",
            autocompletion=complete.models,
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class AliasOptions(ServerOptions):
    """A command that moves an alias."""

    alias: Annotated[str, typer.Option(metavar="NAME", help="The alias to move.")] = DEFAULT_ALIAS
    reason: Annotated[
        str | None, typer.Option("--reason", "-m", metavar="TEXT", help="Why; kept in the history.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class AliasedModelOptions(ServerOptions):
    """A command for an alias of a model."""

    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="name or name@alias.", autocompletion=complete.models)
    ]


@dataclass(frozen=True, kw_only=True)
class PromoteOptions(ModelOptions, AliasOptions):
    """Options of `models promote`."""

    force: Annotated[
        bool, typer.Option("--force", help="Move against the policy of the model; needs --reason.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class RollbackOptions(AliasedModelOptions, AliasOptions):
    """Options of `models rollback`."""

    steps: Annotated[int | None, typer.Option(min=1, metavar="N", help="Moves to undo (1).")] = None


@dataclass(frozen=True, kw_only=True)
class HistoryOptions(AliasedModelOptions, ListOptions):
    """Options of `models history`."""

    alias: Annotated[str, typer.Option(metavar="NAME", help="Whose moves to list.")] = DEFAULT_ALIAS


@dataclass(frozen=True, kw_only=True)
class DiffOptions(ServerOptions):
    """Options of `models diff`."""

    base: Annotated[str, typer.Argument(metavar="BASE", help="name:1", autocompletion=complete.models)]
    head: Annotated[str, typer.Argument(metavar="HEAD", help="name:2, or 2")]
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Weights to list.")] = 10


@dataclass(frozen=True, kw_only=True)
class ExportOptions(ModelOptions):
    """Options of `models export`."""

    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Default: NAME-VERSION.tagsmith")
    ] = None


@dataclass(frozen=True, kw_only=True)
class ImportOptions(ServerOptions):
    """Options of `models import`."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="The model that gets the version.")]
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A model of Tagsmith, CRFsuite, CRF++ (text) or Wapiti.",
            exists=True,
            dir_okay=False,
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class RemoveModelOptions(ModelOptions):
    """Options of `models rm`."""

    force: Annotated[bool, typer.Option("--force", help="Delete a model although it has aliases.")] = False


def show_all(options: ListOptions) -> int:
    """List models, newest first."""
    with connected(options.url) as client:
        models = []
        for model in client.models():
            models.append(model)
            if len(models) == options.limit:
                break
        if options.as_json:
            output.print_json(models)
            return 0
        rows = [_row(client, model, dates=options.dates) for model in models]
    headers = ["MODEL", "VERSIONS", "SERVED", "DEV SCORE", "SIZE", "ALIASES", "CREATED"]
    empty = "No model yet. Train one: tagsmith train data.conll --model ner"
    output.print_table(headers, rows, right=["VERSIONS", "SERVED", "DEV SCORE", "SIZE"], empty=empty)
    return 0


def show(options: ShowModelOptions) -> int:
    """Show a model with its versions, or one version with its scores."""
    if options.local:
        from tagsmith.cli.local import showing  # noqa: PLC0415

        return showing.show(Path(options.model), as_json=options.as_json)
    with connected(options.url) as client:
        if ":" in options.model or "@" in options.model:
            name, number = version_of(client, options.model)
            version = client.version(name, number)
            if options.as_json:
                output.print_json(version)
            else:
                _print_version(version)
            return 0
        model = client.model(options.model)
        versions = list(client.versions(options.model))
    if options.as_json:
        output.print_json({**output.plain(model), "versions": output.plain(versions)})
        return 0
    output.say(f"[bold]{output.escaped(model.name)}[/]  created {output.when(model.created_at)}")
    _print_versions(model, versions)
    return 0


def promote(options: PromoteOptions) -> int:
    """Let an alias point to a version. Requests for the model then use it."""
    with connected(options.url) as client:
        name, number = _exact_version(client, options.model)
        before = _served(client, name, options.alias)
        alias = client.promote(name, number, options.alias, reason=options.reason, force=options.force)
    if options.as_json:
        output.print_json(alias)
        return 0
    old = f"v{before} -> " if before else ""
    output.say(f"{output.escaped(name)}@{output.escaped(options.alias)}: {old}[bold]v{alias.version}[/]")
    if before is None and options.alias != DEFAULT_ALIAS:
        output.say(f"Created the alias {output.escaped(options.alias)}.")
    if before and before != alias.version:
        output.say(f"[dim]Back:[/]  tagsmith models rollback {name}")
    return 0


def rollback(options: RollbackOptions) -> int:
    """Return an alias to the version before."""
    model, name = _alias_of(options.model, options.alias)
    with connected(options.url) as client:
        before = _served(client, model, name)
        alias = client.rollback(model, name, reason=options.reason, steps=options.steps)
    if options.as_json:
        output.print_json(alias)
    else:
        old = f"v{before} -> " if before else ""
        output.say(f"{output.escaped(model)}@{output.escaped(name)}: {old}[bold]v{alias.version}[/]")
    return 0


def history(options: HistoryOptions) -> int:
    """List the moves of an alias, newest first: when, who, why."""
    model, name = _alias_of(options.model, options.alias)
    with connected(options.url) as client:
        moves = client.history(model, name)[: options.limit]
    if options.as_json:
        output.print_json(moves)
        return 0
    rows = [
        [
            output.escaped(name) if number == 0 else "",
            str(move.seq),
            output.when(move.at, dates=options.dates),
            move.action,
            f"{move.from_version or '-'} -> {move.to_version}",
            output.escaped(move.actor or ""),
            output.escaped(move.reason or ""),
        ]
        for number, move in enumerate(moves)
    ]
    output.print_table(["ALIAS", "MOVE", "WHEN", "ACTION", "VERSION", "BY", "REASON"], rows, right=["MOVE"])
    return 0


def diff(options: DiffOptions) -> int:
    """Compare two versions of a model: scores, spec, weights."""
    with connected(options.url) as client:
        name, base = version_of(client, options.base)
        wanted = f"{name}:{options.head}" if options.head.isdigit() else options.head
        other, head = version_of(client, wanted)
        if other != name:
            raise CommandError(
                f"{options.base} and {options.head} are different models. Compare them with `tagsmith eval`."
            )
        found = client.compare_versions(name, base, head, top=options.top)
    if options.as_json:
        output.print_json(found)
        return 0
    numbers = [f"v{base}", f"v{head}", "CHANGE"]
    rows = [
        [
            each.name,
            *(f"{value:,.2f}" if value is not None else "-" for value in (each.base, each.head, each.change)),
        ]
        for each in found.metrics
        if each.name.rsplit(".", 1)[-1] in SCORES and ".by_type." not in each.name
    ]
    output.print_table(["METRIC", *numbers], rows, right=numbers, empty="They have no scores.")
    output.say()
    changed = [[_field_name(each.pointer), _value(each.base), _value(each.head)] for each in found.spec]
    output.print_table(["SPEC", *numbers[:2]], changed, empty="The specs are equal.")
    output.say()
    weights = found.weights
    output.say(
        f"weights: {weights.added:,} added, {weights.removed:,} removed, {weights.changed:,} changed, "
        f"{weights.unchanged:,} equal"
    )
    top = [
        [
            output.escaped(each.feature or "(transition)"),
            output.escaped(f"{each.before} {each.label}" if each.before else each.label),
            f"{each.base:+.3f}",
            f"{each.head:+.3f}",
        ]
        for each in weights.top
    ]
    output.print_table(["FEATURE", "LABEL", *numbers[:2]], top, right=numbers[:2])
    return 0


def export(options: ExportOptions) -> int:
    """Write the model file of a version, for --local and for `Tagger.open`."""
    with connected(options.url) as client:
        name, number = version_of(client, options.model)
        path = options.out or Path(f"{name}-{number}{SUFFIX}")
        check_model_target(path, "--out")
        client.save_artifact(path, name, number)
    size = path.stat().st_size
    if options.as_json:
        output.print_json({"model": name, "version": number, "file": str(path), "size_bytes": size})
    else:
        output.say(f"Wrote {output.escaped(path)} ({output.size(size)}).")
        output.say(f"[dim]Use it:[/]  tagsmith tag --local {output.escaped(path)} < input")
    return 0


def import_file(options: ImportOptions) -> int:
    """Publish a model file as the next version of a model."""
    with connected(options.url) as client:
        version = client.import_model(options.name, options.file)
    if options.as_json:
        output.print_json(version)
    else:
        reference = f"{version.model}:{version.version}"
        output.say(f"Imported [bold]{output.escaped(reference)}[/]: {version.active_features:,} features.")
        results.print_steps(
            ("Try it:", f'echo "Some text" | tagsmith tag {reference}'),
            ("Serve it:", f"tagsmith models promote {reference}"),
        )
    return 0


def remove(options: RemoveModelOptions) -> int:
    """Delete a version (name:3) or a model with all versions (name)."""
    deleted = options.model
    with connected(options.url) as client:
        if ":" in options.model or "@" in options.model:
            if options.force:
                raise CommandError(
                    "--force deletes whole models. To delete a served version, move its aliases first."
                )
            name, number = version_of(client, options.model)
            client.delete_version(name, number)
            deleted = f"{name}:{number}"
        else:
            client.delete_model(options.model, force=options.force)
    if not options.as_json:
        output.say(f"Deleted {output.escaped(deleted)}.")
    return 0


def _field_name(pointer: str) -> str:
    return output.escaped(pointer.strip("/").replace("/", "."))


def _value(value: object) -> str:
    return "-" if value is None else output.escaped(value)


def _alias_of(reference: str, option: str) -> tuple[str, str]:
    """Return model and alias of `name@alias`, else of `name` and the option."""
    name, at, alias = reference.partition("@")
    if ":" in name:
        model = name.partition(":")[0]
        raise CommandError(
            f"{reference} is a version. Give the model, {model}, or an alias, {model}@{option}."
        )
    return name, alias if at else option


def _served(client: "Client", model: str, alias: str) -> int | None:
    """Return the version of an alias; None if there is none, or if the key may only promote."""
    from tagsmith.client import ApiError  # noqa: PLC0415

    try:
        return client.model(model).aliases.get(alias)
    except ApiError as error:
        if error.status != 403:
            raise
        return None


def _exact_version(client: "Client", reference: str) -> tuple[str, int]:
    """A version to promote; of a bare name the newest one."""
    if ":" in reference or "@" in reference:
        return version_of(client, reference)
    latest = client.model(reference).latest
    if latest is None:
        raise CommandError(f"{reference} has no version. Train one with `tagsmith train`.")
    return reference, latest


def _row(client: "Client", model: "ModelInfo", *, dates: bool) -> list[str]:
    served = model.aliases.get(DEFAULT_ALIAS) or model.latest
    version = None if served is None else client.version(model.name, served)
    return [
        f"[bold]{output.escaped(model.name)}[/]",
        str(model.version_count),
        f"v{served}" if served else "",
        _score(version),
        output.size(version.size_bytes) if version else "",
        ", ".join(f"{output.escaped(alias)} v{number}" for alias, number in model.aliases.items()),
        output.when(model.created_at, dates=dates),
    ]


def _score(version: "ModelVersion | None") -> str:
    score = output.score_of((version.metrics or {}).get("dev")) if version else None
    return f"{score[0]} {score[1]:.2f}" if score else ""


def _print_versions(model: "ModelInfo", versions: "list[ModelVersion]") -> None:
    headers = ["VERSION", "DEV SCORE", "FEATURES", "SIZE", "TRAINER", "TRAINED", "ALIASES"]
    pointing: dict[int, list[str]] = {}
    for alias, number in model.aliases.items():
        pointing.setdefault(number, []).append(alias)
    rows = [
        [
            f"{model.name}:{version.version}",
            _score(version),
            f"{version.active_features:,}",
            output.size(version.size_bytes),
            str(version.trainer.get("kind", "")),
            output.when(version.created_at),
            f"[green]{', '.join(pointing.get(version.version, []))}[/]",
        ]
        for version in versions
    ]
    output.print_table(headers, rows, right=["DEV SCORE", "FEATURES", "SIZE"])


def _print_version(version: "ModelVersion") -> None:
    output.say(
        f"[bold]{output.escaped(version.model)}:{version.version}[/]  trained {output.when(version.created_at)}"
    )
    facts = [
        f"trainer {version.trainer.get('kind', '')}",
        f"{version.active_features:,} features",
        output.size(version.size_bytes),
        f"{output.duration(version.train_seconds)} of training",
        f"corpus {version.corpus_name or version.corpus or 'unknown'}",
        f"seed {version.seed}",
    ]
    output.say("  " + " · ".join(facts))
    if dev := version.metrics.get("dev"):
        output.say("[dim]on dev[/]")
        results.print_scores(dev)
    for each in version.evaluations:
        # Scores on a held-out part are those of dev, above.
        if each.held_out is None:
            name = each.corpus_name or each.corpus or "a deleted corpus"
            output.say(f"[dim]on[/] {output.escaped(name)}: {each.metric} [bold]{each.score:.2f}[/]")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    models = group("List, serve, compare, export and import models.")
    command(models, "ls")(show_all)
    command(models, "show")(show)
    command(models, "promote")(promote)
    command(models, "rollback")(rollback)
    command(models, "history")(history)
    command(models, "diff")(diff)
    command(models, "export")(export)
    command(models, "import")(import_file)
    command(models, "rm")(remove)
    app.add_typer(models, name="models", rich_help_panel="Manage")
