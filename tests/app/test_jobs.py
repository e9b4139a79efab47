"""Jobs over HTTP: creating, listing, cancelling. The worker's part is played with the store's own functions."""

from collections.abc import Iterator

import httpx
import pytest
import redis

from tagsmith.client import Client
from tagsmith.core.jobs import leases
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.service import messages
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem
from tests.services import RedisServer


@pytest.fixture(scope="module")
def corpus_id(server: ThreadServer) -> str:
    return str(httpx.post(f"{server.url}/corpora", content=samples.TEXT).json()["id"])


def queued(redis_url: str) -> frozenset[str]:
    with redis.Redis.from_url(redis_url) as broker:
        waiting = messages.waiting(broker)
    assert waiting is not None
    return waiting


def test_a_job_is_accepted_stored_and_sent(http: httpx.Client, corpus_id: str, redis_url: str) -> None:
    response = http.post("/jobs", json=samples.spec(corpus_id), headers={"X-Request-Id": "make-it"})
    assert response.status_code == 202, response.text
    job = response.json()
    assert job["id"].startswith("job_")
    assert response.headers["location"] == f"/jobs/{job['id']}"
    assert int(response.headers["retry-after"]) == 1
    assert (job["kind"], job["state"], job["model"], job["attempt"]) == ("train", "queued", "chunker", 0)
    assert (job["progress"], job["result"], job["error"], job["finished_at"]) == (None, None, None, None)
    assert job["request_id"] == "make-it"
    assert job["spec"]["corpus"] == corpus_id
    assert job["spec"]["trainer"]["l1"] == 0.01
    assert http.get(f"/jobs/{job['id']}").json() == job
    assert job["id"] in queued(redis_url)


def test_the_first_event_of_a_job_says_that_it_is_queued(client: Client, corpus_id: str) -> None:
    job = client.train(samples.spec(corpus_id))
    events = client.events(job.id)
    assert [(event.seq, event.type, event.data["state"]) for event in events] == [(1, "state", "queued")]
    assert client.events(job.id, after=1) == []


def test_a_list_of_events_says_where_the_next_page_starts(
    http: httpx.Client, client: Client, corpus_id: str, database: Database
) -> None:
    job = client.train(samples.spec(corpus_id))
    with database.write() as conn:
        leases.claim(conn, job.id, "w", 30)
        leases.succeed(conn, job.id, "w", {"version": 1})
    page = http.get(f"/jobs/{job.id}/events", params={"limit": 2}).json()
    assert [event["seq"] for event in page["data"]] == [1, 2]
    assert page["next_cursor"] == "2"
    rest = http.get(f"/jobs/{job.id}/events", params={"after": page["next_cursor"]}).json()
    assert [event["data"]["state"] for event in rest["data"]] == ["succeeded"]
    assert rest["next_cursor"] is None
    assert set(rest["data"][0]) == {"seq", "type", "level", "at", "message", "data"}


def test_jobs_are_listed_by_state_and_model(client: Client, corpus_id: str, database: Database) -> None:
    made = [client.train(samples.spec(corpus_id, model=name)).id for name in ("list-a", "list-b", "list-a")]
    with database.write() as conn:
        leases.claim(conn, made[0], "w", 30)
    assert [job.id for job in client.jobs(model="list-a")] == [made[2], made[0]]
    assert [job.id for job in client.jobs(model="list-a", state="running")] == [made[0]]
    assert [job.id for job in client.jobs(model="list-b", state="running")] == []
    listed = [job.id for job in client.jobs()]
    assert listed[:3] == made[::-1]


def test_a_queued_job_is_cancelled_at_once_and_asking_again_changes_nothing(
    client: Client, corpus_id: str
) -> None:
    job = client.train(samples.spec(corpus_id))
    cancelled = client.cancel(job.id)
    assert (cancelled.state, cancelled.finished_at is not None) == ("cancelled", True)
    assert client.cancel(job.id) == cancelled
    assert [event.data["state"] for event in client.events(job.id)] == ["queued", "cancelled"]


def test_a_running_job_is_asked_to_stop(client: Client, corpus_id: str, database: Database) -> None:
    job = client.train(samples.spec(corpus_id))
    with database.write() as conn:
        leases.claim(conn, job.id, "w", 30)
    assert client.cancel(job.id).state == "cancelling"
    with database.read() as conn:
        assert leases.signals(conn, job.id, "w").cancel


