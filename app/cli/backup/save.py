"""`tagsmith backup`: write everything that a database has into one file, while the service runs."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from sqlalchemy.engine import Connection

from tagsmith.app.cli.backup import archive, rows
from tagsmith.app.cli.backup.progress import Phase, Report
from tagsmith.core.base import disk
from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.service import version
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import clock, migrate
from tagsmith.core.store.engine import Database, normal_url


def save(settings: Settings, path: Path, report: Report) -> dict[str, Any]:
    """Write a backup, read it back, and return what it has. The file appears when it has been checked.

    The rows are read in one transaction, which sees one state of the database and keeps no writer waiting.
    """
    _refuse_existing(path)
    _require_database(settings.database_url)
    database = Database(settings.database_url)
    try:
        with disk.room_in(str(path.absolute().parent)), _complete(path) as file:
            with database.read() as conn:
                manifest = _write(conn, file, report)
            file.flush()
            os.fsync(file.fileno())
            with archive.BackupReader(Path(file.name)) as reader:
                checked = reader.check(Phase("checking the backup", manifest.rows, report))
    finally:
        database.dispose()
    found = archive.summary(manifest, checked)
    return {"path": str(path), "size_bytes": path.stat().st_size, **found}


def _write(conn: Connection, file: IO[bytes], report: Report) -> archive.Manifest:
    revision = migrate.present(conn)
    if revision is None:
        raise NotFound("The database is empty: there is nothing to back up.", code="nothing_to_back_up")
    migrate.require_known(revision, "The database has")
    tables = rows.tables_of(conn)
    phase = Phase("writing the backup", sum(rows.count(conn, table) for table in tables), report)
    with archive.BackupWriter(file) as writer:
        members = {table.name: writer.table(table, rows.read(conn, table), phase) for table in tables}
        manifest = archive.Manifest(
            format=archive.FORMAT,
            tagsmith=version.code_version(),
            schema=revision,
            dialect=conn.dialect.name,
            created_at=clock.rfc3339(datetime.now(UTC)),
            tables=members,
        )
        writer.manifest(manifest)
    return manifest


@contextmanager
def _complete(path: Path) -> Iterator[IO[bytes]]:
    """A private file that gets its name at the end of the block. If the block fails, it is removed."""
    part = tempfile.NamedTemporaryFile(prefix=f".{path.name}.", dir=path.absolute().parent, delete=False)  # noqa: SIM115
    try:
        with part:
            yield part
        publish(Path(part.name), path)
    finally:
        with suppress(FileNotFoundError):
            Path(part.name).unlink()


def publish(made: Path, path: Path) -> None:
    """Give a complete file its name, and never replace another file."""
    try:
        path.hardlink_to(made)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:
        # Not every file system has links.
        _refuse_existing(path)
        made.rename(path)
    descriptor = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise _exists(path)


def _exists(path: Path) -> Conflict:
    return Conflict(f"{path} exists. Give a new name, or remove it first.", code="target_exists")


def _require_database(url: str) -> None:
    """Raise NotFound for an SQLite file that does not exist, which opening it would create."""
    parsed = normal_url(url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").exists():
        raise NotFound(
            f"There is no database {parsed.database}. Give --data-dir, or set TAGSMITH_DATABASE_URL.",
            code="no_database",
        )
