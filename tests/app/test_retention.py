"""Retention: what is kept, what would go, and what does go."""

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from tagsmith.app import housekeeping
from tagsmith.client import Client
from tagsmith.core.jobs import checkpoints, control, jobs, leases
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import blobs, tables
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import new_id
from tests.app import samples
from tests.app.servers import assert_problem
from tests.app.test_jobs import publish


def prepare(database: Database, client: Client, name: str, versions: int, *champions: int) -> None:
    for _ in range(versions):
        publish(database, name)
    for number in champions:
        client.promote(name, number)


def numbers(client: Client, name: str) -> list[int]:
    return [version.version for version in client.versions(name)]


def test_a_dry_run_says_what_would_go_and_why_the_rest_stays(
    http: httpx.Client, client: Client, database: Database
) -> None:
    prepare(database, client, "dry", 8, 1, 2, 3, 5)
    client.promote("dry", 2, alias="canary")
    job = client.tag_corpus("dry:4", client.upload(samples.TEXT).id)
    plan = client.retention("dry", keep_last=2, keep_rollbacks=1)
    assert [each.version for each in plan.remove] == [1, 6]
    assert plan.size_bytes == sum(each.size_bytes for each in plan.remove) > 0
    assert [each.model_dump() for each in plan.keep] == [
        {"version": 8, "because": ["one of the newest 2"]},
        {"version": 7, "because": ["one of the newest 2"]},
        {"version": 5, "because": ["champion points to it"]},
        {"version": 4, "because": [f"{job.id} needs it"]},
        {"version": 3, "because": ["1 step back from champion"]},
        {"version": 2, "because": ["canary points to it"]},
    ]
    assert not plan.in_force
    # With nothing said and no policy, the defaults.
    shown = http.get("/models/dry/retention").json()
    assert (shown["keep_last"], shown["keep_rollbacks"], shown["remove"]) == (10, 3, [])
    client.set_policy("dry", retention={"keep_last": 2, "keep_rollbacks": 1})
    assert client.retention("dry").in_force
    assert not client.retention("dry", keep_rollbacks=2).in_force
    assert [each.version for each in client.retention("dry", keep_rollbacks=2).remove] == [1, 6]
    assert client.retention("dry", keep_rollbacks=3).remove[0].version == 6
    assert numbers(client, "dry") == [8, 7, 6, 5, 4, 3, 2, 1]
    client.cancel(job.id)
    client.delete_policy("dry")


def test_a_sweep_removes_just_that_with_its_bytes_and_says_so_in_the_audit(
    http: httpx.Client, client: Client, database: Database
) -> None:
    prepare(database, client, "swept", 9, 1, 2, 4)
    prepare(database, client, "other", 3)
    client.set_policy("swept", retention={"keep_last": 2, "keep_rollbacks": 1})
    client.set_policy("other", {"minimum": 1})
    planned = [each.version for each in client.retention("swept").remove]
    assert planned == [1, 3, 5, 6, 7]
    assert sum(housekeeping.remove_versions(database)) == 5
    assert numbers(client, "swept") == [9, 8, 4, 2]
    assert numbers(client, "other") == [3, 2, 1]
    assert (client.retention("swept").remove, client.rollback("swept").version) == ([], 2)
    assert_problem(http.get("/models/swept/versions/3/artifact"), 404, "version_not_found")
    deeds = [deed for deed in http.get("/audit").json()["data"] if deed["method"] == "SWEEP"]
    assert sorted(deed["path"] for deed in deeds) == [f"/models/swept/versions/{n}" for n in planned]
    assert {(deed["actor"], deed["key_id"], deed["request_id"]) for deed in deeds} == {
        ("retention", None, "")
    }
    with database.read() as conn:
        version, blob, chunk = tables.model_version, tables.blob, tables.blob_chunk
        used = set(conn.scalars(sa.select(version.c.blob_id))) | set(
            conn.scalars(sa.select(tables.corpus.c.blob_id))
        )
        assert set(conn.scalars(sa.select(blob.c.id))) == used
        assert set(conn.scalars(sa.select(chunk.c.blob_id))) == used
    client.delete_policy("swept")
    client.delete_policy("other")


