import re
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.jobs import control, job_stats, jobs, leases, retention
from tagsmith.core.jobs.job_stats import JobStats
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.store import clock, tables
from tagsmith.core.store.engine import Database

#: How each dialect says that it reads a table, or an index of it, from one end to the other. A list may read the index
#: of its order, because it stops after a page.
SCANS = {
    "sqlite": re.compile(r"SCAN job\b(?! USING INDEX ix_job_created_at_id)|SEARCH job$", re.MULTILINE),
    "postgresql": re.compile(
        r"Seq Scan on job\b"
        r"|Index (Only )?Scan( Backward)? using (?!ix_job_created_at_id)\S+ on job\b[^\n]*(\n(?! *Index Cond)|$)"
    ),
}


def add_job(db: Database, kind: str) -> JobRow:
    with db.write() as conn:
        return jobs.create(conn, kind=kind, spec={})


def stats(db: Database, kind: str) -> dict[str, JobStats]:
    with db.read() as conn:
        return {each.state: each for each in job_stats.read(conn).jobs if each.kind == kind}


def test_jobs_are_counted_as_they_end_and_a_deleted_one_has_ended_all_the_same(db: Database) -> None:
    made = [add_job(db, "counted") for _ in range(3)]
    with db.write() as conn:
        for job in made[:2]:
            leases.claim(conn, job.id, "me", 30)
            leases.fail(conn, job.id, "me", {"code": "x", "message": "x"})
        control.cancel(conn, made[2].id)
    both = stats(db, "counted")["failed"]
    assert (both.count, both.ended) == (2, 2)
    assert both.seconds > 0
    assert stats(db, "counted")["cancelled"] == JobStats("counted", "cancelled", 1, 0, 0.0)
    with db.write() as conn:
        control.delete(conn, made[0].id)
    assert stats(db, "counted")["failed"] == JobStats("counted", "failed", 1, 2, both.seconds)


@pytest.mark.parametrize(
    "read",
    [
        job_stats.read,
        jobs.waiting,
        lambda conn: jobs.unsent(conn, clock.now(conn)),
        lambda conn: leases.expired(conn, clock.now(conn)),
        lambda conn: retention.ended_before(conn, clock.now(conn), 20),
        lambda conn: retention.paused_before(conn, clock.now(conn), 20),
        lambda conn: jobs.page(conn, 20, model="some"),
        lambda conn: jobs.page(conn, 20),
    ],
    ids=["metrics", "waiting", "unsent", "expired", "ended", "paused", "list of a model", "list"],
)
def test_what_runs_often_reads_no_table_of_jobs_from_end_to_end(db: Database, read: Any) -> None:
    for plan in plans(db, read):
        assert not SCANS[db.dialect].search(plan), plan


def test_a_scan_is_recognised(db: Database) -> None:
    job = tables.job.c
    counted = sa.select(job.kind, job.state, sa.func.count(job.finished_at)).group_by(job.kind, job.state)
    for query in (
        counted,
        sa.select(sa.func.max(job.lease_until)),
        sa.select(tables.job).order_by(job.state),
    ):
        (plan,) = plans(db, lambda conn, query=query: conn.execute(query))
        assert SCANS[db.dialect].search(plan), plan


def plans(db: Database, read: Any) -> list[str]:
    """Give the plan of every statement about jobs that `read` executes."""
    found: list[str] = []
    with db.write() as conn:
        if db.dialect == "postgresql":
            # A small table is read whole even if it has an index. This shows what happens to a large one.
            conn.execute(sa.text("SET LOCAL enable_seqscan = off"))
        conn.execute(tables.lease_clock.delete())  # as after a boot

        def explain(executed: Connection, _: Any, statement: str, parameters: Any, *rest: Any) -> None:
            del rest
            if "FROM job" in statement and "EXPLAIN" not in statement:
                explained = "EXPLAIN QUERY PLAN " if db.dialect == "sqlite" else "EXPLAIN "
                rows = executed.exec_driver_sql(explained + statement, parameters).all()
                found.append("\n".join(str(row[-1]) for row in rows))

        sa.event.listen(conn, "before_cursor_execute", explain)
        read(conn)
        sa.event.remove(conn, "before_cursor_execute", explain)
    assert found
    return found


def test_a_list_has_summaries_and_one_job_has_all(db: Database) -> None:
    job = add_job(db, "long")
    result = {
        "version": 1,
        "curve": [1.0] * 9,
        "models": [{"metrics": {"f1": 1.0}, "confusion": [[1]], "curves": [{"name": "a"}]}],
        "table": [{"name": "a", "score": 1.0, "curve": [2]}],
    }
    spec = {"features": {"templates": "U" * 5000}, "names": ["n" * 600, "short"], "passes": 3}
    with db.write() as conn:
        conn.execute(tables.job.update().where(tables.job.c.id == job.id).values(result=result, spec=spec))
    with db.read() as conn:
        (listed,) = [each for each in jobs.page(conn, 100).data if each.id == job.id]
        whole = jobs.get(conn, job.id)
        (other, *_) = [each for each in jobs.page(conn, 100).data if each.id != job.id] or [None]
    assert (whole.result, whole.spec) == (result, spec)
    assert listed.result == {
        "version": 1, "models": [{"metrics": {"f1": 1.0}}], "table": [{"name": "a", "score": 1.0}],
    }  # fmt: skip
    assert listed.spec == {
        "features": {"templates": "U" * 500 + "…"}, "names": ["n" * 500 + "…", "short"], "passes": 3,
    }  # fmt: skip
    assert other is None or other.result is None
