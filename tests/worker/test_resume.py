"""Jobs that go on from a checkpoint: the model is the one that a run never interrupted gives, bit for bit."""

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import conll
from tagsmith.core.corpus.synthetic import generate
from tagsmith.core.jobs import checkpoints, events, jobs, kinds, leases
from tagsmith.core.jobs.resources import JobResources
from tagsmith.core.jobs.runner_interface import JobRun
from tagsmith.core.model import file
from tagsmith.core.pipeline.experiments.compare import thinned
from tagsmith.core.pipeline.train import TrainResult
from tagsmith.core.registry import models
from tagsmith.core.service import messages
from tagsmith.core.store import blobs, tables
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.states import State
from tagsmith.worker import run
from tagsmith.worker.checkpoints import Checkpoints
from tagsmith.worker.context import Context
from tagsmith.worker.lease import Lease
from tagsmith.worker.reporter import Reporter
from tests.services import wait_until
from tests.training import train
from tests.worker.processes import Stack
from tests.worker.test_train import add_corpus, open_stack, post

SENTENCES = 300
SGD: dict[str, Any] = {"kind": "sgd-l1", "passes": 150}
# Without a tolerance the passes are all made, however small their gain.
OWLQN: dict[str, Any] = {"kind": "owlqn", "passes": 120, "tolerance": 0.0}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrainResult]:
    """Runs without an interruption, by kind of trainer."""
    text = generate.generate("references", SENTENCES, 1)
    corpus = conll.read_conll(text, max_line_bytes=1 << 16)
    found = {}
    for trainer in (SGD, OWLQN):
        body = {
            "kind": "train",
            "model": "m",
            "corpus": "crp_a",
            "trainer": trainer,
            "dev": {"fraction": 0.1},
        }
        found[trainer["kind"]] = finished(train(kinds.parse_job(body), corpus, None))
    return found


@pytest.fixture
def training(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Stack]:
    yield from open_stack(database_url, redis_url, tmp_path, checkpoint_seconds=0.05)


def context_of(stack: Stack) -> Context:
    assert stack.config.redis_url is not None
    return Context(
        settings=stack.config,
        db=stack.db,
        redis=messages.connect(stack.config.redis_url),
        worker_id="here",
        stop=threading.Event(),
        busy=threading.Event(),
        send=lambda _: True,
        runners=run.runners(),
    )


def stored_pass(db: Database, job_id: str) -> int:
    with db.read() as conn:
        found = checkpoints.find(conn, job_id)
    return 0 if found is None else found.pass_number


def ended(stack: Stack, job_id: str) -> bool:
    return stack.job(job_id).state in (State.SUCCEEDED, State.FAILED)


def blob_count(db: Database) -> int:
    with db.read() as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(tables.blob)).scalar_one())


def passes_of(found: list[events.Event]) -> list[int]:
    return [event.data["pass"] for event in found if event.type == "pass"]


def without_times(curve: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in point.items() if name != "seconds"} for point in curve]


@pytest.fixture(params=[("sqlite_url", OWLQN), ("postgres_url", SGD)], ids=lambda param: param[1]["kind"])
def killable(
    request: pytest.FixtureRequest, redis_url: str, tmp_path: Path
) -> Iterator[tuple[Stack, dict[str, Any]]]:
    """Each trainer on one of the databases."""
    database, trainer = request.param
    address = request.getfixturevalue(database)
    for stack in open_stack(address, redis_url, tmp_path, checkpoint_seconds=0.05):
        yield stack, trainer


