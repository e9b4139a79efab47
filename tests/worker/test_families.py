"""One trainer of each family: paused and killed, it ends in the bytes of a run left alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import conll
from tagsmith.core.corpus.synthetic import generate
from tagsmith.core.jobs import control, kinds
from tagsmith.core.model import file
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.states import State
from tests.services import wait_until
from tests.training import train
from tests.worker.processes import Stack
from tests.worker.test_resume import passes_of, stored_pass
from tests.worker.test_train import add_corpus, open_stack, post

SENTENCES = 150
#: Each runs for seconds when left alone, so that a pause after its second pass does not come too late.
FAMILIES: dict[str, dict[str, Any]] = {
    "descent": {"kind": "sgd", "passes": 1_000},
    "quasi-newton": {"kind": "lbfgs", "passes": 60, "tolerance": 0.0},
    "two stages": {
        "kind": "two-stage",
        "first": {"kind": "sgd-l1", "passes": 20},
        "second": {"kind": "owlqn", "passes": 80, "tolerance": 0.0},
    },
    "margin": {"kind": "mira", "passes": 1_500},
    "confidence": {"kind": "arow", "passes": 1_500},
    "adaptive": {"kind": "adf", "passes": 400},
}


@pytest.fixture(scope="module")
def training(
    sqlite_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Stack, CorpusRow]]:
    """A corpus, and a worker that may be killed if another is started."""
    for stack in open_stack(sqlite_url, redis_url, tmp_path_factory.mktemp("stack"), checkpoint_seconds=0.02):
        corpus = add_corpus(stack, SENTENCES, seed=1)
        stack.start("worker")
        yield stack, corpus


def sha256_of_a_run_left_alone(trainer: dict[str, Any], path: Path) -> str:
    corpus = conll.read_conll(generate.generate("references", SENTENCES, 1), max_line_bytes=1 << 16)
    body = {"kind": "train", "model": "m", "corpus": "crp_a", "trainer": trainer}
    return file.save(finished(train(kinds.parse_job(body), corpus, None)).model, path)


def resumes(stack: Stack, job_id: str) -> list[int]:
    """The passes after which the job was taken up again."""
    found = stack.events(job_id)
    return [event.data["pass"] for event in found if event.message.startswith("resumed after pass")]


@pytest.mark.parametrize("family", FAMILIES)
def test_paused_and_killed_it_ends_in_the_bytes_of_a_run_left_alone(
    training: tuple[Stack, CorpusRow], family: str, tmp_path: Path
) -> None:
    stack, corpus = training
    trainer = FAMILIES[family]
    job_id = post(stack, corpus, "tried", trainer=trainer)
    wait_until(lambda: 2 in passes_of(stack.events(job_id)), "the second pass", 100)
    with stack.db.write() as conn:
        assert control.pause(conn, job_id).state is State.PAUSING
    paused = stack.await_state(job_id, State.PAUSED)
    assert (paused.lease_owner, paused.finished_at) == (None, None)
    kept = stored_pass(stack.db, job_id)
    assert kept >= 1
    assert stack.states(job_id) == ["queued", "running", "pausing", "paused"]

    with stack.db.write() as conn:
        control.resume(conn, job_id)
    stack.send(job_id)
    wait_until(lambda: stored_pass(stack.db, job_id) > kept, "another checkpoint", 60)
    stack.worker_of(job_id).kill()
    assert stack.job(job_id).state is State.RUNNING, "it ended too soon"
    stack.start("worker")
    job = stack.await_state(job_id, State.SUCCEEDED, State.FAILED)
    assert (job.error, job.attempt) == (None, 3)
    assert job.result is not None
    first, second = resumes(stack, job_id)
    assert first == kept < second < job.result["passes"]
    assert passes_of(stack.events(job_id)) == list(range(1, job.result["passes"] + 1))
    assert job.result["sha256"] == sha256_of_a_run_left_alone(trainer, tmp_path / "model")
