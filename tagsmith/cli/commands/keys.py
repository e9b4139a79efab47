"""`keys`: create, list and revoke keys, in the data directory of this machine or on a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from tagsmith.cli import config, output
from tagsmith.cli.commands.serve import DataOptions, settings_of
from tagsmith.cli.connection import connected
from tagsmith.cli.errors import CommandError
from tagsmith.cli.options import JsonOptions, command, group

if TYPE_CHECKING:
    from tagsmith.client import Client
    from tagsmith.core.service.settings import Settings
    from tagsmith.wire import ApiKey, CreatedKey

DAY_S = 86_400
MAX_DAYS = 3660
#: A server on this machine that does not answer within this time is not there.
PROBE_S = 3.0


@dataclass(frozen=True, kw_only=True)
class KeyOptions(DataOptions, JsonOptions):
    """Where the keys are."""

    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A running server, which needs an admin key. Default: TAGSMITH_URL or the config file, "
            "else the data directory.",
        ),
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
    days = options.expires_in_days
    if days is not None and not 0 < days <= MAX_DAYS:
        raise CommandError(f"--expires-in-days must be more than 0 and at most {MAX_DAYS}.")
    with _store_of(options) as store:
        made = store.create(options.name, options.scope, None if days is None else max(1, int(days * DAY_S)))
    if options.as_json:
        output.print_json(made)
    else:
        # Standard output has only the token, so that scripts can read it.
        output.say(output.escaped(made.token or ""))
    return 0


def show(options: KeyOptions) -> int:
    """List all keys, newest first."""
    with _store_of(options) as store:
        found = store.all()
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
    with _store_of(options) as store:
        before = store.all()
        store.revoke(options.key)
    if options.as_json:
        return 0
    output.say(f"Revoked {output.escaped(options.key)}.")
    admins = {key.id for key in before if "admin" in key.scopes and _usable(key)}
    if admins == {options.key}:
        output.say(
            "[yellow]![/] It was the last admin key. Create another one on the machine of the server: "
            "tagsmith keys create --scope admin --data-dir PATH"
        )
    return 0


def _usable(key: "ApiKey") -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > datetime.now(UTC))


class KeyStore(Protocol):
    """Where keys are kept."""

    def create(self, name: str, scopes: list[str], expires_in_seconds: int | None) -> "CreatedKey":
        """Create a key."""
        ...

    def all(self) -> "list[ApiKey]":
        """Return all keys, newest first."""
        ...

    def revoke(self, key_id: str) -> None:
        """Revoke a key."""
        ...


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """The keys of a running server."""

    client: "Client"

    def create(self, name: str, scopes: list[str], expires_in_seconds: int | None) -> "CreatedKey":
        """Create a key."""
        from tagsmith.client import ApiError  # noqa: PLC0415

        known: Any = scopes
        try:
            return self.client.create_key(name, known, expires_in_seconds=expires_in_seconds)
        except ApiError as error:
            if error.code != "keys_not_in_force":
                raise
        raise CommandError(
            "The server has no key yet. Create the first one on its machine: "
            "tagsmith keys create --scope admin --data-dir PATH"
        )

    def all(self) -> "list[ApiKey]":
        """Return all keys, newest first."""
        return list(self.client.keys())

    def revoke(self, key_id: str) -> None:
        """Revoke a key."""
        self.client.revoke_key(key_id)


@dataclass(frozen=True, slots=True)
class DatabaseKeys:
    """The keys in the database of this machine. No key is needed."""

    settings: "Settings"

    def create(self, name: str, scopes: list[str], expires_in_seconds: int | None) -> "CreatedKey":
        """Create a key."""
        from tagsmith.app.cli import keys  # noqa: PLC0415

        return keys.create(self.settings, name, scopes, expires_in_seconds)

    def all(self) -> "list[ApiKey]":
        """Return all keys, newest first."""
        from tagsmith.app.cli import keys  # noqa: PLC0415

        return keys.list_keys(self.settings)

    def revoke(self, key_id: str) -> None:
        """Revoke a key."""
        from tagsmith.app.cli import keys  # noqa: PLC0415

        keys.revoke(self.settings, key_id)


@contextmanager
def _store_of(options: KeyOptions) -> Iterator[KeyStore]:
    """The keys of the server that is named, else of the database here, else of a server that answers."""
    url = options.url or (config.named_url() if options.data_dir is None else None)
    if url is None:
        settings = settings_of(options)
        if settings.model_fields_set & {"data_dir", "database_url"} or settings.data_dir.is_dir():
            yield DatabaseKeys(settings)
            return
        url = config.DEFAULT_URL
        with connected(url, timeout_s=PROBE_S) as client:
            if not client.ready():
                raise CommandError(
                    f"There is no data directory {settings.data_dir}, and nothing answers at {url}. "
                    "Give --data-dir or --url."
                )
    with connected(url) as client:
        yield ServerKeys(client)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    keys = group("Create, list and revoke keys.")
    command(keys, "create")(create)
    command(keys, "list")(show)
    command(keys, "ls", hidden=True)(show)
    command(keys, "revoke")(revoke)
    app.add_typer(keys, name="keys", rich_help_panel="Run a server")
