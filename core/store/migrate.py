"""Database migrations. They are safe if several processes start at once."""

import fcntl
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from tagsmith.core.store.engine import Database, normal_url

SCRIPTS = Path(__file__).resolve().parents[2] / "migrations"
#: The table in which Alembic stores the revision.
VERSION_TABLE = "alembic_version"
# An arbitrary number that all processes of this service share.
ADVISORY_LOCK = 7_249_310_553_028_116


def upgrade(url: str, revision: str = "head") -> None:
    """Upgrade to a revision, by default the newest. Does nothing if the schema is there already."""
    with _locked(url) as conn:
        command.upgrade(_config(conn), revision)


def downgrade(url: str, revision: str) -> None:
    """Downgrade to an earlier revision, for an earlier version of the program."""
    with _locked(url) as conn:
        command.downgrade(_config(conn), revision)


@contextmanager
def _locked(url: str) -> Iterator[Connection]:
    """Open a transaction with the migration lock held."""
    with _file_lock(url):
        db = Database(url)
        try:
            with db.alter() as conn:
                if conn.dialect.name == "postgresql":
                    # Held until the commit, so the next process finds the new schema.
                    conn.execute(sa.select(sa.func.pg_advisory_xact_lock(ADVISORY_LOCK)))
                yield conn
        finally:
            db.dispose()


def at_head(db: Database) -> bool:
    """Whether the schema is at the newest revision of this code."""
    with db.read() as conn:
        if not sa.inspect(conn).has_table(VERSION_TABLE):
            return False
        query = sa.select(sa.column("version_num", sa.String)).select_from(sa.table(VERSION_TABLE))
        present = conn.scalars(query)
        return set(present) == _heads()


@functools.cache
def _heads() -> frozenset[str]:
    """Return the newest revisions in `migrations/`. Cached: they do not change while a process runs."""
    return frozenset(ScriptDirectory.from_config(_config(None)).get_heads())


def _config(conn: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    return config


@contextmanager
def _file_lock(url: str) -> Iterator[None]:
    """Lock the migration of an SQLite file. PostgreSQL uses an advisory lock instead."""
    parsed = normal_url(url)
    if parsed.get_backend_name() != "sqlite":
        yield
        return
    path = Path(f"{parsed.database}.migrate.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