def test_a_killed_trainer_is_resumed_and_ends_in_the_same_bytes(
    killable: tuple[Stack, dict[str, Any]], straight: dict[str, TrainResult], tmp_path: Path
) -> None:
    training, trainer = killable
    expected = straight[trainer["kind"]]
    corpus = add_corpus(training, SENTENCES, seed=1)
    before = blob_count(training.db)
    job_id = post(training, corpus, "phoenix", trainer=trainer, dev={"fraction": 0.1})
    training.start("worker")
    # The first one: how soon another follows depends on how long it took to store.
    wait_until(lambda: stored_pass(training.db, job_id) >= 1 or ended(training, job_id), "a checkpoint", 100)
    training.worker_of(job_id).kill()
    assert training.job(job_id).state is State.RUNNING
    made_before = max(passes_of(training.events(job_id)), default=0)
    assert made_before < expected.passes
    training.start("worker")
    job = training.await_state(job_id, State.SUCCEEDED, State.FAILED)
    assert (job.error, job.attempt) == (None, 2)

    (version,) = [each for each in training.versions("phoenix") if each.job_id == job_id]
    assert version.sha256 == file.save(expected.model, tmp_path / "straight")
    assert version.objective == expected.objective
    found = training.events(job_id)
    assert passes_of(found) == list(range(1, expected.passes + 1))
    (resumed,) = [event for event in found if event.message.startswith("resumed after pass")]
    assert resumed.data["pass"] >= 1
    made = made_before + expected.passes - resumed.data["pass"]
    assert made < 1.5 * expected.passes
    assert job.result is not None
    assert without_times(job.result["curve"]) == without_times(expected.curve)
    seconds = [point["seconds"] for point in job.result["curve"]]
    assert seconds == sorted(seconds)
    saved = [event for event in found if event.type == "checkpoint"]
    assert [event.data["pass"] for event in saved] == sorted({event.data["pass"] for event in saved})
    assert all(event.data["size_bytes"] > 1000 for event in saved)
    # The version is all that stays.
    assert blob_count(training.db) == before + 1


def stopped_after(context: Context, number: int) -> Context:
    """A worker that receives the signal to stop after so many passes."""

    def work(resources: JobResources) -> JobRun:
        steps = run.runners()["train"](resources)
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            yield step
            if getattr(step, "pass_done", False) and getattr(step, "pass_number", 0) >= number:
                context.stop.set()

    return dataclasses.replace(context, runners={"train": work})


def test_a_worker_told_to_stop_leaves_a_checkpoint_and_the_next_one_goes_on(
    training: Stack, straight: dict[str, TrainResult], tmp_path: Path
) -> None:
    expected = straight["sgd-l1"]
    # Too long for any checkpoint but the last.
    training.config = training.config.replace(checkpoint_seconds=3600)
    corpus = add_corpus(training, SENTENCES, seed=1)
    job_id = post(training, corpus, "stopped", trainer=SGD, dev={"fraction": 0.1})
    run.run_job(stopped_after(context_of(training), 40), job_id)
    assert training.job(job_id).state is State.QUEUED
    # States are staged as often as costs next to nothing, so not at every pass.
    kept = stored_pass(training.db, job_id)
    assert 1 <= kept <= 40
    *_, saved, queued = training.events(job_id)
    assert (saved.type, saved.data["pass"], queued.data["state"]) == ("checkpoint", kept, "queued")

    run.run_job(context_of(training), job_id)
    job = training.job(job_id)
    assert (job.state, job.attempt) == (State.SUCCEEDED, 2)
    assert f"resumed after pass {kept}" in [event.message for event in training.events(job_id)]
    assert passes_of(training.events(job_id)) == list(range(1, expected.passes + 1))
    assert job.result is not None
    assert job.result["sha256"] == file.save(expected.model, tmp_path / "straight")
    assert stored_pass(training.db, job_id) == 0


