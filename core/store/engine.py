"""The database: read and write transactions on SQLite or PostgreSQL."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import ConnectionPoolEntry

from tagsmith.core.base import disk
from tagsmith.core.base.errors import Invalid, Unavailable
from tagsmith.core.store.sqlite import copies

# Longer than the longest write: storing a corpus of maximum size takes some seconds.
BUSY_TIMEOUT_MS = 30_000
# A writer first waits in the pool for writers of its own process, then for other processes.
POOL_TIMEOUT_S = 60
CONNECT_TIMEOUT_S = 5
READERS = 8
READERS_OVERFLOW = 32

#: Key of the actions that run after the commit of a connection, in order.
_AFTER_COMMIT = "tagsmith.after_commit"

#: To open a file, SQLite makes a shared memory file of 32 KiB and a log.
SQLITE_NEEDS_BYTES = 64 << 10
SQLITE_OUTAGES = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR")
#: Errors that trying again does not solve, by the beginning of their names.
SQLITE_UNUSABLE = {
    "SQLITE_CORRUPT": "The database file is damaged. Restore a backup with `tagsmith restore`.",
    "SQLITE_NOTADB": "The database file is damaged, or not a database. Restore a backup with `tagsmith restore`.",
    "SQLITE_READONLY": "The database file cannot be written, which SQLite needs even to read. Change its permissions "
    "and those of its folder, or copy the folder.",
    "SQLITE_CANTOPEN": "The database file cannot be opened. Check its path, and the permissions of the file and its "
    "folder.",
    "SQLITE_PERM": "The database file cannot be opened. Check the permissions of the file and its folder.",
}

PRAGMAS = (
    "foreign_keys=ON",
    # With WAL, NORMAL always keeps the file consistent; only a power failure can lose the last commits.
    "synchronous=NORMAL",
    f"busy_timeout={BUSY_TIMEOUT_MS}",
    "temp_store=MEMORY",
    "mmap_size=268435456",
    # 16 MiB per connection: a process can keep READERS + 1 connections open.
    "cache_size=-16384",
)


class _Pool(sa.QueuePool):
    """A pool that also closes connections that are returned after `dispose`.

    SQLAlchemy keeps such a connection open until it is garbage-collected. They occur at shutdown, which cancels tasks
    whose threads are still reading.
    """

    over = False

    def dispose(self) -> None:
        self.over = True
        super().dispose()

    def recreate(self) -> "_Pool":
        made = super().recreate()
        assert isinstance(made, _Pool)
        # A `Database` in use again creates new engines; only late threads still use this pool.
        made.over = True
        return made

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        super()._do_return_conn(record)
        # Checked after the connection is returned: of this and `dispose`, the later one closes it.
        if self.over:
            super().dispose()


@dataclass(frozen=True, slots=True)
class _Engines:
    """The engines of one process."""

    pid: int
    read: Engine
    write: Engine

    def dispose(self, *, close: bool) -> None:
        self.read.dispose(close=close)
        self.write.dispose(close=close)


def normal_url(url: str) -> URL:
    """Parse a database URL, and choose the installed driver."""
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError:
        raise Invalid(
            "The database URL is not valid. Use an address such as sqlite:///file.db.", code="invalid_setting"
        ) from None
    backend = parsed.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise Invalid(
                "The SQLite database must be a file, because API and workers share it.",
                code="invalid_setting",
            )
        return parsed.set(drivername="sqlite+pysqlite")
    raise Invalid(
        f"The database {backend!r} is not supported. Use sqlite or postgresql.", code="invalid_setting"
    )


class Database:
    """A database. It connects at first use, and again in a forked child."""

    def __init__(self, url: str) -> None:
        self.url = normal_url(url)
        self._engines: _Engines | None = None
        self._lock = threading.Lock()

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.url.get_backend_name()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a read-only transaction that sees one consistent snapshot."""
        with _translated(self.url), self._current().read.connect() as conn, conn.begin():
            yield conn

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that is committed at the end, or rolled back on an exception.

        Actions given to `after_commit` run after the commit, when the connection is back in its pool.
        """
        with _translated(self.url), self._current().write.connect() as conn:
            # The driver's connection, to which `info` belongs, outlives a transaction that fails.
            actions = conn.info[_AFTER_COMMIT] = {}
            with conn.begin():
                yield conn
        for action in actions:
            action()

    @contextmanager
    def alter(self) -> Iterator[Connection]:
        """Open a transaction that may rebuild tables.

        SQLite rebuilds a table by copying and dropping it. With foreign keys enforced, dropping would delete the rows
        that refer to it, so they are checked before the commit instead.
        """
        with _translated(self.url), self._current().write.connect() as conn:
            sqlite_file = conn.connection.driver_connection if self.dialect == "sqlite" else None
            if sqlite_file is not None:
                # Has no effect inside a transaction.
                sqlite_file.execute("PRAGMA foreign_keys=OFF")
            try:
                with conn.begin():
                    yield conn
                    if sqlite_file is not None and conn.exec_driver_sql("PRAGMA foreign_key_check").first():
                        raise RuntimeError("a migration left rows that refer to nothing")
            finally:
                if sqlite_file is not None:
                    sqlite_file.execute("PRAGMA foreign_keys=ON")

    def dispose(self) -> None:
        """Close all connections; a later use opens new ones."""
        with self._lock:
            engines, self._engines = self._engines, None
        if engines is not None:
            # Sockets inherited over a fork belong to the parent: drop them without closing the sessions.
            own = engines.pid == os.getpid()
            engines.dispose(close=own)
            if own and self.dialect == "sqlite":
                copies.closed(Path(self.url.database or ""))

    def _current(self) -> _Engines:
        engines = self._engines
        if engines is not None and engines.pid == os.getpid():
            return engines
        with self._lock:
            engines = self._engines
            if engines is not None and engines.pid != os.getpid():
                engines.dispose(close=False)
                engines = None
            if engines is None:
                build = _sqlite_engines if self.dialect == "sqlite" else _postgresql_engines
                engines = self._engines = build(self.url)
            return engines


def _sqlite_engines(url: URL) -> _Engines:
    assert url.database is not None
    Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    copies.opened(Path(url.database))
    connect_args = {"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False}
    common: dict[str, Any] = {
        "connect_args": connect_args,
        "poolclass": _Pool,
        "pool_timeout": POOL_TIMEOUT_S,
        "json_serializer": _dump_json,
        "json_deserializer": orjson.loads,
    }
    read = sa.create_engine(url, pool_size=READERS, max_overflow=READERS_OVERFLOW, **common)
    # One writer per process: its threads queue in the pool, in order, instead of racing for the file lock.
    write = sa.create_engine(url, pool_size=1, max_overflow=0, **common)

    # The driver's own transaction mode opens no transaction for SELECT, so it is disabled and we send BEGIN.
    # IMMEDIATE takes the write lock at once: a transaction that reads first and writes later fails with
    # "database is locked" without waiting, regardless of the busy timeout.
    event.listen(read, "connect", lambda dbapi, _: _prepare_sqlite(dbapi, read_only=True))
    event.listen(write, "connect", lambda dbapi, _: _prepare_sqlite(dbapi, read_only=False))
    event.listen(read, "begin", lambda conn: conn.exec_driver_sql("BEGIN"))
    event.listen(write, "begin", lambda conn: conn.exec_driver_sql("BEGIN IMMEDIATE"))
    return _Engines(os.getpid(), read, write)


def _prepare_sqlite(dbapi: Any, *, read_only: bool) -> None:
    dbapi.isolation_level = None
    cursor = dbapi.cursor()
    for pragma in PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    mode = cursor.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        reason = f"SQLite cannot use WAL here (journal mode {mode!r}). Put the file on a local disk."
        raise Unavailable(reason, code="database_unfit")
    if read_only:
        cursor.execute("PRAGMA query_only=ON")
    cursor.close()


def _postgresql_engines(url: URL) -> _Engines:
    write = sa.create_engine(
        url,
        poolclass=_Pool,
        pool_size=READERS,
        max_overflow=READERS_OVERFLOW,
        pool_pre_ping=True,
        pool_timeout=POOL_TIMEOUT_S,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S},
        json_serializer=_dump_json,
        json_deserializer=orjson.loads,
    )
    # Readers run several statements and must see one snapshot, as on SQLite.
    read = write.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return _Engines(os.getpid(), read, write)


class _UnstorableError(ValueError):
    """A value cannot be represented in JSON."""


# Raised by drivers and the serialiser for text or numbers that cannot be stored.
_VALUE_ERRORS = (_UnstorableError, UnicodeEncodeError, OverflowError)


def _dump_json(value: Any) -> str:
    """Serialise for PostgreSQL: NaN and infinities become null, lone surrogates are refused."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise _UnstorableError(str(error)) from error


