import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tagsmith.core.base.errors import NotFound
from tagsmith.core.jobs import events, jobs
from tagsmith.core.jobs.events import Draft
from tagsmith.core.store import clock
from tagsmith.core.store.engine import Database
from tests.core.store.samples import add_job


def test_events_are_numbered_from_one_without_gaps_and_come_back_in_order(db: Database) -> None:
    job = add_job(db)
    noted_s = time.monotonic() - 3600
    drafts = [
        Draft("pass", f"pass {i}", {"pass": i, "dev": {"f1": 91.5}}, noted_s=noted_s) for i in (1, 2, 3)
    ]
    with db.write() as conn:
        hour_ago = clock.now(conn) - timedelta(hours=1)
        made = events.append(conn, job.id, drafts)
        assert events.append(conn, job.id, []) == []
    with db.read() as conn:
        assert jobs.get(conn, job.id).last_seq == 4
        found = events.after(conn, job.id, 1, 100)
        assert [event.seq for event in events.after(conn, job.id, 2, 1)] == [3]
        assert [event.seq for event in events.after(conn, job.id, -5, 100)] == [1, 2, 3, 4]
        assert events.after(conn, job.id, 4, 100) == []
        assert events.after(conn, job.id, 10**30, 100) == []
    assert found == made
    assert abs(found[0].at - hour_ago) < timedelta(minutes=1)
    at = datetime(2026, 1, 31, 8, 47, 5, 123456, tzinfo=UTC)
    found[0] = dataclasses.replace(found[0], at=at)
    assert found[0].as_dict() == {
        "seq": 2,
        "type": "pass",
        "level": "info",
        "at": "2026-01-31T08:47:05.123456Z",
        "message": "pass 1",
        "data": {"pass": 1, "dev": {"f1": 91.5}},
    }


def test_writers_at_once_leave_no_gap_and_no_duplicate(db: Database) -> None:
    job = add_job(db)
    start = threading.Barrier(4)

    def write(writer: int) -> None:
        start.wait()
        for i in range(10):
            with db.write() as conn:
                events.append(conn, job.id, [Draft("message", f"{writer} {i} {part}") for part in "ab"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    with db.read() as conn:
        found = events.after(conn, job.id, 0, 1000)
    assert [event.seq for event in found] == list(range(1, 82))
    assert {event.message for event in found[1:]} == {
        f"{w} {i} {p}" for w in range(4) for i in range(10) for p in "ab"
    }
    assert all(found[i].message[:-1] == found[i + 1].message[:-1] for i in range(1, 81, 2))


def test_a_rolled_back_event_leaves_no_gap(db: Database) -> None:
    job = add_job(db)

    def fail_after_appending() -> None:
        with db.write() as conn:
            events.append(conn, job.id, [Draft("message", "never happened")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_after_appending()
    with db.write() as conn:
        (event,) = events.append(conn, job.id, [Draft("message", "happened")])
    assert event.seq == 2


def test_events_of_an_unknown_job_are_refused(db: Database) -> None:
    with db.write() as conn, pytest.raises(NotFound):
        events.append(conn, "job_none", [Draft("message", "to nobody")])
