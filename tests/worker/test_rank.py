"""Jobs that list what to label next: what they write, what is uploaded again, and that they can be stopped."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.store.states import State
from tagsmith.worker import run
from tests.worker.processes import Stack
from tests.worker.test_experiments import post, stopped_at
from tests.worker.test_resume import context_of
from tests.worker.test_tag import output, read
from tests.worker.test_train import add_corpus, open_stack


@pytest.fixture
def stack(sqlite_url: str, redis_url: str, tmp_path: Path) -> Iterator[Stack]:
    yield from open_stack(sqlite_url, redis_url, tmp_path)


@pytest.fixture
def corpus_id(stack: Stack) -> str:
    """A corpus, and two versions of `ranker`, of which only the first has probabilities."""
    corpus = add_corpus(stack, 80, seed=1)
    for kind in ("sgd-l1", "averaged-perceptron"):
        train = {"kind": "train", "model": "ranker", "corpus": corpus.id}
        run.run_job(context_of(stack), post(stack, {**train, "trainer": {"kind": kind, "passes": 2}}))
    return add_corpus(stack, 60, seed=2).id


def ranked(stack: Stack, corpus_id: str, version: int = 1, **changes: Any) -> tuple[JobRow, bytes]:
    body = {"kind": "rank", "model": f"ranker:{version}", "corpus": corpus_id, **changes}
    job_id = post(stack, body, [("ranker", version)])
    run.run_job(context_of(stack), job_id)
    job = stack.job(job_id)
    assert job.state is State.SUCCEEDED, job.error
    return job, output(stack, job_id)


def lines_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize(("by", "sign"), [("probability", 1), ("margin", 1), ("entropy", -1)])
def test_the_output_lists_the_least_sure_sentences_first(
    stack: Stack, corpus_id: str, by: str, sign: int
) -> None:
    job, data = ranked(stack, corpus_id, by=by, top=12)
    lines = lines_of(data)
    scores = [sign * line["score"] for line in lines]
    assert scores == sorted(scores)
    assert len({line["index"] for line in lines}) == len(lines) == 12
    result = job.result
    assert result is not None
    assert (result["model"], result["version"], result["by"]) == ("ranker", 1, by)
    assert (result["sentences"], result["format"], result["size_bytes"]) == (12, "ndjson", len(data))
    assert result["tokens"] == sum(len(line["tokens"]) for line in lines)
    assert 12 < result["distinct"] <= 60
    assert "calibrated" not in result
    corpus = read(stack, corpus_id)
    for line in lines:
        begin, end = corpus.offsets[line["index"] : line["index"] + 2].tolist()
        words = [corpus.columns[0].vocabulary[i] for i in corpus.columns[0].ids[begin:end].tolist()]
        assert [token[0] for token in line["tokens"]] == words


def test_the_same_job_writes_the_same_bytes(stack: Stack, corpus_id: str) -> None:
    (_, first), (_, second) = (ranked(stack, corpus_id, by="entropy", diverse=True) for _ in range(2))
    assert first == second


def test_a_diverse_list_is_part_of_the_whole_one_in_the_same_order(stack: Stack, corpus_id: str) -> None:
    (_, some), (_, every) = (ranked(stack, corpus_id, diverse=diverse) for diverse in (True, False))
    chosen = [line["index"] for line in lines_of(some)]
    order = [line["index"] for line in lines_of(every)]
    assert [index for index in order if index in chosen] == chosen
    assert chosen[0] == order[0]


def test_a_version_without_probabilities_is_said_to_be_uncalibrated(stack: Stack, corpus_id: str) -> None:
    job, data = ranked(stack, corpus_id, version=2, top=3)
    assert job.result is not None
    assert job.result["calibrated"] is False
    assert len(lines_of(data)) == 3


def test_the_list_is_a_corpus_to_train_on(stack: Stack, corpus_id: str) -> None:
    _, data = ranked(stack, corpus_id, top=20)
    listed = read(stack, "", data, "ndjson")
    assert (len(listed.columns), listed.sentences) == (len(read(stack, corpus_id).columns), 20)
    assert listed.labels is not None


def test_a_job_that_is_stopped_is_done_again(stack: Stack, corpus_id: str) -> None:
    body = {"kind": "rank", "model": "ranker:1", "corpus": corpus_id}
    job_id = post(stack, body, [("ranker", 1)])
    run.run_job(stopped_at(context_of(stack), lambda step: getattr(step, "fraction", 0) > 0), job_id)
    assert stack.job(job_id).state is State.QUEUED
    run.run_job(context_of(stack), job_id)
    assert stack.job(job_id).state is State.SUCCEEDED
    assert output(stack, job_id)


@pytest.mark.parametrize("kind", ["rank", "tag"])
def test_a_corpus_that_does_not_fit_the_version_fails_the_job_as_in_tagging(
    stack: Stack, corpus_id: str, kind: str
) -> None:
    del corpus_id  # with it the version is there
    narrow = add_corpus(stack, 5, seed=3, columns="0")
    job_id = post(stack, {"kind": kind, "model": "ranker:1", "corpus": narrow.id}, [("ranker", 1)])
    run.run_job(context_of(stack), job_id)
    job = stack.job(job_id)
    assert (job.state, job.error and job.error["code"]) == (State.FAILED, "missing_column")
