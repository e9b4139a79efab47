"""`backup` and `restore`: everything that a server has, in one file."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tagsmith.cli import output
from tagsmith.cli.commands.serve import PANEL, DataOptions, settings_of
from tagsmith.cli.files import check_target
from tagsmith.cli.options import JsonOptions, command
from tagsmith.cli.runs.watching import ProgressLine


@dataclass(frozen=True, kw_only=True)
class BackupOptions(DataOptions, JsonOptions):
    """Options of `backup`."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file.")]


@dataclass(frozen=True, kw_only=True)
class RestoreOptions(DataOptions, JsonOptions):
    """Options of `restore`."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.", exists=True, dir_okay=False)]
    check: Annotated[bool, typer.Option("--check", help="Only check the backup.")] = False


def backup(options: BackupOptions) -> int:
    """Write everything that a server has into one file, and check it. The server may run."""
    settings = settings_of(options)
    from tagsmith.app.cli.backup.save import save  # noqa: PLC0415

    check_target(options.file, "FILE")
    with _shown() as report:
        made = save(settings, options.file, report)
    _print(made, f"Wrote {output.escaped(options.file)} ({output.size(made['size_bytes'])})", options)
    return 0


def restore(options: RestoreOptions) -> int:
    """Make a database from a backup: in a data directory without one, or in an empty PostgreSQL database."""
    settings = settings_of(options)
    from tagsmith.app.cli.backup import restore as restoring  # noqa: PLC0415
    from tagsmith.core.service import data_dir  # noqa: PLC0415

    data_dir.keep_files_private()
    with _shown() as report:
        if options.check:
            found = restoring.check(options.file, report)
        else:
            found = restoring.restore(settings, options.file, report)
    done = "is intact" if options.check else "is restored"
    _print(found, f"{output.escaped(options.file)} of {found['created_at']} {done}", options)
    if not options.check and not options.as_json and settings.database_url.startswith("sqlite"):
        output.say(f"[dim]Start it:[/]  tagsmith up --data-dir {output.escaped(settings.data_dir)}")
    return 0


def _print(found: dict[str, Any], sentence: str, options: JsonOptions) -> None:
    if options.as_json:
        output.print_json(found)
        return
    counts = found["tables"]
    parts = [
        output.counted(counts.get("corpus", 0), "corpus upload"),
        output.counted(counts.get("model_version", 0), "model version"),
        output.counted(counts.get("job", 0), "job"),
        output.counted(counts.get("api_key", 0), "key"),
    ]
    output.say(f"{sentence}: {', '.join(parts)}. Every checksum is right.")


@contextmanager
def _shown() -> Iterator[Any]:
    """Show progress on a terminal. A termination ends the command like Ctrl-C, so that no part of a file remains."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with ProgressLine(live=True, stderr=True) as line:
        before = signal.signal(signal.SIGTERM, stop)
        last = ""

        def report(name: str, fraction: float) -> None:
            nonlocal last
            line.message(name)
            line.update({"fraction": fraction}, restart=name != last)
            last = name

        try:
            yield report
        finally:
            signal.signal(signal.SIGTERM, before)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "backup", panel=PANEL)(backup)
    command(app, "restore", panel=PANEL)(restore)
