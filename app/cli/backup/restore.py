"""`tagsmith restore`: make a database from a backup."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import zip_longest
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.app.cli.backup import archive, rows
from tagsmith.app.cli.backup.archive import BackupReader
from tagsmith.app.cli.backup.progress import Phase, Report
from tagsmith.app.cli.backup.rows import Row
from tagsmith.app.cli.backup.save import publish
from tagsmith.app.cli.rundir import RunDir
from tagsmith.core.base import disk
from tagsmith.core.base.errors import Conflict
from tagsmith.core.jobs import leases
from tagsmith.core.service import data_dir
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import migrate, tables
from tagsmith.core.store.engine import normal_url
from tagsmith.core.store.states import HELD, State


def check(path: Path, report: Report) -> dict[str, Any]:
    """Read a backup to its end, check it, and return what it has."""
    with BackupReader(path) as reader:
        found = archive.summary(reader.manifest, reader.check(_phase("checking the backup", reader, report)))
    return {"path": str(path), "size_bytes": path.stat().st_size, **found}


def restore(settings: Settings, path: Path, report: Report) -> dict[str, Any]:
    """Restore a backup into a database that does not exist or is empty. Nothing remains if it fails."""
    with BackupReader(path) as reader:
        migrate.require_known(reader.manifest.schema, f"The backup {path} has")
    target = normal_url(settings.database_url)
    sqlite = target.get_backend_name() == "sqlite"
    with ExitStack() as stack:
        if sqlite:
            data_dir.prepare(settings.data_dir)
            # A running server would go on with the files that it has open, wherever they were moved.
            stack.enter_context(RunDir(settings.data_dir).locked())
            _refuse_existing(Path(target.database or ""))
        found = check(path, report)
        stack.enter_context(disk.room_in("the database"))
        reader = stack.enter_context(BackupReader(path))
        if sqlite:
            _restore_file(Path(target.database or ""), reader, report)
        else:
            _load(settings.database_url, reader, report)
    return {**found, "schema": migrate.head(), "restored_from_schema": found["schema"]}


def _restore_file(path: Path, reader: BackupReader, report: Report) -> None:
    """Make an SQLite file beside its later name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=path.parent) as folder:
        made = Path(folder) / path.name
        _load(f"sqlite:///{made}", reader, report)
        with closing(sqlite3.connect(made)) as connection:
            if (found := connection.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
                raise _differs(found)
        with made.open("rb") as file:
            os.fsync(file.fileno())
        publish(made, path)


def _load(url: str, reader: BackupReader, report: Report) -> None:
    """Create the schema of the backup, load and compare all rows, and migrate: all in one transaction."""
    with migrate.locked(url) as conn:
        if present := sa.inspect(conn).get_table_names():
            raise Conflict(
                f"The database is not empty: it has the table {present[0]}. Restore into an empty database.",
                code="target_not_empty",
            )
        migrate.upgrade_in(conn, reader.manifest.schema)
        _load_rows(conn, reader, _phase("restoring", reader, report))
        _compare(conn, reader, _phase("checking the database", reader, report))
        migrate.upgrade_in(conn)
        _release(conn)


def _load_rows(conn: Connection, reader: BackupReader, phase: Phase) -> None:
    columns = {table.name: table.columns for table in rows.tables_of(conn)}
    for table in reader.tables():
        if set(table.columns) != set(columns.get(table.name, ())):
            raise reader.damaged(f"the table {table.name} does not have the columns of its schema")
    for table in reversed(reader.tables()):
        rows.delete_all(conn, table)  # rows that migrations have made
    for table in reader.tables():
        rows.insert(conn, table, _counted(reader.rows(table), phase))


def _compare(conn: Connection, reader: BackupReader, phase: Phase) -> None:
    """Compare what is stored with the backup, row by row."""
    for table in reader.tables():
        with closing(rows.read(conn, table)) as stored:
            pairs = zip_longest(reader.rows(table), _counted(stored, phase))
            if any(
                one is None or other is None or not rows.same(table.columns, one, other)
                for one, other in pairs
            ):
                raise _differs(f"the rows of {table.name} are different")


def _release(conn: Connection) -> None:
    """Take back what only the processes of the backup's time could finish.

    Jobs that were running go back to the queue, without a loss of their worker. Queued jobs get new messages. Requests
    that were being answered can be repeated with their Idempotency-Key.
    """
    job, answer = tables.job, tables.kept_answer
    held = sa.select(job.c.id, job.c.lease_owner).where(job.c.state.in_([each.value for each in HELD]))
    for row in conn.execute(held).all():
        leases.requeue(conn, row.id, row.lease_owner)
    conn.execute(job.update().where(job.c.state == State.QUEUED.value).values(sent_at=None))
    conn.execute(answer.delete().where(answer.c.status.is_(None)))
    conn.execute(tables.lease_clock.delete())  # of the machine that made the backup


def _counted(found: Iterator[Row], phase: Phase) -> Iterator[Row]:
    for row in found:
        yield row
        phase(1)


def _phase(name: str, reader: BackupReader, report: Report) -> Phase:
    return Phase(name, reader.manifest.rows, report)


def _refuse_existing(path: Path) -> None:
    present = [each for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")) if each.exists()]
    if present:
        raise Conflict(
            f"The database {path} exists. Restore into a data directory without a database: give another --data-dir, "
            f"or move {' and '.join(each.name for each in present)} away.",
            code="target_not_empty",
        )


def _differs(reason: str) -> Conflict:
    return Conflict(f"The restored database differs from the backup: {reason}.", code="restore_failed")