def test_sweeps_of_several_processes_remove_and_record_each_version_once(
    http: httpx.Client, client: Client, database: Database
) -> None:
    prepare(database, client, "crowd", 40, 1)
    client.set_policy("crowd", retention={"keep_last": 3, "keep_rollbacks": 0})
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: sum(housekeeping.remove_versions(database)), range(4)))
    assert sum(counts) == 36
    assert numbers(client, "crowd") == [40, 39, 38, 1]
    deeds = http.get("/audit", params={"limit": 500}).json()["data"]
    paths = [deed["path"] for deed in deeds if deed["path"].startswith("/models/crowd/versions/")]
    assert len(paths) == len(set(paths)) == 36
    client.delete_policy("crowd")


def test_a_chore_that_fails_does_not_keep_the_others_from_being_done(
    client: Client, database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prepare(database, client, "chores", 3)
    client.set_policy("chores", retention={"keep_last": 1})

    calls: list[int] = []

    async def until_the_second_round() -> None:
        loop, second = asyncio.get_running_loop(), asyncio.Event()

        def broken(_: object) -> int:
            calls.append(len(calls))
            if len(calls) == 2:
                loop.call_soon_threadsafe(second.set)
            raise RuntimeError("no such thing")

        monkeypatch.setattr("tagsmith.core.store.idempotency.clean", broken)
        monkeypatch.setattr(housekeeping, "INTERVAL_S", 0.01)
        keeping = asyncio.create_task(housekeeping.run_cleanup(database, Settings()))
        await second.wait()
        keeping.cancel()

    with caplog.at_level(logging.INFO, housekeeping.__name__):
        asyncio.run(asyncio.wait_for(until_the_second_round(), 20))
    assert numbers(client, "chores") == [3]
    said = {
        (record.message, record.__dict__["what"]) for record in caplog.records if "what" in record.__dict__
    }
    assert said >= {("clean-up failed", "responses"), ("cleaned up", "versions")}
    client.delete_policy("chores")


def test_jobs_and_entries_of_the_audit_go_when_they_are_old_and_versions_stay(
    http: httpx.Client, client: Client, database: Database
) -> None:
    publish(database, "kept")
    corpus = client.upload(samples.TEXT, name="old").id
    old, new, running = (client.tag_corpus("kept", corpus).id for _ in range(3))
    for job_id in (old, new):
        client.cancel(job_id)
    long_ago = datetime.now(UTC) - timedelta(days=91)
    with database.write() as conn:
        job, entry = tables.job, tables.audit
        conn.execute(job.update().where(job.c.id == old).values(finished_at=long_ago))
        conn.execute(entry.update().where(entry.c.path == f"/jobs/{new}/cancel").values(at=long_ago))
    assert sum(housekeeping.remove_jobs(database, 0)) == 0
    assert sum(housekeeping.remove_jobs(database, 90)) == 1
    assert_problem(http.get(f"/jobs/{old}"), 404, "job_not_found")
    assert [client.job(each).state for each in (new, running)] == ["cancelled", "queued"]
    assert client.version("kept", 1).version == 1
    assert sum(housekeeping.remove_audit(database, 0)) == 0
    assert sum(housekeeping.remove_audit(database, 90)) == 1
    paths = [
        (deed["method"], deed["path"]) for deed in http.get("/audit", params={"limit": 500}).json()["data"]
    ]
    assert ("SWEEP", f"/jobs/{old}") in paths
    assert ("POST", f"/jobs/{new}/cancel") not in paths
    assert ("POST", f"/jobs/{old}/cancel") in paths
    client.cancel(running)


def test_parts_of_jobs_go_before_the_job_when_they_are_old(
    http: httpx.Client, client: Client, database: Database
) -> None:
    publish(database, "tagged")
    corpus = client.upload(samples.TEXT, name="tagged").id
    active, old, new = (client.tag_corpus("tagged", corpus).id for _ in range(3))
    result = {
        "media_type": "text/plain",
        "format": "conll",
        "size_bytes": 3,
        "sha256": "0" * 64,
        "model": "tagged",
        "version": 1,
    }
    long_ago = datetime.now(UTC) - timedelta(days=31)
    with database.write() as conn:
        for job_id in (old, new):
            assert leases.claim(conn, job_id, "me", 30) is not None
            blobs.write(conn, jobs.output_id(job_id), [b"abc"])
            leases.succeed(conn, job_id, "me", result)
        # Those of other tests as well: a search ends with the first job that is too young.
        conn.execute(tables.job.update().where(tables.job.c.id != new).values(created_at=long_ago))
        conn.execute(tables.job.update().where(tables.job.c.id == old).values(finished_at=long_ago))
    assert http.get(f"/jobs/{old}/output").status_code == 200
    for remove in (housekeeping.remove_events, housekeeping.remove_outputs):
        assert sum(remove(database, 0)) == 0
        assert sum(remove(database, 30)) == 1
        assert sum(remove(database, 30)) == 0
    assert_problem(http.get(f"/jobs/{old}/output"), 404, "output_deleted")
    assert http.get(f"/jobs/{new}/output").status_code == 200
    assert [len(list(client.events(each))) for each in (active, old, new)] == [1, 0, 3]
    assert client.job(old).result == result
    # A stream of what is gone ends, and clients do not come back for it.
    streamed = {"Accept": "text/event-stream"}
    assert http.get(f"/jobs/{old}/events", headers=streamed).status_code == 204
    assert "succeeded" in http.get(f"/jobs/{new}/events", headers=streamed).text
    assert client.wait(old).state == "succeeded"
    client.cancel(active)


def test_a_job_that_is_paused_for_too_long_is_cancelled_with_its_checkpoint(
    http: httpx.Client, client: Client, database: Database
) -> None:
    publish(database, "paused")
    corpus = client.upload(samples.TEXT, name="paused").id
    old, new = (client.tag_corpus("paused", corpus).id for _ in range(2))
    with database.write() as conn:
        for job_id in (old, new):
            assert leases.claim(conn, job_id, "me", 30) is not None
            checkpoints.replace(conn, job_id, 1, blobs.write(conn, new_id("blb"), [b"state"]).id)
            control.pause(conn, job_id)
            leases.suspended(conn, job_id, "me")
        kept = tables.job_checkpoint
        long_ago = datetime.now(UTC) - timedelta(days=91)
        conn.execute(kept.update().where(kept.c.job_id == old).values(created_at=long_ago))
    assert sum(housekeeping.cancel_paused(database, 0)) == 0
    assert sum(housekeeping.cancel_paused(database, 90)) == 1
    assert sum(housekeeping.cancel_paused(database, 90)) == 0
    assert [client.job(each).state for each in (old, new)] == ["cancelled", "paused"]
    with database.read() as conn:
        assert checkpoints.find(conn, old) is None
        assert checkpoints.find(conn, new) is not None
    deeds = http.get("/audit").json()["data"]
    assert [deed["method"] for deed in deeds if deed["path"] == f"/jobs/{old}/cancel"] == ["SWEEP"]
    client.cancel(new)


def test_folders_of_killed_processes_are_removed(tmp_path: Path) -> None:
    for name in ("left", "used"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model").write_bytes(b"half")
    os.utime(tmp_path / "left", (0, 0))
    assert sum(housekeeping.remove_spool(tmp_path)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["used"]
    assert sum(housekeeping.remove_spool(tmp_path / "none")) == 0


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({"keep_last": 0}, "keep_last"),
        ({"keep_last": "all"}, "keep_last"),
        ({"keep_rollbacks": -1}, "keep_rollbacks"),
        ({"keep_rollbacks": 10**30}, "keep_rollbacks"),
    ],
)
def test_a_wrong_dry_run_is_pointed_at(http: httpx.Client, query: dict[str, object], parameter: str) -> None:
    response = http.get("/models/nobody/retention", params=query)  # type: ignore[arg-type]
    assert_problem(response, 422, "invalid_request", parameter=parameter)
    assert_problem(http.get("/models/nobody/retention"), 404, "model_not_found")
