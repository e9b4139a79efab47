"""Pausing, resuming and retrying through the API; the worker's part is played with the store's functions."""

import httpx
import pytest

from tagsmith.client import Client
from tagsmith.core.jobs import jobs, leases
from tagsmith.core.service import messages, queues
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import assert_problem


@pytest.fixture(scope="module")
def corpus_id(client: Client) -> str:
    return client.upload(samples.TEXT).id


def bring_to(state: str, database: Database, job_id: str) -> None:
    """Bring a queued job into a state by legal steps."""
    with database.write() as conn:
        if state != "queued":
            leases.claim(conn, job_id, "w", 30)
        if state == "failed":
            leases.fail(conn, job_id, "w", {"code": "x", "message": "x"})
        if state == "succeeded":
            leases.succeed(conn, job_id, "w", {"version": 1})


def test_a_running_job_is_paused_and_goes_on(client: Client, corpus_id: str, database: Database) -> None:
    job = client.train(samples.spec(corpus_id))
    bring_to("running", database, job.id)
    assert client.pause(job.id).state == "pausing"
    assert client.pause(job.id).state == "pausing"
    with database.write() as conn:
        leases.suspended(conn, job.id, "w")
    assert [each.id for each in client.jobs(state="paused")] == [job.id]
    assert client.resume(job.id).state == "queued"
    states = [event.data["state"] for event in client.events(job.id)]
    assert states == ["queued", "running", "pausing", "paused", "queued"]


def test_a_resumed_job_is_sent_to_the_workers(
    client: Client, corpus_id: str, database: Database, redis_url: str
) -> None:
    job = client.train(samples.spec(corpus_id))
    client.pause(job.id)
    redis = messages.connect(redis_url)
    redis.delete(*queues.QUEUES)
    client.resume(job.id)
    assert messages.waiting(redis) == {job.id}
    with database.read() as conn:
        assert jobs.get(conn, job.id).sent_at is not None


@pytest.mark.parametrize("state", ["queued", "running", "failed", "succeeded"])
def test_a_job_names_the_actions_that_are_not_refused(
    http: httpx.Client, client: Client, corpus_id: str, database: Database, state: str
) -> None:
    wishes = ("pause", "resume", "cancel", "retry")
    accepted = []
    for wish in wishes:
        job = client.train(samples.spec(corpus_id))
        bring_to(state, database, job.id)
        named = http.get(f"/jobs/{job.id}").json()["allowed_actions"]
        if http.post(f"/jobs/{job.id}/{wish}").status_code == 202:
            accepted.append(wish)
    assert named == accepted


@pytest.mark.parametrize(
    ("wish", "state"),
    [
        ("pause", "succeeded"),
        ("pause", "failed"),
        ("resume", "queued"),
        ("resume", "running"),
        ("resume", "failed"),
        ("retry", "queued"),
        ("retry", "running"),
        ("retry", "succeeded"),
    ],
)
def test_what_the_state_does_not_allow_is_a_conflict(
    http: httpx.Client, client: Client, corpus_id: str, database: Database, wish: str, state: str
) -> None:
    job = client.train(samples.spec(corpus_id))
    bring_to(state, database, job.id)
    before = client.job(job.id)
    problem = assert_problem(http.post(f"/jobs/{job.id}/{wish}"), 409, "illegal_transition")
    assert problem["detail"] == f"Cannot {wish} job {job.id}, because it is {state}."
    assert client.job(job.id) == before


@pytest.mark.parametrize("wish", ["pause", "resume", "retry"])
def test_a_job_that_is_not_there_is_not_found(http: httpx.Client, wish: str) -> None:
    assert_problem(http.post(f"/jobs/job_{'0' * 26}/{wish}"), 404, "job_not_found")


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_retry_is_a_new_job_with_the_same_spec(
    http: httpx.Client, client: Client, corpus_id: str, database: Database, state: str
) -> None:
    job = client.train(samples.spec(corpus_id, seed=7))
    if state == "cancelled":
        client.cancel(job.id)
    else:
        bring_to(state, database, job.id)
    ended = client.job(job.id)
    response = http.post(f"/jobs/{job.id}/retry")
    again = response.json()
    assert (response.status_code, response.headers["location"]) == (202, f"/jobs/{again['id']}")
    assert again["id"] != job.id
    assert (again["state"], again["retry_of"], again["attempt"]) == ("queued", job.id, 0)
    assert again["spec"] == ended.spec
    assert client.job(job.id) == ended
    assert client.events(again["id"])[0].data["retry_of"] == job.id
    # It uses what the first one used.
    assert_problem(http.delete(f"/corpora/{corpus_id}"), 409, "corpus_in_use")


def test_a_retry_whose_corpus_is_gone_says_so(http: httpx.Client, client: Client) -> None:
    corpus = client.upload(samples.TEXT)
    job = client.cancel(client.train(samples.spec(corpus.id)).id)
    client.delete_corpus(corpus.id)
    assert_problem(http.post(f"/jobs/{job.id}/retry"), 422, "corpus_not_found", pointer="/corpus")
