from datetime import timedelta

import pytest
import sqlalchemy as sa

from tagsmith.core.jobs import leases
from tagsmith.core.store import clock, idempotency, lease_clock, tables
from tagsmith.core.store.engine import Database
from tests.core.store.samples import add_job

HOUR = timedelta(hours=1)


def read(db: Database) -> list[str]:
    with db.read() as conn:
        return list(conn.scalars(sa.select(tables.lease_clock.c.boot_id)))


def test_it_goes_on_without_jumps(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    if db.dialect != "sqlite":
        pytest.skip("the clock of a server is its own")
    with db.write() as conn:
        before = lease_clock.now(conn)
    real = clock.now
    for jump in (HOUR, -HOUR):
        monkeypatch.setattr(clock, "now", lambda conn, jump=jump: real(conn) + jump)
        with db.read() as conn:
            after = lease_clock.now(conn)
        assert before < after < before + HOUR / 2
        before = after


def test_a_machine_that_booted_with_a_wrong_clock_begins_after_all_leases(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if db.dialect != "sqlite":
        pytest.skip("the clock of a server is its own")
    job = add_job(db)
    with db.write() as conn:
        leases.claim(conn, job.id, "lost", lease_s=30)
        idempotency.begin(conn, "row", "lost")
        began = lease_clock.now(conn)
    monkeypatch.setattr(lease_clock, "_boot_id", lambda: "next boot")
    monkeypatch.setattr(clock, "now", lambda _: began - 24 * HOUR)
    with db.read() as conn:
        lease_clock.now(conn)  # a reader starts no clock
    assert "next boot" not in read(db)
    with db.write() as conn:
        assert [reaped.id for reaped in leases.reap(conn, lease_clock.now(conn))] == [job.id]
        assert idempotency.begin(conn, "row", "next") is None
    assert read(db) == ["next boot"]


def test_without_the_id_of_a_boot_it_is_the_time_of_day(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_clock, "_boot_id", lambda: None)
    with db.write() as conn:
        assert clock.now(conn) <= lease_clock.now(conn) <= clock.now(conn)