@contextmanager
def _translated(url: URL) -> Iterator[None]:
    """Translate exceptions that a user or an outage can cause; pass on all others."""
    try:
        yield
    except exc.TimeoutError as error:
        raise Unavailable("The database is too busy. Try again later.", code="database_busy") from error
    except exc.StatementError as error:
        if isinstance(error, exc.DataError) or isinstance(error.orig, _VALUE_ERRORS):
            raise _unstorable() from error
        if _is_full(error, url):
            raise disk.full("the database") from error
        if reason := _unusable(error):
            raise Unavailable(reason, code="database_unusable") from error
        if isinstance(error, exc.OperationalError) and _is_outage(error):
            raise Unavailable(
                "The database cannot be reached. Try again later.", code="database_unavailable"
            ) from error
        raise
    except _VALUE_ERRORS as error:
        raise _unstorable() from error


def _unstorable() -> Invalid:
    return Invalid(
        "A value contains text or a number that cannot be stored. Remove NUL characters and lone surrogates.",
        code="unstorable_value",
    )


def _is_full(error: exc.StatementError, url: URL) -> bool:
    """Whether the disk of the database is full (SQLITE_FULL; SQLSTATE 53100)."""
    name, state = getattr(error.orig, "sqlite_errorname", None), getattr(error.orig, "sqlstate", None)
    if name is not None and name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):
        # SQLite also reports these when it has no room for its log or its shared memory.
        return disk.free_bytes(Path(url.database or "").parent) < SQLITE_NEEDS_BYTES
    return name == "SQLITE_FULL" or state == "53100"


