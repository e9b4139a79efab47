"""The checker finds every kind of damage, and nothing in a history that is whole."""

import copy
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.wire import CorpusInfo, Job, JobEvent, ModelVersion, Move
from tests.drills import actions
from tests.drills.checker import check
from tests.drills.history import History, Promotion, Submission, Upload, Version

MODEL = "checked"
SENTENCES = [[["Smith", "CAP"], [",", "PUNCT"], ["1999", "NUM"]]]

Service = tuple[Client, History]


@pytest.fixture(scope="module")
def whole(stack: BackgroundStack) -> Iterator[Service]:
    """Two versions, the alias moved to each, and an answer of each."""
    history = History(sentences=SENTENCES)
    with Client(stack.url) as client:
        content = actions.corpus(100)
        corpus = client.upload(content, name=MODEL)
        history.uploads.append(Upload(MODEL, hashlib.sha256(content).hexdigest(), corpus.id))
        for seed in (1, 2):
            spec = {"model": MODEL, "corpus": corpus.id, "seed": seed, "promote": "champion"}
            job = client.train({**spec, "trainer": {"kind": "sgd-l1", "passes": 2}}).wait()
            history.jobs.append(Submission(MODEL, seed, job.id))
            history.versions.append(Version(MODEL, seed, client.version(MODEL, seed).sha256))
        for version in (1, 2):
            moved = client.promote(MODEL, version)
            history.moves.append(Promotion(MODEL, "champion", version, moved.seq))
            tagged = client.tag(f"{MODEL}:{version}", SENTENCES)
            history.answered(f"{MODEL}@champion", tagged.version, tagged.tags)
        yield client, history


def damaged(client: Client, name: str, change: Callable[..., Any]) -> Client:
    """A client of the same service for whom one call returns something else."""
    other = copy.copy(client)
    call = getattr(client, name)
    setattr(other, name, lambda *args, **options: change(call(*args, **options)))
    return other


def test_a_whole_history_has_no_findings_also_after_it_was_stored(whole: Service, tmp_path: Path) -> None:
    client, history = whole
    assert not check(client, history), check(client, history)
    history.save(tmp_path / "history.json")
    read = History.load(tmp_path / "history.json")
    assert read == history
    assert not check(client, read)


def _without_first(rows: Any) -> list[Any]:
    return list(rows)[1:]


def _twice(rows: Any) -> list[Any]:
    return [row for row in rows for _ in range(2)]


def _other_state(job: Job) -> Job:
    return job.model_copy(update={"state": "running"})


def _failed(job: Job) -> Job:
    return job.model_copy(update={"state": "failed", "error": {"code": "worker_lost"}})


def _ended_twice(events: list[JobEvent]) -> list[JobEvent]:
    found = list(events)
    return [*found, found[-1].model_copy(update={"seq": len(found) + 1})]


def _passes_twice(events: list[JobEvent]) -> list[JobEvent]:
    return [
        each.model_copy(update={"data": {**each.data, "pass": 1}}) if each.type == "pass" else each
        for each in events
    ]


def _later_passes(events: list[JobEvent]) -> list[JobEvent]:
    return [
        each.model_copy(update={"data": {**each.data, "pass": each.data["pass"] + 1}})
        if each.type == "pass"
        else each
        for each in events
    ]


def _of_one_job(versions: list[ModelVersion]) -> list[ModelVersion]:
    found = list(versions)
    return [each.model_copy(update={"job_id": found[0].job_id}) for each in found]


def _broken(moves: list[Move]) -> list[Move]:
    return [each.model_copy(update={"from_version": 7}) for each in moves]


def _renamed(corpora: list[CorpusInfo]) -> list[CorpusInfo]:
    return [each.model_copy(update={"id": "cor_other"}) for each in corpora]


@pytest.mark.parametrize(
    ("call", "change", "damage"),
    [
        ("corpora", _without_first, "lost"),
        ("corpora", _renamed, "lost"),
        ("corpora", _twice, "doubled"),
        ("content", lambda content: content[:-1], "lost"),
        ("jobs", lambda _: [], "lost"),
        ("job", _other_state, "lost"),
        ("job", _failed, "lost"),
        ("job", _failed, "doubled"),
        ("events", _without_first, "lost"),
        ("events", lambda events: list(events)[:-1], "lost"),
        ("events", _ended_twice, "doubled"),
        ("events", _passes_twice, "doubled"),
        ("events", _later_passes, "lost"),
        ("versions", _without_first, "lost"),
        ("versions", _of_one_job, "doubled"),
        ("artifact", lambda content: content + b" ", "lost"),
        ("history", _without_first, "lost"),
        ("history", _broken, "lost"),
        ("history", lambda moves: [next(iter(moves))], "mixed"),
        ("alias", lambda alias: alias.model_copy(update={"version": 1}), "lost"),
    ],
)
def test_damage_in_the_service_is_found(
    whole: Service, call: str, change: Callable[..., Any], damage: Any
) -> None:
    client, history = whole
    assert check(damaged(client, call, change), history).count(damage) > 0


def _swap_answers(history: History) -> None:
    (counts,) = history.answers.values()
    (one, first), (other, second) = counts
    counts.clear()
    counts[(one, second)] = counts[(other, first)] = 1


def _retry_with_same_seed(history: History) -> None:
    # Two jobs with one seed: the second was the repetition of a request whose response was lost.
    history.jobs[0].seed = 2
    history.jobs.pop(1)


def _never_promoted(history: History) -> None:
    history.moves[-1].seq = 99


@pytest.mark.parametrize(
    ("change", "damage"),
    [
        (_swap_answers, "mixed"),
        (_retry_with_same_seed, "doubled"),
        (_never_promoted, "lost"),
        (lambda history: history.jobs.append(Submission(MODEL, 3, "job_never")), "lost"),
        (lambda history: history.versions.append(Version(MODEL, 3, "0" * 64)), "lost"),
        (lambda history: history.uploads.append(Upload("never", "0" * 64, "cor_never")), "lost"),
        (lambda history: history.answered(f"{MODEL}@champion", 3, [["O"]]), "mixed"),
    ],
)
def test_what_clients_were_told_and_the_service_does_not_know_is_found(
    whole: Service, change: Callable[[History], None], damage: Any
) -> None:
    client, history = whole
    other = history.copy()
    change(other)
    assert check(client, other).count(damage) > 0


def test_intentions_without_a_response_may_be_missing(whole: Service) -> None:
    client, history = whole
    other = history.copy()
    other.uploads.append(Upload("unanswered", "0" * 64))
    other.jobs.append(Submission(MODEL, 77))
    other.moves.append(Promotion(MODEL, "champion", 1))
    assert not check(client, other), check(client, other)
