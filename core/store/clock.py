"""Time: always UTC and timezone-aware, from one clock for all machines that share a database."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time. Naive values are refused, because their meaning depends on the machine."""

    impl = sa.DateTime
    cache_ok = True

    def __init__(self) -> None:
        super().__init__(timezone=True)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store UTC. SQLite stores text of fixed width without a zone, so text order is time order."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"A naive datetime cannot be stored: {value.isoformat()}. Add a time zone.")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(
        self,
        value: datetime | None,
        dialect: Dialect,  # noqa: ARG002  # the signature is SQLAlchemy's
    ) -> datetime | None:
        """Return UTC, regardless of the time zone of the session."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    def __repr__(self) -> str:
        return "UtcDateTime()"


def now(conn: Connection) -> datetime:
    """Return the present time of the database's clock.

    SQLite has no server, but all its users share a machine and its clock. This clock may jump: `lease_clock` does not.
    """
    if conn.dialect.name == "postgresql":
        stamp: Any = conn.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
        return stamp.astimezone(UTC)  # type: ignore[no-any-return]
    return datetime.now(UTC)


def rfc3339(at: datetime) -> str:
    """Format a time as in the HTTP API: `2026-01-31T08:47:05.123456Z`."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
