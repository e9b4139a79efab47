"""Requests that create, sent twice: carried out once, answered alike."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tagsmith.core.store import clock, idempotency, tables
from tagsmith.core.store.engine import Database
from tagsmith.core.store.idempotency import StoredResponse
from tests.app import samples
from tests.app.servers import assert_problem


def count(database: Database, table: sa.Table) -> int:
    with database.read() as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def upload(http: httpx.Client, key: str, content: bytes = samples.TEXT, **params: str) -> httpx.Response:
    return http.post("/corpora", params=params, content=content, headers={"Idempotency-Key": key})


def test_an_upload_sent_twice_is_stored_once_and_answered_alike(
    http: httpx.Client, database: Database
) -> None:
    before = count(database, tables.corpus), count(database, tables.audit)
    first, again = upload(http, "once"), upload(http, "once")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert first.headers["location"] == again.headers["location"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert first.headers["x-request-id"] != again.headers["x-request-id"]
    assert (count(database, tables.corpus), count(database, tables.audit)) == (before[0] + 1, before[1] + 1)
    assert upload(http, "twice").json()["id"] != first.json()["id"]


def test_jobs_and_lexicons_too(http: httpx.Client) -> None:
    corpus_id = upload(http, "for-a-job").json()["id"]
    headers = {"Idempotency-Key": "job"}
    jobs = [http.post("/jobs", json=samples.spec(corpus_id), headers=headers) for _ in range(2)]
    assert [job.status_code for job in jobs] == [202, 202]
    assert jobs[0].json() == jobs[1].json()
    assert jobs[1].headers["retry-after"] == jobs[0].headers["retry-after"]
    lexicons = [http.post("/lexicons", content=b"Rome\n", headers=headers) for _ in range(2)]
    assert [each.status_code for each in lexicons] == [201, 201]


@pytest.mark.parametrize(
    "other",
    [
        lambda http: upload(http, "reused", samples.TEXT + b"\nMore NN O\n"),
        lambda http: upload(http, "reused", name="other"),
        lambda http: http.post(
            "/corpora",
            content=samples.TEXT,
            headers={"Idempotency-Key": "reused", "Content-Type": "text/plain"},
        ),
    ],
    ids=["body", "query", "media type"],
)
def test_another_request_with_the_same_key_is_refused(
    http: httpx.Client, database: Database, other: Callable[[httpx.Client], httpx.Response]
) -> None:
    assert upload(http, "reused").status_code == 201
    before = count(database, tables.corpus)
    assert_problem(other(http), 409, "idempotency_key_reused")
    assert count(database, tables.corpus) == before


def test_a_request_that_failed_can_be_made_again_with_its_key(http: httpx.Client, database: Database) -> None:
    before = count(database, tables.kept_answer)
    assert_problem(upload(http, "mended", b"ragged\nlines x O\n"), 422, "invalid_corpus")
    assert_problem(upload(http, "mended", b"x" * 200_001), 413, "body_too_large")
    assert count(database, tables.kept_answer) == before
    assert upload(http, "mended").status_code == 201


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\x80"])
def test_a_key_that_cannot_be_used_is_refused_with_its_name(http: httpx.Client, key: str) -> None:
    headers = {"Idempotency-Key": key.encode("latin-1")}
    answer = http.post("/corpora", content=samples.TEXT, headers=headers)
    assert_problem(answer, 422, "invalid_idempotency_key", parameter="Idempotency-Key")


def test_of_many_at_once_one_is_carried_out(http: httpx.Client, database: Database) -> None:
    before = count(database, tables.corpus)
    start = threading.Barrier(8)

    def send(_: int) -> httpx.Response:
        start.wait()
        return upload(http, "race")

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(send, range(8)))
    assert count(database, tables.corpus) == before + 1
    done = [each for each in found if each.status_code == 201]
    assert len(done) >= 1
    assert len({each.json()["id"] for each in done}) == 1
    for each in found:
        if each not in done:
            assert_problem(each, 409, "idempotency_key_in_use")
            assert each.headers["retry-after"] == "1"


def test_a_lost_request_is_taken_over_and_cannot_spoil_the_answer_of_the_next(database: Database) -> None:
    def act(work: Callable[..., Any], *arguments: Any) -> Any:
        with database.write() as conn:
            return work(conn, "row", *arguments)

    assert act(idempotency.begin, "lost") is None
    with pytest.raises(idempotency.InProgress):
        act(idempotency.begin, "second")
    with database.write() as conn:
        past = clock.now(conn) - timedelta(seconds=1)
        conn.execute(
            tables.kept_answer.update().where(tables.kept_answer.c.id == "row").values(expires_at=past)
        )
    assert act(idempotency.begin, "second") is None
    with pytest.raises(idempotency.InProgress):
        act(idempotency.store, "lost", StoredResponse("x", 201, {}, b"late"))
    act(idempotency.release, "lost")
    kept = StoredResponse("f", 201, {"location": "/x"}, b"{}")
    act(idempotency.store, "second", kept)
    act(idempotency.renew, "second")
    act(idempotency.release, "second")
    assert act(idempotency.begin, "third") == kept
    with database.read() as conn:
        query = sa.select(tables.kept_answer.c.expires_at).where(tables.kept_answer.c.id == "row")
        assert conn.execute(query).scalar_one() > clock.now(conn) + timedelta(hours=23)


def test_answers_that_ran_out_are_removed(database: Database) -> None:
    with database.write() as conn:
        idempotency.begin(conn, "old", "a")
        idempotency.begin(conn, "new", "a")
        past = clock.now(conn) - timedelta(seconds=1)
        conn.execute(
            tables.kept_answer.update().where(tables.kept_answer.c.id == "old").values(expires_at=past)
        )
        assert idempotency.clean(conn) == 1
        ids = set(conn.scalars(sa.select(tables.kept_answer.c.id)))
    assert "new" in ids
    assert "old" not in ids
