"""Jobs that tag a corpus: what they write, in which format, and that they stop when told to."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.jobs import jobs
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.evaluation import predicted_labels
from tagsmith.core.registry import models
from tagsmith.core.store import blobs, corpora
from tagsmith.core.store.states import State
from tagsmith.worker import run
from tests.worker.processes import Stack
from tests.worker.test_experiments import post, stopped_at
from tests.worker.test_resume import context_of
from tests.worker.test_train import add_corpus, open_stack


@pytest.fixture
def stack(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Stack]:
    yield from open_stack(database_url, redis_url, tmp_path)


@pytest.fixture
def corpus_id(stack: Stack) -> str:
    """A corpus, and a version of `tagger` that was trained on it."""
    corpus = add_corpus(stack, 80, seed=1)
    body = {
        "kind": "train",
        "model": "tagger",
        "corpus": corpus.id,
        "trainer": {"kind": "sgd-l1", "passes": 2},
    }
    run.run_job(context_of(stack), post(stack, body))
    return corpus.id


def tag_body(corpus_id: str, **changes: Any) -> dict[str, Any]:
    return {"kind": "tag", "model": "tagger:1", "corpus": corpus_id, **changes}


def output(stack: Stack, job_id: str) -> bytes:
    return b"".join(blobs.stream(stack.db, jobs.output_id(job_id)))


def read(stack: Stack, corpus_id: str, data: bytes | None = None, name: str = "conll") -> Corpus:
    if data is None:
        with stack.db.read() as conn:
            data = b"".join(blobs.read(conn, corpora.blob_id(conn, corpus_id)))
    return formats.read([data], name, max_line_bytes=1 << 20)


@pytest.mark.parametrize("name", [None, "ndjson"])
def test_the_output_is_the_corpus_with_the_labels_of_the_version(
    stack: Stack, corpus_id: str, tmp_path: Path, name: str | None
) -> None:
    job_id = post(stack, tag_body(corpus_id, format=name), [("tagger", 1)])
    run.run_job(context_of(stack), job_id)
    job = stack.job(job_id)
    assert job.state is State.SUCCEEDED, job.error
    data = output(stack, job_id)
    assert job.result is not None
    assert (job.result["model"], job.result["version"], job.result["format"]) == (
        "tagger",
        1,
        name or "conll",
    )
    assert job.result["size_bytes"] == len(data)
    with stack.db.read() as conn:
        (tmp_path / "model").write_bytes(b"".join(models.artifact(conn, "tagger", 1)))
    tagger = Tagger.open(tmp_path / "model")
    corpus = read(stack, corpus_id)
    expected = tagger.named(finished(predicted_labels(tagger, corpus)))
    written = read(stack, corpus_id, data, name or "conll")
    assert written.labels is not None
    names = written.labels.vocabulary.strings()
    assert [names[i] for i in written.labels.ids.tolist()] == expected
    assert written.offsets.tolist() == corpus.offsets.tolist()


def test_constraints_and_least_risk_hold_for_a_whole_corpus(stack: Stack, corpus_id: str) -> None:
    job_id = post(stack, tag_body(corpus_id, decode="posterior", valid="iob2"), [("tagger", 1)])
    run.run_job(context_of(stack), job_id)
    assert stack.job(job_id).state is State.SUCCEEDED, stack.job(job_id).error
    rows = [line.split(b" ")[-1] for line in io.BytesIO(output(stack, job_id)).read().split(b"\n")]
    before = b""
    for label in rows:
        if label.startswith(b"I-"):
            assert before[2:] == label[2:]
        before = label


def test_a_job_that_is_stopped_is_done_again_and_leaves_one_output(stack: Stack, corpus_id: str) -> None:
    job_id = post(stack, tag_body(corpus_id), [("tagger", 1)])
    run.run_job(stopped_at(context_of(stack), lambda step: getattr(step, "fraction", 0) > 0), job_id)
    assert stack.job(job_id).state is State.QUEUED
    run.run_job(context_of(stack), job_id)
    assert stack.job(job_id).state is State.SUCCEEDED
    assert output(stack, job_id)


def test_labels_that_the_coding_has_not_fail_the_job_with_a_place(stack: Stack, corpus_id: str) -> None:
    job_id = post(stack, tag_body(corpus_id, valid="bmes"), [("tagger", 1)])
    run.run_job(context_of(stack), job_id)
    job = stack.job(job_id)
    assert (job.state, job.error and job.error["code"]) == (State.FAILED, "unknown_label_coding")
    assert job.error
    assert job.error["errors"][0]["pointer"] == "/valid"