def _unusable(error: exc.StatementError) -> str:
    """Return why an SQLite file cannot be used at all, or ""."""
    name = str(getattr(error.orig, "sqlite_errorname", ""))
    if error.statement is not None and name == "SQLITE_READONLY":
        return ""  # a write on a connection for reading, which is an error of the program
    return next((reason for begin, reason in SQLITE_UNUSABLE.items() if name.startswith(begin)), "")


def _is_outage(error: exc.OperationalError) -> bool:
    if error.connection_invalidated:
        return True
    name = getattr(error.orig, "sqlite_errorname", None)
    if name is not None:
        return str(name).startswith(SQLITE_OUTAGES)
    # Without an SQLSTATE, psycopg could not reach the server. 08: connection, 53: resources, 57: shutdown.
    state = getattr(error.orig, "sqlstate", None)
    return state is None or state.startswith(("08", "53", "57"))


def after_commit(conn: Connection, action: Callable[[], None]) -> None:
    """Run an action once the transaction of `Database.write` is committed; the same action only once."""
    conn.info[_AFTER_COMMIT][action] = None


def insert_if_new(conn: Connection, table: sa.Table, values: Mapping[str, Any]) -> bool:
    """Insert a row unless its key exists, also in a concurrent transaction; return whether it was inserted."""
    insert = (postgresql if conn.dialect.name == "postgresql" else sqlite).insert(table)
    # RETURNING shows whether a row was inserted: not every driver reports the row count.
    done = insert.values(**values).on_conflict_do_nothing().returning(sa.literal(1))
    return conn.execute(done).first() is not None


def upsert(conn: Connection, table: sa.Table, values: Mapping[str, Any], *, key: Sequence[str]) -> None:
    """Insert a row, or replace the row with the same unique `key`, also one of a concurrent transaction."""
    insert = (postgresql if conn.dialect.name == "postgresql" else sqlite).insert(table).values(**values)
    conn.execute(insert.on_conflict_do_update(index_elements=list(key), set_=dict(values)))
