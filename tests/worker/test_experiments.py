"""Jobs of several runs and evaluations, by real workers: results, cancelling, going on after a stop."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.base.steps import mapped
from tagsmith.core.jobs import control, jobs, kinds
from tagsmith.core.jobs.resources import JobResources
from tagsmith.core.jobs.runner_interface import JobRun
from tagsmith.core.model import file
from tagsmith.core.registry import aliases, models
from tagsmith.core.store.states import State
from tagsmith.worker import run
from tagsmith.worker.context import Context
from tests.core.pipeline.experiments.runs import FEATURES, without_seconds
from tests.services import wait_until
from tests.worker.processes import Stack
from tests.worker.test_resume import blob_count, context_of, stored_pass
from tests.worker.test_train import add_corpus, open_stack

TRAINERS: list[dict[str, Any]] = [
    {"kind": "pa", "passes": 3},
    {"kind": "averaged-perceptron", "passes": 4, "name": "averaged"},
]
FIELDS: dict[str, Any] = {"trainer.C": [0.01, 0.1], "features.cutoff": [1, 2]}


@pytest.fixture
def stack(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Stack]:
    yield from open_stack(database_url, redis_url, tmp_path, checkpoint_seconds=0.01)


@pytest.fixture
def on_sqlite(sqlite_url: str, redis_url: str, tmp_path: Path) -> Iterator[Stack]:
    yield from open_stack(sqlite_url, redis_url, tmp_path, checkpoint_seconds=3600.0)


def post(stack: Stack, body: dict[str, Any], versions: list[tuple[str, int]] | None = None) -> str:
    """Create a job as the API does."""
    spec = kinds.parse_job(body)
    with stack.db.write() as conn:
        stored = spec.model_dump(mode="json")
        made = jobs.create(conn, kind=spec.kind, spec=stored, uses=jobs.Uses([spec.corpus], versions or []))
    stack.send(made.id)
    return made.id


def compare_body(corpus: str, **changes: Any) -> dict[str, Any]:
    body = {"kind": "compare", "corpus": corpus, "dev": {"fraction": 0.2}, "features": FEATURES}
    return {**body, "trainers": TRAINERS, **changes}


def tune_body(corpus: str, **changes: Any) -> dict[str, Any]:
    body = {"kind": "tune", "corpus": corpus, "features": FEATURES, "trainer": {"kind": "pa", "passes": 2}}
    return {**body, "search": {"kind": "grid", "fields": FIELDS}, "folds": 2, **changes}


def stopped_at(context: Context, reached: Callable[[Any], bool]) -> Context:
    """A worker that receives the signal to stop at a step."""

    def stopping(runner: Callable[..., JobRun]) -> Callable[..., JobRun]:
        def work(resources: JobResources) -> JobRun:
            def look(step: Any) -> Any:
                if reached(step):
                    context.stop.set()
                return step

            return mapped(runner(resources), look)

        return work

    return dataclasses.replace(
        context, runners={kind: stopping(each) for kind, each in context.runners.items()}
    )


def result_of(stack: Stack, job_id: str) -> dict[str, Any]:
    job = stack.job(job_id)
    assert (job.state, job.error) == (State.SUCCEEDED, None)
    assert job.result is not None
    return job.result


def test_a_comparison_gives_the_same_table_twice_and_its_events_name_their_runs(stack: Stack) -> None:
    corpus = add_corpus(stack, 150, seed=1)
    context = context_of(stack)
    first, second = (post(stack, compare_body(corpus.id)) for _ in range(2))
    run.run_job(context, first)
    run.run_job(context, second)
    result = result_of(stack, first)
    assert without_seconds(result) == without_seconds(result_of(stack, second))
    assert [row["name"] for row in result["table"]] == ["pa", "averaged"]
    assert all(row["score"] > 30 and row["seconds"] > 0 for row in result["table"])
    found = stack.events(first)
    passes = [(event.data["run"]["name"], event.data["pass"]) for event in found if event.type == "pass"]
    assert passes == [("pa", 1), ("pa", 2), ("pa", 3), *(("averaged", i) for i in range(1, 5))]
    ended = [event.data["run"] for event in found if event.type == "run"]
    assert [(run["name"], run["number"], run["of"]) for run in ended] == [("pa", 1, 2), ("averaged", 2, 2)]
    curves = {curve["name"]: [p["dev_score"] for p in curve["points"]] for curve in result["curves"]}
    told = [event.data["dev"]["f1"] for event in found if event.type == "pass"]
    assert curves["pa"] + curves["averaged"] == told
    last = [event for event in found if event.type == "state"][-1]
    assert set(last.data["result"]) == {"score"}
    assert blob_count(stack.db) >= 1
    assert stored_pass(stack.db, first) == 0


@pytest.mark.parametrize(
    ("number", "passes"), [(1, 2), (2, 0), (2, 3)], ids=["in the first", "between", "in the second"]
)
def test_a_comparison_goes_on_where_a_stopped_worker_left_it(
    on_sqlite: Stack, number: int, passes: int
) -> None:
    stack = on_sqlite
    corpus = add_corpus(stack, 150, seed=1)
    job_id, plain = (post(stack, compare_body(corpus.id)) for _ in range(2))
    run.run_job(context_of(stack), plain)

    def reached(step: Any) -> bool:
        if getattr(step, "run", None) is None:
            return False
        if passes == 0:
            return bool(step.run_done and step.run.number == number - 1)
        return bool(step.run.number == number and step.pass_done and step.pass_number == passes)

    run.run_job(stopped_at(context_of(stack), reached), job_id)
    assert stack.job(job_id).state is State.QUEUED
    again: list[int] = []
    looking = stopped_at(context_of(stack), lambda step: again.append(_run_number(step)) is not None)
    run.run_job(looking, job_id)
    assert without_seconds(result_of(stack, job_id)) == without_seconds(result_of(stack, plain))
    assert {each for each in again if each} == ({1, 2} if number == 1 else {2})
    found = stack.events(job_id)
    # Staged states are as old as keeping them cheap makes them, but no run or pass is reported twice.
    passes_told = [
        (event.data["run"]["number"], event.data["pass"]) for event in found if event.type == "pass"
    ]
    assert passes_told == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (2, 4)]
    assert [event.data["run"]["number"] for event in found if event.type == "run"] == [1, 2]
    saved = [event.message for event in found if event.type == "checkpoint"]
    assert saved[0] == "checkpoint after pa" or (number == 1 and saved[0] == "checkpoint after pass 1 of pa")


def _run_number(step: Any) -> int:
    part = getattr(step, "run", None)
    return 0 if part is None else int(part.number)


def test_a_search_publishes_the_best_and_is_the_same_after_a_stop(stack: Stack, tmp_path: Path) -> None:
    corpus = add_corpus(stack, 100, seed=1)
    body = tune_body(corpus.id, train={"model": "tuned", "promote": "champion"})
    plain, job_id = (post(stack, body) for _ in range(2))
    run.run_job(context_of(stack), plain)
    stopping = stopped_at(
        context_of(stack), lambda step: getattr(step, "run_done", False) and step.run.number == 5
    )
    run.run_job(stopping, job_id)
    assert stack.job(job_id).state is State.QUEUED
    again: list[int] = []
    run.run_job(
        stopped_at(context_of(stack), lambda step: again.append(_run_number(step)) is not None), job_id
    )
    # At least the end of the first run was staged; of runs of milliseconds, not that of each.
    assert min(each for each in again if each) >= 2
    expected, result = result_of(stack, plain), result_of(stack, job_id)
    assert without_seconds(result["table"]) == without_seconds(expected["table"])
    assert result["best"]["candidate"] == expected["best"]["candidate"]
    assert len(result["table"]) == 4
    newer, older = stack.versions("tuned")[:2]
    assert newer.sha256 == older.sha256 == result["trained"]["sha256"]
    assert newer.job_id == job_id
    assert newer.trainer == result["best"]["spec"]["trainer"]
    assert newer.spec["kind"] == "train"
    with stack.db.read() as conn:
        assert aliases.get(conn, "tuned", "champion").version == newer.version
    ended = [event.data["run"]["number"] for event in stack.events(job_id) if event.type == "run"]
    assert ended == list(range(1, 9))
    assert not any(event.type == "pass" for event in stack.events(job_id))


def test_versions_are_scored_and_compared(stack: Stack, tmp_path: Path) -> None:
    corpus, test = add_corpus(stack, 150, seed=1), add_corpus(stack, 80, seed=2)
    context = context_of(stack)
    for passes in (1, 6):
        trainer = {"kind": "averaged-perceptron", "passes": passes}
        body = {
            "kind": "train",
            "model": "judged",
            "corpus": corpus.id,
            "trainer": trainer,
            "dev": {"corpus": test.id},
        }
        run.run_job(context, post(stack, body))
    newer, older = stack.versions("judged")[:2]
    names = [f"judged:{older.version}", f"judged:{newer.version}"]
    body = {"kind": "evaluate", "models": names, "corpus": test.id, "resamples": 2000}
    first, second = (post(stack, body) for _ in range(2))
    run.run_job(context, first)
    run.run_job(context, second)
    result = result_of(stack, first)
    assert result == result_of(stack, second)
    # What training said of them on the same corpus.
    assert [row["metrics"] for row in result["models"]] == [older.metrics["dev"], newer.metrics["dev"]]
    assert [(row["version"], row["sha256"]) for row in result["models"]] == [
        (older.version, older.sha256), (newer.version, newer.sha256),
    ]  # fmt: skip
    for row, version in zip(result["models"], stack.versions("judged")[1::-1], strict=True):
        wrong = row["metrics"]["tokens"] - row["metrics"]["tokens_correct"]
        assert sum(pair["count"] for pair in row["confusion"] if pair["gold"] != pair["predicted"]) == wrong
        assert all(each["gold"] != each["predicted"] for each in row["wrong_sentences"])
        assert len(row["wrong_sentences"]) == min(
            50, row["metrics"]["sentences"] - row["metrics"]["sentences_correct"]
        )
        assert {name: score["support"] for name, score in row["types"].items()} == {
            name: score["gold"] for name, score in row["metrics"]["by_type"].items()
        }
        # Of training and of two jobs on the same corpus, the newest is kept with the version.
        (kept,) = version.evaluations
        assert (kept.corpus, kept.job_id, kept.score) == (test.id, second, row["score"])
    (pair,) = result["pairs"]
    assert (pair["base"], pair["head"]) == tuple(names)
    gain = newer.metrics["dev"]["f1"] - older.metrics["dev"]["f1"]
    assert pair["bootstrap"]["difference"] == pytest.approx(gain)
    assert pair["bootstrap"]["low"] < gain < pair["bootstrap"]["high"]
    assert 0 < pair["bootstrap"]["p_value"] <= 1
    more = newer.metrics["dev"]["tokens_correct"] - older.metrics["dev"]["tokens_correct"]
    assert pair["mcnemar"]["only_head"] - pair["mcnemar"]["only_base"] == more


def test_labels_that_the_model_does_not_have_are_a_warning(on_sqlite: Stack) -> None:
    stack = on_sqlite
    corpus, other = add_corpus(stack, 50, seed=1), add_corpus(stack, 50, seed=1, prefix=b"X")
    context, trainer = context_of(stack), {"kind": "perceptron", "passes": 1}
    body = {"kind": "train", "model": "mixed", "corpus": corpus.id, "trainer": trainer}
    training = post(stack, {**body, "dev": {"corpus": other.id}})
    scoring = {"kind": "evaluate", "models": ["mixed:1"], "corpus": other.id}
    run.run_job(context, training)
    (warning,) = result_of(stack, training)["warnings"]
    assert warning.startswith("No label of the dev set is among those of the model: X")
    judging = post(stack, scoring)
    run.run_job(context, judging)
    (warning,) = result_of(stack, judging)["warnings"]
    assert warning.startswith("No label of the corpus is among those of mixed:1: X")
    assert [event.message for event in stack.events(judging) if event.level == "warning"] == [warning]
    same = post(stack, {**scoring, "corpus": corpus.id})
    run.run_job(context, same)
    assert result_of(stack, same)["warnings"] == []


def test_a_corpus_that_does_not_fit_the_model_fails_with_its_code(on_sqlite: Stack, tmp_path: Path) -> None:
    stack = on_sqlite
    corpus = add_corpus(stack, 50, seed=1)
    new = models.NewVersion(
        objective=None, active_features=0, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="0", job_id=None,
    )  # fmt: skip
    with stack.db.write() as conn:
        models.publish(conn, "broken", new, [b"no model"])
    job_id = post(stack, {"kind": "evaluate", "models": ["broken:1"], "corpus": corpus.id})
    run.run_job(context_of(stack), job_id)
    error = stack.job(job_id).error
    assert error is not None
    assert error["code"] == "corrupt_model"


def test_a_search_of_which_nothing_ends_fails_with_its_code(on_sqlite: Stack) -> None:
    corpus = add_corpus(on_sqlite, 50, seed=1)
    trainer = {"kind": "pa", "costs": {"B-NOWHERE": 2.0}}
    body = tune_body(corpus.id, trainer=trainer)
    job_id = post(on_sqlite, body)
    run.run_job(context_of(on_sqlite), job_id)
    error = on_sqlite.job(job_id).error
    assert error is not None
    assert error["code"] == "every_run_failed"


@pytest.fixture
def processes(sqlite_url: str, redis_url: str, tmp_path: Path) -> Iterator[Stack]:
    yield from open_stack(sqlite_url, redis_url, tmp_path)


def test_every_kind_is_cancelled_within_a_second(processes: Stack) -> None:
    """By a worker process, each in the middle of its work."""
    stack = processes
    corpus = add_corpus(stack, 800, seed=1)
    context = context_of(stack)
    body = {"kind": "train", "model": "shown", "corpus": corpus.id, "trainer": {"kind": "pa", "passes": 1}}
    for _ in range(2):
        run.run_job(context, post(stack, body))
    versions = [("shown", version.version) for version in stack.versions("shown")]
    names = [f"{name}:{number}" for name, number in versions]
    long = {"kind": "pa", "passes": 100_000}
    stack.start("worker")
    for job in (
        compare_body(corpus.id, trainers=[long, {"kind": "pa"}]),
        tune_body(corpus.id, trainer=long),
        {"kind": "evaluate", "models": names, "corpus": corpus.id, "resamples": 1_000_000},
    ):
        job_id = post(stack, job, versions if job["kind"] == "evaluate" else None)

        def under_way(job_id: str = job_id) -> bool:
            progress = stack.job(job_id).progress
            return progress is not None and progress["fraction"] > (0.67 if "run" not in progress else 0.0)

        wait_until(under_way, f"{job['kind']} to be under way", 300)
        with stack.db.write() as conn:
            control.cancel(conn, job_id)
        stack.await_state(job_id, State.CANCELLED)
        *_, cancelling, cancelled = [event for event in stack.events(job_id) if event.type == "state"]
        assert (cancelling.message, cancelled.message) == ("cancelling", "cancelled")


def test_a_worker_process_told_to_end_leaves_its_comparison_to_the_next(processes: Stack) -> None:
    stack = processes
    corpus = add_corpus(stack, 300, seed=1)
    trainers = [{"kind": "pa", "passes": 40}, {"kind": "averaged-perceptron", "passes": 400}]
    job_id = post(stack, compare_body(corpus.id, trainers=trainers))
    stack.start("worker")

    def second_run() -> bool:
        progress = stack.job(job_id).progress
        return progress is not None and (progress.get("run") or {}).get("number") == 2

    wait_until(second_run, "the second run", 300)
    worker = stack.worker_of(job_id)
    worker.terminate()
    worker.wait()
    assert stack.job(job_id).state is State.QUEUED
    stack.start("worker")
    stack.await_state(job_id, State.SUCCEEDED, State.FAILED)
    result = result_of(stack, job_id)
    assert [row["passes"] for row in result["table"]] == [40, 400]
    found = stack.events(job_id)
    assert [event.data["run"]["number"] for event in found if event.type == "run"] == [1, 2]
    (resumed,) = [event for event in found if event.message.startswith("resumed after run")]
    assert resumed.message == "resumed after run 1 of 2"
    assert not any(event.message.startswith("pa") for event in found[resumed.seq :])


def test_the_model_file_of_a_search_is_sound(on_sqlite: Stack, tmp_path: Path) -> None:
    corpus = add_corpus(on_sqlite, 60, seed=1)
    body = tune_body(
        corpus.id, search={"kind": "random", "trials": 2, "fields": FIELDS}, train={"model": "sound"}
    )
    job_id = post(on_sqlite, body)
    run.run_job(context_of(on_sqlite), job_id)
    trained = result_of(on_sqlite, job_id)["trained"]
    with on_sqlite.db.read() as conn:
        (tmp_path / "model").write_bytes(b"".join(models.artifact(conn, "sound", trained["version"])))
    assert file.load(tmp_path / "model").labels