@pytest.mark.parametrize("damage", ["bytes", "cut short", "another run"])
def test_a_checkpoint_that_cannot_be_used_is_dropped_with_a_warning(
    training: Stack, straight: dict[str, TrainResult], damage: str, tmp_path: Path
) -> None:
    expected = straight["sgd-l1"]
    corpus = add_corpus(training, SENTENCES, seed=1)
    job_id = post(training, corpus, "damaged", trainer=SGD, dev={"fraction": 0.1})
    run.run_job(stopped_after(context_of(training), 20), job_id)
    with training.db.write() as conn:
        found = checkpoints.find(conn, job_id)
        assert found is not None
        if damage == "bytes":
            chunk = tables.blob_chunk
            conn.execute(chunk.update().where(chunk.c.blob_id == found.blob_id).values(data=b"rot"))
        else:
            whole = b"".join(blobs.read(conn, found.blob_id))
            other = b"of another run" if damage == "another run" else whole[: len(whole) // 2]
            checkpoints.replace(conn, job_id, 20, blobs.write(conn, new_id("blb"), [other]).id)
    run.run_job(context_of(training), job_id)
    job, found_events = training.job(job_id), training.events(job_id)
    assert (job.state, job.error) == (State.SUCCEEDED, None)
    assert job.result is not None
    assert job.result["sha256"] == file.save(expected.model, tmp_path / "straight")
    (warning,) = [event for event in found_events if event.level == "warning"]
    assert (warning.type, "starts again" in warning.message) == ("message", True)
    assert not any(event.message.startswith("resumed") for event in found_events)
    assert passes_of(found_events) == list(range(1, expected.passes + 1))


def test_a_job_starts_from_the_version_its_spec_names(training: Stack) -> None:
    corpus = add_corpus(training, SENTENCES, seed=1)
    context = context_of(training)
    first = post(training, corpus, "warm", trainer={"kind": "owlqn", "passes": 40})
    run.run_job(context, first)
    number = training.versions("warm")[0].version
    second = post(training, corpus, "warm", trainer={"kind": "owlqn", "passes": 3}, init=f"warm:{number}")
    run.run_job(context, second)
    older, newer = reversed(training.versions("warm")[:2])
    assert older.objective is not None
    assert newer.objective is not None
    assert newer.objective <= older.objective
    assert newer.spec["init"] == f"warm:{number}"
    carried = f"{older.active_features} weights carry over from warm:{number}"
    assert carried in [event.message for event in training.events(second)]


def test_a_start_whose_file_is_damaged_fails_the_job_with_its_code(training: Stack) -> None:
    corpus = add_corpus(training, 50, seed=1)
    new = models.NewVersion(
        objective=None, active_features=0, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="0", job_id=None,
    )  # fmt: skip
    with training.db.write() as conn:
        number = models.publish(conn, "rotten", new, [b"no model"]).version
    job_id = post(training, corpus, "rotten", init=f"rotten:{number}")
    run.run_job(context_of(training), job_id)
    error = training.job(job_id).error
    assert error is not None
    assert error["code"] == "corrupt_model"


@dataclasses.dataclass(frozen=True)
class Ending:
    """The end of a pass, with a state of so many bytes."""

    number: int
    size_bytes: int
    event = "pass"
    message = "pass"

    def checkpoint(self, path: Path) -> None:
        path.write_bytes(bytes(self.size_bytes))

    def as_dict(self) -> dict[str, Any]:
        return {"pass": self.number}


@pytest.mark.parametrize("why", ["cancel", "stop", "deadline"])
def test_nobody_waits_for_a_checkpoint_to_be_stored(
    training: Stack, tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_of(training)
    with training.db.write() as conn:
        job = jobs.create(conn, kind="train", spec={}, model="waiting")
        leases.claim(conn, job.id, "here/1", 30)
    before = blob_count(training.db)
    lease = Lease(context, job.id, "here/1", lambda: None, lambda: None)
    made = Checkpoints(context, lease, Reporter(context, lease, 2), tmp_path)
    made.offer(Ending(1, 10))  # staged: it is too early to store
    assert blob_count(training.db) == before
    if why == "deadline":
        made.keep_last(-1.0)
    else:
        wait_until(lambda: made.offer(Ending(2, 10)) or stored_pass(training.db, job.id) == 2, "the second")
        monkeypatch.setattr(Lease, "cancel", why == "cancel")
        if why == "stop":
            context.stop.set()
        before = blob_count(training.db)
        for number in range(3, 200):
            made.offer(Ending(number, 10))
    assert blob_count(training.db) == before
    assert stored_pass(training.db, job.id) in (0, 2)
    with training.db.write() as conn:
        leases.fail(conn, job.id, "here/1", {"code": "x", "message": "x"})


def test_a_curve_of_many_passes_is_thinned_to_what_a_plot_can_show() -> None:
    curve = [{"pass": number} for number in range(1, 12_346)]
    thin = [point["pass"] for point in thinned(curve, 1000)]
    assert (len(thin), thin[0], thin[-1]) == (1000, 1, 12_345)
    assert thin == sorted(set(thin))
    assert thinned(curve[:1000], 1000) == curve[:1000]
