"""`up`, `demo`, `api`, `worker`, `migrate`, `warm`, `health`, `version`: what runs on a server.

These commands need the extra `server`. They are imported from `tagsmith.app` when they run.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagsmith.cli import output
from tagsmith.cli.options import command

if TYPE_CHECKING:
    from tagsmith.core.service.settings import Settings

PANEL = "Run a server"


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Where a server keeps its data."""

    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Database, Redis and caches (.tagsmith); also TAGSMITH_DATA_DIR."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PlaceOptions(DataOptions):
    """Where a server listens."""

    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address to listen on (127.0.0.1); also TAGSMITH_HOST."),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(metavar="N", help="Port to listen on; 0 for a free one (8765); also TAGSMITH_PORT."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class AccessOptions(PlaceOptions):
    """Who may call a server."""

    access: Annotated[
        str | None,
        typer.Option(
            metavar="WHO",
            help="keys (default), or anyone-without-keys to be called by whoever reaches the port.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class UpOptions(AccessOptions):
    """Options of `up`."""

    workers: Annotated[int | None, typer.Option(metavar="N", help="Jobs that run at the same time (1).")] = (
        None
    )
    api_processes: Annotated[int | None, typer.Option(metavar="N", help="API processes (1).")] = None
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the logs of all processes.")] = False


@dataclass(frozen=True, kw_only=True)
class ApiOptions(AccessOptions):
    """Options of `api`."""

    fd: Annotated[int | None, typer.Option(hidden=True)] = None


@dataclass(frozen=True, kw_only=True)
class MigrateOptions(DataOptions):
    """Options of `migrate`."""

    accept_copy: Annotated[
        bool,
        typer.Option("--accept-copy", help="Use an SQLite file that was copied without its write-ahead log."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Options of `demo`."""

    sentences: Annotated[int, typer.Option(metavar="N", help="Size of the corpus.")] = 5000


@dataclass(frozen=True, kw_only=True)
class NoOptions:
    """A command without options."""


def settings_of(options: object) -> "Settings":
    """Return the settings of the environment, changed by the options."""
    from tagsmith.core.service.settings import Settings  # noqa: PLC0415

    names = ("host", "port", "data_dir", "workers", "api_processes", "access")
    overrides: dict[str, Any] = {name: getattr(options, name, None) for name in names}
    for name, meant in Settings.misspelt().items():
        output.say(f"[yellow]{output.escaped(name)} is not a setting. Did you mean {meant}?[/]", stderr=True)
    return Settings.from_env(overrides=overrides)


def up(options: UpOptions) -> int:
    """Run a whole server in the foreground: API, worker, Redis, SQLite."""
    settings = settings_of(options)
    from tagsmith.app.cli import keys  # noqa: PLC0415
    from tagsmith.app.cli.console import Console, LogFile  # noqa: PLC0415
    from tagsmith.app.cli.supervisor import Supervisor  # noqa: PLC0415

    keys.require_key_unless_loopback(settings)
    # Where a program reads the output, it gets every line, as before.
    quiet = sys.stdout.isatty() and not options.verbose
    logs = LogFile(settings.data_dir / "up.log") if quiet else None

    async def supervise() -> int:
        return await Supervisor(settings, Console(logs=logs)).run()

    return asyncio.run(supervise())


def demo(options: DemoOptions) -> int:
    """Show the whole path in a throw-away server: upload, train, tag, promote, roll back."""
    settings_of(options)
    from tagsmith.app.cli import demo as played  # noqa: PLC0415

    return played.run(options.sentences)


def migrate(options: MigrateOptions) -> int:
    """Bring the database to the newest schema."""
    settings = settings_of(options)
    if options.accept_copy:
        from tagsmith.core.store.engine import normal_url  # noqa: PLC0415
        from tagsmith.core.store.sqlite import copies  # noqa: PLC0415

        if (url := normal_url(settings.database_url)).get_backend_name() == "sqlite":
            copies.accept(Path(url.database or ""))
    from tagsmith.core.service import data_dir  # noqa: PLC0415
    from tagsmith.core.store import migrate as migration  # noqa: PLC0415

    data_dir.keep_files_private()
    data_dir.prepare(settings.data_dir)
    migration.upgrade(settings.database_url)
    output.say(f"The database has the newest schema, {migration.head()}.")
    return 0


def warm(options: NoOptions) -> int:
    """Compile every kernel into the cache."""
    del options
    from tagsmith.core.pipeline import warm as kernels  # noqa: PLC0415

    output.say(f"kernels ready in {kernels.cache_kernels(os.cpu_count() or 1):.1f} s")
    return 0


def api(options: ApiOptions) -> int:
    """Run one API process."""
    settings = settings_of(options)
    from tagsmith.app.cli import api as process  # noqa: PLC0415
    from tagsmith.app.cli import keys  # noqa: PLC0415

    keys.require_key_unless_loopback(settings)
    return process.serve(settings, options.fd)


def health(options: PlaceOptions) -> int:
    """Ask a running API whether it is ready; exit code 0 if so."""
    settings = settings_of(options)
    from tagsmith.app.cli import health as check  # noqa: PLC0415

    return check.check(settings)


def worker(options: DataOptions) -> int:
    """Run one worker process."""
    # Replaces this process: `app` and `worker` must not import each other.
    arguments = [sys.executable, "-m", "tagsmith.worker"]
    os.execve(sys.executable, arguments, settings_of(options).child_environment())  # noqa: S606


def version(options: NoOptions) -> int:
    """Print the version, like --version."""
    del options
    from tagsmith.core.service import version as code  # noqa: PLC0415

    output.say(f"tagsmith {code.code_version()}")
    return 0


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "up", panel=PANEL)(up)
    command(app, "demo", panel=PANEL)(demo)
    command(app, "health", panel=PANEL)(health)
    command(app, "warm", panel=PANEL)(warm)
    command(app, "migrate", panel=PANEL)(migrate)
    command(app, "api", panel=PANEL)(api)
    command(app, "worker", panel=PANEL)(worker)
    command(app, "version", hidden=True)(version)
