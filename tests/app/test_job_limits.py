"""What is refused when a job is posted, and which queue it goes to."""

import shutil
from pathlib import Path

import httpx
import pytest

from tagsmith.client import Client
from tagsmith.core.service import queues
from tagsmith.core.service.settings import Settings
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem


def test_a_job_waits_by_its_size(client: Client) -> None:
    corpus = client.upload(samples.TEXT)
    quick = client.train(samples.spec(corpus.id))
    slow = client.train(samples.spec(corpus.id, trainer={"kind": "sgd-l1", "passes": 100_000}))
    tuned = client.tune(
        {
            "corpus": corpus.id,
            "features": {"templates": samples.TEMPLATES},
            "trainer": {"kind": "sgd-l1", "passes": 100_000},
            "search": {"kind": "grid", "fields": {"trainer.l1": [n / 10 for n in range(1, 8)]}},
            "folds": 2,
        }
    )
    assert (quick.queue, slow.queue, tuned.queue) == (queues.QUICK, queues.QUICK, queues.SLOW)


@pytest.mark.parametrize("seconds", [0, -1, "soon"])
def test_a_time_that_is_none_is_pointed_at(http: httpx.Client, client: Client, seconds: object) -> None:
    body = samples.spec(client.upload(samples.TEXT).id, max_seconds=seconds)
    assert_problem(http.post("/jobs", json=body), 422, "invalid_spec", pointer="/max_seconds")


def test_a_job_that_cannot_fit_is_refused_and_so_is_one_too_many(
    migrated_sqlite_file: Path, redis_url: str, tmp_path: Path
) -> None:
    shutil.copyfile(migrated_sqlite_file, tmp_path / "own.db")
    settings = Settings(
        data_dir=tmp_path,
        database_url=f"sqlite:///{tmp_path / 'own.db'}",
        redis_url=redis_url,
        job_memory_bytes=10_000,
        max_queued_jobs=1,
    )
    with ThreadServer(settings) as server, Client(server.url, retries=0) as client:
        big = client.upload(samples.TEXT * 500).id
        response = httpx.post(f"{server.url}/jobs", json=samples.spec(big))
        assert_problem(response, 422, "too_large", pointer="/corpus", reason="at least 0 MiB")
        small = samples.spec(client.upload(samples.TEXT).id)
        job = client.train(small)
        refused = httpx.post(f"{server.url}/jobs", json=small)
        assert_problem(refused, 503, "queue_full")
        assert int(refused.headers["retry-after"]) >= 1
        client.cancel(job.id)
        client.cancel(client.train(small).id)
