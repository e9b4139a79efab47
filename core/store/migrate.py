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

from tagsmith.core.base.errors import Conflict
from tagsmith.core.store.engine import Database, normal_url

SCRIPTS = Path(__file__).resolve().parents[2] / "migrations"
#: The table in which Alembic stores the revision.
VERSION_TABLE = "alembic_version"
# An arbitrary number that all processes of this service share.
ADVISORY_LOCK = 7_249_310_553_028_116


class SchemaTooNew(Conflict):
    """A newer version of the program has migrated the database or made the backup."""

    default_code = "schema_too_new"


def upgrade(url: str, revision: str = "head") -> None:
    """Upgrade to a revision, by default the newest. Does nothing if the schema is there already.

    Raises SchemaTooNew if a newer version of the program has migrated the database.
    """
    with locked(url) as conn:
        upgrade_in(conn, revision)


def upgrade_in(conn: Connection, revision: str = "head") -> None:
    """Upgrade in a transaction of `locked`."""
    require_known(present(conn), "The database has")
    command.upgrade(_config(conn), revision)


def downgrade(url: str, revision: str) -> None:
    """Downgrade to an earlier revision, for an earlier version of the program."""
    with locked(url) as conn:
        require_known(present(conn), "The database has")
        command.downgrade(_config(conn), revision)


@contextmanager
def locked(url: str) -> Iterator[Connection]:
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
    """Whether the schema is the newest one. Raises SchemaTooNew if this code does not know it."""
    with db.read() as conn:
        revision = present(conn)
    require_known(revision, "The database has")
    return revision == head()


def present(conn: Connection) -> str | None:
    """Return the revision of the schema, or None if there is no schema."""
    if not sa.inspect(conn).has_table(VERSION_TABLE):
        return None
    query = sa.select(sa.column("version_num", sa.String)).select_from(sa.table(VERSION_TABLE))
    return conn.scalars(query).one_or_none()


def require_known(revision: str | None, subject: str) -> None:
    """Raise SchemaTooNew unless this code knows a revision. The message begins with `subject`."""
    if revision is not None and revision not in known():
        raise SchemaTooNew(
            f"{subject} schema {revision}, which is newer than this version of Tagsmith (schema {head()}). "
            "Install the newer version, or restore a backup of this version."
        )


def head() -> str:
    """Return the newest revision that this code knows."""
    return known()[0]


@functools.cache
def known() -> tuple[str, ...]:
    """Return the revisions in `migrations/`, newest first. Cached: they do not change while a process runs."""
    scripts = ScriptDirectory.from_config(_config(None))
    return tuple(script.revision for script in scripts.walk_revisions())


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
