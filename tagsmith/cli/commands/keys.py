"""`keys`: create, list and revoke keys, in the data directory of this machine or with --url on a server."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tagsmith.cli import output
from tagsmith.cli.commands.serve import DataOptions, settings_of
from tagsmith.cli.connection import connected
from tagsmith.cli.errors import CommandError
from tagsmith.cli.options import JsonOptions, command, group

DAY_S = 86_400


@dataclass(frozen=True, kw_only=True)
class KeyOptions(DataOptions, JsonOptions):
    """Where the keys are."""

    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A running server, which needs an admin key.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class CreateKeyOptions(KeyOptions):
    """Options of `keys create`."""

    scope: Annotated[
        list[str], typer.Option(metavar="SCOPE", help="read, tag, train, promote or admin. May be repeated.")
    ]
    name: Annotated[str, typer.Option(help="What it is for.")] = "made by the command line"
    expires_in_days: Annotated[
        float | None, typer.Option(metavar="N", help="By default it does not expire.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RevokeKeyOptions(KeyOptions):
    """Options of `keys revoke`."""

    key: Annotated[str, typer.Argument(metavar="KEY_ID")]


def create(options: CreateKeyOptions) -> int:
    """Create a key and print it; it is not shown again."""
    if options.url is None:
        from tagsmith.app.cli import keys  # noqa: PLC0415

        _no_json(options)
        return keys.create(settings_of(options), options.name, options.scope, options.expires_in_days)
    seconds = None if options.expires_in_days is None else int(options.expires_in_days * DAY_S)
    scopes: Any = options.scope
    with connected(options.url) as client:
        made = client.create_key(options.name, scopes, expires_in_seconds=seconds)
    if options.as_json:
        output.print_json(made)
    else:
        output.say(made.token or "")
    return 0


def show(options: KeyOptions) -> int:
    """List all keys, newest first."""
    if options.url is None:
        from tagsmith.app.cli import keys  # noqa: PLC0415

        _no_json(options)
        return keys.list_keys(settings_of(options))
    with connected(options.url) as client:
        found = list(client.keys())
    if options.as_json:
        output.print_json(found)
        return 0
    rows = [
        [
            key.id,
            ", ".join(key.scopes),
            f"used {output.when(key.last_used_at)}" if key.last_used_at else "never used",
            "revoked" if key.revoked_at else f"expires {key.expires_at:%Y-%m-%d}" if key.expires_at else "",
            output.escaped(key.name),
        ]
        for key in found
    ]
    output.print_table(["KEY", "SCOPES", "USED", "STATE", "NAME"], rows, empty="There are no keys.")
    return 0


def revoke(options: RevokeKeyOptions) -> int:
    """Revoke a key; running servers follow within two seconds."""
    if options.url is None:
        from tagsmith.app.cli import keys  # noqa: PLC0415

        return keys.revoke(settings_of(options), options.key)
    with connected(options.url) as client:
        client.revoke_key(options.key)
    return 0


def _no_json(options: KeyOptions) -> None:
    if options.as_json:
        raise CommandError("--json shows what the API returns. Give the server too: --url URL.")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    keys = group("Create, list and revoke keys.")
    command(keys, "create")(create)
    command(keys, "list")(show)
    command(keys, "ls", hidden=True)(show)
    command(keys, "revoke")(revoke)
    app.add_typer(keys, name="keys", rich_help_panel="Run a server")
