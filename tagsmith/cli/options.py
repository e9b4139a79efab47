"""Options of commands as frozen dataclasses.

A command is a function of one dataclass. Its fields are the arguments and options, annotated as typer reads them.
Groups of options that several commands share are base classes.
"""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from tagsmith.cli import complete

OptionsT = TypeVar("OptionsT")

COMMON = "Common options"
#: As `tagsmith.wire` has it, whose import would take longer than the help.
DEFAULT_ALIAS = "champion"


@dataclass(frozen=True, kw_only=True)
class JsonOptions:
    """What every command has."""

    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON for programs.", rich_help_panel=COMMON),
    ] = False


@dataclass(frozen=True, kw_only=True)
class ServerOptions(JsonOptions):
    """What every command that calls a server has."""

    url: Annotated[
        str | None,
        typer.Option(
            envvar="TAGSMITH_URL",
            metavar="URL",
            help="The server; default: the config file, else http://127.0.0.1:8765.",
            rich_help_panel=COMMON,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LocalOptions(ServerOptions):
    """What the commands have that also work without a server."""

    local: Annotated[
        bool,
        typer.Option(
            "--local",
            help="Work without a server: models are files.",
            rich_help_panel=COMMON,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class ListOptions(ServerOptions):
    """What the commands that list things have."""

    dates: Annotated[
        bool, typer.Option("--dates", help="Show dates instead of ages.", rich_help_panel=COMMON)
    ] = False
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, metavar="N", help="The most rows to show.")
    ] = 20


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """Which features to use, and the rest of the spec."""

    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A ready-made feature set: ner, chunking, pos, segmentation or generic.",
            autocompletion=complete.presets,
        ),
    ] = None
    template: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Feature templates, as CRF++ or Wapiti read them.",
            exists=True,
            dir_okay=False,
        ),
    ] = None
    spec: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A job spec in YAML or JSON; other options change it.",
            exists=True,
            dir_okay=False,
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Set a field of the spec, for example trainer.l1=0.3. May be repeated.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Same seed, same model.")] = None
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="For trainers that use several threads.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """How to read a labelled file."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Format of the files; recognised by default.",
            autocompletion=complete.formats,
        ),
    ] = None
    format_options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="An option of the format, for example labels=bioes. May be repeated.",
        ),
    ] = None
    repair: Annotated[bool, typer.Option("--repair", help="Correct labels that break their coding.")] = False


def command(
    app: typer.Typer, name: str, *, panel: str | None = None, hidden: bool = False
) -> Callable[[Callable[[OptionsT], int | None]], Callable[[OptionsT], int | None]]:
    """Register a function of one options class as a command. Its docstring is the help."""

    def register(run: Callable[[OptionsT], int | None]) -> Callable[[OptionsT], int | None]:
        kind = get_type_hints(run)["options"]
        hints = get_type_hints(kind, include_extras=True)
        parameters = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
                annotation=hints[field.name],
            )
            for field in _ordered(kind)
        ]

        def call(**values: Any) -> int | None:
            return run(kind(**values))

        call.__name__, call.__doc__, call.__module__ = run.__name__, run.__doc__, run.__module__
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        app.command(name, rich_help_panel=panel, hidden=hidden)(call)
        return run

    return register


def group(help: str) -> typer.Typer:  # noqa: A002  # typer's own word
    """Return a group of commands that shows its help when it is called without one."""
    return typer.Typer(help=help, no_args_is_help=True, rich_markup_mode="rich")


def _ordered(kind: type[Any]) -> list[dataclasses.Field[Any]]:
    """The fields of the class itself, then those of its base classes in their order."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    names: dict[str, None] = {}
    for each in kind.__mro__:
        names |= dict.fromkeys(name for name in vars(each).get("__annotations__", {}) if name in fields)
    return [fields[name] for name in names]