def test_a_finished_job_cannot_be_cancelled(
    http: httpx.Client, client: Client, corpus_id: str, database: Database
) -> None:
    job = client.train(samples.spec(corpus_id))
    with database.write() as conn:
        leases.claim(conn, job.id, "w", 30)
        leases.succeed(conn, job.id, "w", {"version": 1})
    problem = assert_problem(http.post(f"/jobs/{job.id}/cancel"), 409, "illegal_transition")
    assert "succeeded" in problem["detail"]


def test_a_corpus_cannot_be_deleted_under_a_job_that_needs_it(http: httpx.Client, client: Client) -> None:
    corpus = client.upload(samples.TEXT)
    job = client.train(samples.spec(corpus.id))
    assert_problem(http.delete(f"/corpora/{corpus.id}"), 409, "corpus_in_use")
    client.cancel(job.id)
    client.delete_corpus(corpus.id)


def test_a_dev_corpus_with_other_columns_is_refused(
    http: httpx.Client, client: Client, corpus_id: str
) -> None:
    other = client.upload(b"a L\nb L\n")
    response = http.post("/jobs", json=samples.spec(corpus_id, dev={"corpus": other.id}))
    assert_problem(response, 422, "corpora_differ", pointer="/dev/corpus", reason="has 1 columns")


def publish(database: Database, name: str) -> None:
    new = NewVersion(
        objective=1.0, active_features=1, train_seconds=0.1, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="0", job_id=None,
    )  # fmt: skip
    with database.write() as conn:
        models.publish(conn, name, new, [b"bytes of a model"])


def test_a_start_is_fixed_to_one_version_when_the_job_is_posted(
    client: Client, corpus_id: str, database: Database
) -> None:
    publish(database, "starter")
    publish(database, "starter")

    def start_of(reference: str) -> str:
        job = client.train(samples.spec(corpus_id, init=reference))
        client.cancel(job.id)
        return str(job.spec["init"])

    assert start_of("starter") == "starter:2"
    client.promote("starter", 1)
    assert start_of("starter") == "starter:1"
    assert start_of("starter@champion") == "starter:1"
    assert start_of("starter:2") == "starter:2"
    assert client.train(samples.spec(corpus_id)).spec["init"] is None


def test_a_version_cannot_be_deleted_under_a_job_that_starts_from_it(
    http: httpx.Client, client: Client, corpus_id: str, database: Database
) -> None:
    publish(database, "needed")
    job = client.train(samples.spec(corpus_id, init="needed"))
    problem = assert_problem(http.delete("/models/needed/versions/1"), 409, "version_in_use")
    assert job.id in problem["detail"]
    client.cancel(job.id)
    client.delete_version("needed", 1)


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("nobody", "model_not_found"),
        ("lone:7", "version_not_found"),
        ("lone@blue", "alias_not_found"),
        ("Lone:1", "invalid_spec"),
        ("lone:0", "invalid_spec"),
    ],
)
def test_a_start_that_does_not_exist_is_pointed_at(
    http: httpx.Client, corpus_id: str, database: Database, reference: str, code: str
) -> None:
    publish(database, "lone")
    response = http.post("/jobs", json=samples.spec(corpus_id, init=reference))
    assert_problem(response, 422, code, pointer="/init")


@pytest.fixture
def lonely(sqlite_url: str, own_redis: RedisServer, tmp_path) -> Iterator[ThreadServer]:  # type: ignore[no-untyped-def]
    settings = Settings(data_dir=tmp_path, database_url=sqlite_url, redis_url=own_redis.url)
    own_redis.stop()
    with ThreadServer(settings) as server:
        yield server


def test_without_redis_a_job_is_stored_and_accepted(lonely: ThreadServer, own_redis: RedisServer) -> None:
    with Client(lonely.url) as client:
        corpus = client.upload(samples.TEXT)
        job = client.train(samples.spec(corpus.id))
        cancelled = client.cancel(job.id)
        assert cancelled.state == "cancelled"
        own_redis.start()
        again = client.train(samples.spec(corpus.id))
    assert again.id in queued(own_redis.url)
