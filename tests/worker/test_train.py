"""Real training by `python -m worker`, on corpora made up from a seed."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.synthetic import generate
from tagsmith.core.jobs import control, jobs, kinds
from tagsmith.core.jobs.spec import DevCorpus
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.registry import aliases, models
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import corpora
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.states import State
from tests.services import wait_until
from tests.worker import processes
from tests.worker.processes import Stack

# A first run compiles every kernel.
COMPILE_S = 300.0


def open_stack(database_url: str, redis_url: str, folder: Path, **changes: Any) -> Iterator[Stack]:
    # Compiling can keep all other threads of a worker waiting for a second or two.
    changes = {"lease_seconds": 4.0, **changes}
    settings = processes.settings(database_url, redis_url, folder).replace(**changes)
    made = Stack(settings, folder, deadline_s=COMPILE_S)
    yield made
    made.stop()


@pytest.fixture
def training(sqlite_url: str, redis_url: str, tmp_path: Path) -> Iterator[Stack]:
    yield from open_stack(sqlite_url, redis_url, tmp_path)


@pytest.fixture
def training_on_both(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Stack]:
    yield from open_stack(database_url, redis_url, tmp_path)


def add_corpus(stack: Stack, sentences: int, seed: int, *, prefix: bytes = b"", **options: Any) -> CorpusRow:
    """Store generated references. `prefix` is put before each label."""
    text = b"".join(generate.generate("references", sentences, seed))
    text = re.sub(rb"(?<=[ \t])(?=[^ \t\n]+$)", prefix, text, flags=re.MULTILINE)
    reader = formats.reader("conll", max_line_bytes=Settings().max_line_bytes)
    reader.feed(text)
    corpus = reader.finish()
    assert corpus.labels is not None
    row = CorpusRow(
        id=new_id("crp"),
        name="references",
        format="conll",
        sentences=corpus.sentences,
        tokens=corpus.tokens,
        columns=[column.name for column in corpus.columns],
        labels=corpus.labels.vocabulary.strings(),
        sha256="",
        size_bytes=0,
        report={},
        created_at=datetime.now(UTC),
        options=options,
    )
    with stack.db.write() as conn:
        return corpora.insert(conn, row, [text])


def post(stack: Stack, corpus: CorpusRow, model: str, **more: Any) -> str:
    """Create a job as the API does."""
    spec = kinds.parse_job({"kind": "train", "model": model, "corpus": corpus.id, **more})
    used = [corpus.id] + ([spec.dev.corpus] if isinstance(spec.dev, DevCorpus) else [])
    with stack.db.write() as conn:
        stored = spec.model_dump(mode="json")
        job_id = jobs.create(conn, kind="train", spec=stored, uses=jobs.Uses(used), model=model).id
    stack.send(job_id)
    return job_id


def test_training_publishes_a_version_that_tags_and_is_the_same_a_second_time(
    training_on_both: Stack, tmp_path: Path
) -> None:
    training = training_on_both
    corpus = add_corpus(training, 400, seed=1)
    training.start("worker")
    trainer = {"kind": "sgd-l1", "l1": 0.5, "passes": 4}
    ask: dict[str, Any] = {"dev": {"fraction": 0.2}, "trainer": trainer, "seed": 7, "promote": "champion"}
    first = training.await_state(post(training, corpus, "refs", **ask), State.SUCCEEDED, State.FAILED)
    second = training.await_state(post(training, corpus, "refs", **ask), State.SUCCEEDED, State.FAILED)
    assert (first.error, second.error) == (None, None)
    newer, older = training.versions("refs")
    assert (older.version, newer.version) == (1, 2)
    assert older.sha256 == newer.sha256
    assert older.objective is not None
    assert older.objective > 0
    assert 100 < older.active_features < 1_000_000
    assert older.train_seconds > 0
    assert older.metrics["dev"]["f1"] > 50
    assert (older.trainer["l1"], older.trainer["passes"], older.seed) == (0.5, 4, 7)
    assert (older.corpus, older.job_id, older.spec["model"]) == (corpus.id, first.id, "refs")
    assert older.code_version
    assert first.result is not None
    assert (first.result["version"], first.result["promoted"], first.result["passes"]) == (1, "champion", 4)
    assert first.progress is not None
    assert first.progress["pass"] == 4
    found = training.events(first.id)
    assert [event.data["pass"] for event in found if event.type == "pass"] == [1, 2, 3, 4]
    with training.db.read() as conn:
        alias = aliases.get(conn, "refs", "champion")
        (move, _) = aliases.history(conn, "refs", "champion", 10).data
        path = tmp_path / "model"
        path.write_bytes(b"".join(models.artifact(conn, "refs", 1)))
    assert (alias.version, move.from_version, move.actor, move.reason) == (
        2, 1, "worker", f"promoted by {second.id}",
    )  # fmt: skip
    assert path.stat().st_size == older.size_bytes
    tagger = Tagger.open(path, older.sha256)
    tags = tagger.tag([[["Smith", "CAP"], [",", "PUNCT"], ["J.", "CAP"], ["1999", "NUM"]]])
    assert len(tags[0]) == 4
    assert set(tags[0]) <= set(corpus.labels)


def test_a_dev_corpus_of_its_own_is_scored_and_a_bad_job_fails_with_its_code(training: Stack) -> None:
    corpus, dev = add_corpus(training, 200, seed=1), add_corpus(training, 50, seed=2)
    training.start("worker")
    good = post(training, corpus, "own-dev", dev={"corpus": dev.id}, trainer={"kind": "sgd-l1", "passes": 2})
    bad = post(training, corpus, "no-column", features={"templates": "U00:%x[0,9]\nB"})
    assert training.await_state(good, State.SUCCEEDED, State.FAILED).error is None
    assert training.versions("own-dev")[0].metrics["dev"]["f1"] > 20
    failed = training.await_state(bad, State.SUCCEEDED, State.FAILED)
    assert failed.error is not None
    assert failed.error["code"] == "missing_column"


def test_tokens_that_the_tokenizer_cannot_produce_are_a_warning(training: Stack) -> None:
    corpus = add_corpus(training, 50, seed=1, tokenizer="characters")
    training.start("worker")
    features = {"templates": "U00:%x[0,0]\nB"}
    job_id = post(training, corpus, "warned", features=features, trainer={"kind": "sgd-l1", "passes": 1})
    job = training.await_state(job_id, State.SUCCEEDED, State.FAILED)
    assert job.result is not None
    (warning,) = job.result["warnings"]
    assert warning.startswith("The tokenizer characters cannot produce ")
    warned = [event.message for event in training.events(job_id) if event.level == "warning"]
    assert warned == [warning]


def test_a_trainer_killed_in_mid_job_is_replaced_and_one_version_comes_out(training: Stack) -> None:
    corpus = add_corpus(training, 300, seed=1)
    passes = 200
    job_id = post(training, corpus, "survivor", trainer={"kind": "sgd-l1", "passes": passes})
    training.start("worker")
    training.await_pass(job_id, 1)
    training.worker_of(job_id).kill()
    assert training.job(job_id).state is State.RUNNING
    training.start("worker")
    job = training.await_state(job_id, State.SUCCEEDED, State.FAILED)
    assert (job.error, job.attempt) == (None, 2)
    assert training.states(job_id) == ["queued", "running", "queued", "running", "succeeded"]
    assert [version.version for version in training.versions("survivor")] == [1]
    # No checkpoint was due yet, so all passes were made again; each is reported once.
    passed = [event.data["pass"] for event in training.events(job_id) if event.type == "pass"]
    assert passed == list(range(1, passes + 1))


def test_a_trainer_that_is_cancelled_stops_long_before_its_last_pass(training: Stack) -> None:
    corpus = add_corpus(training, 2000, seed=1)
    job_id = post(training, corpus, "dropped", trainer={"kind": "sgd-l1", "passes": 100_000})
    training.start("worker")
    training.await_pass(job_id, 1)
    with training.db.write() as conn:
        asked = control.cancel(conn, job_id)
    assert asked.state is State.CANCELLING
    wait_until(lambda: training.job(job_id).ended, "the end of the job")
    ended = training.job(job_id)
    assert ended.state is State.CANCELLED
    *_, cancelling, cancelled = [event for event in training.events(job_id) if event.type == "state"]
    assert (cancelling.message, cancelled.message) == ("cancelling", "cancelled")
    assert not any(row.name == "dropped" for row in _all_models(training))


def _all_models(stack: Stack) -> list[models.ModelRow]:
    with stack.db.read() as conn:
        return models.page(conn, 100).data
