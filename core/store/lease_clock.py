"""The clock of leases: one for all processes that share a database, and without jumps on SQLite.

On PostgreSQL it is the clock of the server. Users of an SQLite file share a machine, so there it is the monotonic clock
of the machine, which neither `date` nor NTP sets and which stands still while the machine sleeps. The table
`lease_clock` says how far it is from the time of day at the first use since the machine booted.
"""

import functools
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.store import clock, tables
from tagsmith.core.store.states import HELD

#: Identifies the boot, and with it the monotonic clock. Containers of one machine read the same id.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_clock = tables.lease_clock


def now(conn: Connection) -> datetime:
    """Return the present time of the clock. Compare it only with other times of the same clock."""
    boot = _boot_id()
    if conn.dialect.name != "sqlite" or boot is None:
        return clock.now(conn)
    machine_us = time.monotonic_ns() // 1000
    found = conn.execute(sa.select(_clock.c.offset_us).where(_clock.c.boot_id == boot)).scalar_one_or_none()
    offset_us = _begin(conn, boot, machine_us) if found is None else int(found)
    return _EPOCH + _MICROSECOND * (offset_us + machine_us)


def _begin(conn: Connection, boot: str, machine_us: int) -> int:
    """Start the clock of this boot, no earlier than any lease of an earlier one; return its offset."""
    job, kept = tables.job, tables.kept_answer
    held = (
        sa.select(sa.func.max(job.c.lease_until)).where(job.c.state.in_([state.value for state in HELD])),
        sa.select(sa.func.max(kept.c.expires_at)).where(kept.c.status.is_(None)),
    )
    begin = max(conn.execute(query).scalar_one() or _EPOCH for query in held)
    offset_us = int((max(begin, clock.now(conn)) - _EPOCH) / _MICROSECOND) - machine_us
    if not conn.exec_driver_sql("PRAGMA query_only").scalar_one():  # a reader leaves it to the next writer
        conn.execute(_clock.delete())
        conn.execute(_clock.insert().values(boot_id=boot, offset_us=offset_us))
    return offset_us


@functools.cache
def _boot_id() -> str | None:
    """Return the id of this boot; None on systems without one, which use the time of day."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return None
