"""Compare what clients were told with what the service says afterwards.

    findings = check("http://127.0.0.1:8765", history)
    assert not findings, findings

- lost: something acknowledged is missing, differs, or has not ended as it should;
- doubled: something happened twice that was asked for once;
- mixed: an answer was not that of the version it names.

The service must be at rest: no job of the history still runs.
"""

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from tagsmith.client import ApiError, Client
from tagsmith.core.model.file import CorruptModel
from tagsmith.core.model.tagger import Tagger
from tagsmith.wire import Job, JobEvent, ModelVersion, Move
from tagsmith.wire.names import DEFAULT_ALIAS, TERMINAL_STATES
from tests.drills.history import History, Submission, Upload

Damage = Literal["lost", "doubled", "mixed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise."""

    damage: Damage
    what: str


@dataclass(slots=True)
class Findings:
    """All broken promises; false if there are none."""

    found: list[Finding] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.found)

    def __str__(self) -> str:
        return "; ".join(f"{each.damage}: {each.what}" for each in self.found) or "nothing lost"

    def count(self, damage: Damage) -> int:
        """How many of one kind."""
        return sum(each.damage == damage for each in self.found)


def check(service: str | Client, history: History) -> Findings:
    """Compare a history with the service at an address, or that a client calls."""
    if not isinstance(service, str):
        return Findings(list(_Check(service, history).findings()))
    with Client(service) as client:
        return Findings(list(_Check(client, history).findings()))


class _Check:
    """One comparison. Lists are read once."""

    def __init__(self, client: Client, history: History) -> None:
        self._client = client
        self._history = history
        self._lists: dict[str, list[Any]] = {}

    def findings(self) -> Iterator[Finding]:
        for upload in self._history.uploads:
            yield from self._check_upload(upload)
        for model in self._models:
            yield from self._check_jobs(model)
            yield from self._check_versions(model)
            for alias in self._aliases(model):
                yield from self._check_moves(model, alias)
        yield from self._check_answers()

    @cached_property
    def _models(self) -> list[str]:
        named = [*self._history.jobs, *self._history.versions, *self._history.moves]
        return sorted({each.model for each in named} | {ref.split("@")[0] for ref in self._history.answers})

    # -- corpora --

    def _check_upload(self, upload: Upload) -> Iterator[Finding]:
        stored = list(self._client.corpora(name=upload.name))
        if len(stored) > 1:
            yield Finding("doubled", f"corpus {upload.name} is stored {len(stored)} times")
        if upload.id is None:
            return
        if upload.id not in {each.id for each in stored}:
            yield Finding("lost", f"corpus {upload.name} ({upload.id}) is missing")
            return
        content = self._client.content(upload.id)
        if hashlib.sha256(content).hexdigest() != upload.sha256:
            yield Finding("lost", f"corpus {upload.name} ({upload.id}) has other bytes")

    # -- jobs and their events --

    def _check_jobs(self, model: str) -> Iterator[Finding]:
        asked = [each for each in self._history.jobs if each.model == model]
        known = {each.id for each in asked}
        listed = {each.id for each in self._client.jobs(model=model)}
        # Jobs whose acknowledgement was lost are found by their seed.
        unknown = [self._client.job(job_id) for job_id in sorted(listed - known - self._history.others)]
        extra = Counter(job.spec.get("seed") for job in unknown)
        for submission in asked:
            count = extra[submission.seed] + (submission.id in listed)
            if count > 1:
                yield Finding("doubled", f"the job with seed {submission.seed} is stored {count} times")
            if submission.id is None:
                continue
            if submission.id not in listed:
                yield Finding("lost", f"job {submission.id} is missing")
                continue
            job = self._client.job(submission.id)
            yield from self._check_end(job, submission)
            yield from _check_events(job, list(self._client.events(job.id)))
        asked_seeds = {each.seed for each in asked}
        for job in unknown:
            # One that nobody was told about must end like any other.
            if job.spec.get("seed") in asked_seeds:
                yield from _check_events(job, list(self._client.events(job.id)))

    def _check_end(self, job: Job, submission: Submission) -> Iterator[Finding]:
        if job.state not in submission.ends:
            reason = f": {job.error['code']}" if job.error else ""
            yield Finding("lost", f"job {job.id} is {job.state}{reason}")
        made = [each for each in self._versions(job.model or "") if each.job_id == job.id]
        if len(made) > 1:
            yield Finding("doubled", f"job {job.id} published {len(made)} versions")
        if job.state != "succeeded":
            if made:
                yield Finding(
                    "doubled", f"job {job.id} is {job.state} and published version {made[0].version}"
                )
            return
        result = job.result or {}
        if [each.version for each in made[:1]] != [result.get("version")]:
            yield Finding("lost", f"job {job.id} succeeded without its version {result.get('version')}")
        alias = result.get("promoted")
        if alias is not None and not any(
            move.to_version == result["version"] for move in self._moves(submission.model, alias)
        ):
            yield Finding("lost", f"{alias} never moved to version {result['version']} of job {job.id}")

    # -- versions and aliases --

    def _check_versions(self, model: str) -> Iterator[Finding]:
        stored = {each.version: each for each in self._versions(model)}
        seeds = Counter(each.seed for each in stored.values() if each.job_id is not None)
        for submission in self._history.jobs:
            if submission.model == model and seeds[submission.seed] > 1:
                yield Finding("doubled", f"seed {submission.seed} has {seeds[submission.seed]} versions")
        for seen in self._history.versions:
            if seen.model != model:
                continue
            if seen.version not in stored:
                yield Finding("lost", f"version {model}:{seen.version} is missing")
            elif hashlib.sha256(self._client.artifact(model, seen.version)).hexdigest() != seen.sha256:
                yield Finding("lost", f"version {model}:{seen.version} has other bytes")

    def _check_moves(self, model: str, alias: str) -> Iterator[Finding]:
        moves = self._moves(model, alias)
        for before, after in pairwise(moves):
            if after.seq != before.seq + 1:
                yield Finding("lost", f"{model}@{alias}: move {after.seq} follows move {before.seq}")
            if after.from_version != before.to_version:
                yield Finding(
                    "lost",
                    f"{model}@{alias}: move {after.seq} is from version {after.from_version}, "
                    f"but move {before.seq} was to {before.to_version}",
                )
        targets = {move.seq: move.to_version for move in moves}
        acknowledged = [each for each in self._history.moves if (each.model, each.alias) == (model, alias)]
        for move in acknowledged:
            if move.seq is not None and targets.get(move.seq) != move.version:
                yield Finding(
                    "lost", f"{model}@{alias}: move {move.seq} to version {move.version} is missing"
                )
        if moves:
            points_to = self._client.alias(model, alias)
            if (points_to.seq, points_to.version) != (moves[-1].seq, moves[-1].to_version):
                yield Finding(
                    "lost", f"{model}@{alias} is version {points_to.version}, not that of its last move"
                )

    # -- answers --

    def _check_answers(self) -> Iterator[Finding]:
        for reference, counts in self._history.answers.items():
            model, _, alias = reference.partition("@")
            targets = {move.to_version for move in self._moves(model, alias or DEFAULT_ALIAS)}
            expected: dict[int, str | None] = {}
            for (version, tags), count in counts.items():
                if version not in targets:
                    yield Finding(
                        "mixed", f"{count} answers of {reference} by version {version}, never its target"
                    )
                if version not in expected:
                    expected[version] = self._expected(model, version)
                if tags != expected[version]:
                    yield Finding(
                        "mixed", f"{count} answers of {reference} were not those of version {version}"
                    )

    def _expected(self, model: str, version: int) -> str | None:
        """Tag in this process, with the model file of the version; None if there is none that can be read."""
        try:
            artifact = self._client.artifact(model, version)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(artifact)
            try:
                tags = Tagger.open(path).tag(self._history.sentences)
            except CorruptModel:
                return None
        return json.dumps([list(each) for each in tags])

    # -- lists --

    def _versions(self, model: str) -> list[ModelVersion]:
        return self._cached(f"versions {model}", lambda: list(self._client.versions(model)))

    def _moves(self, model: str, alias: str) -> list[Move]:
        """Oldest first."""
        return self._cached(f"moves {model}@{alias}", lambda: list(self._client.history(model, alias))[::-1])

    def _aliases(self, model: str) -> list[str]:
        asked = {each.alias for each in self._history.moves if each.model == model}
        stored = self._cached(
            f"aliases {model}", lambda: [each.alias for each in self._client.aliases(model)]
        )
        return sorted(asked | set(stored))

    def _cached(self, name: str, read: Callable[[], list[Any]]) -> list[Any]:
        """Read a list once; what does not exist has none."""
        if name not in self._lists:
            try:
                self._lists[name] = read()
            except ApiError as error:
                if error.status != 404:
                    raise
                self._lists[name] = []
        return self._lists[name]


def _check_events(job: Job, events: list[JobEvent]) -> Iterator[Finding]:
    """Events are numbered without gaps, with one terminal state at the end, and every pass is reported once."""
    seqs = [each.seq for each in events]
    if seqs != list(range(1, len(seqs) + 1)):
        yield Finding("lost", f"the events of job {job.id} have gaps: {seqs}")
    states = [each.data.get("state") for each in events if each.type == "state"]
    ends = [state for state in states if state in TERMINAL_STATES]
    if len(ends) > 1:
        yield Finding("doubled", f"job {job.id} ended {len(ends)} times: {ends}")
    if not ends or states[-1:] != [job.state]:
        yield Finding("lost", f"job {job.id} is {job.state}, and its last events are {states[-2:]}")
    passes = Counter(each.data.get("pass") for each in events if each.type == "pass")
    again = [number for number, count in passes.items() if count > 1]
    if job.kind != "train":
        return
    if again:
        yield Finding("doubled", f"job {job.id} reported passes {again} more than once")
    made = (job.result or {}).get("passes", max(passes, default=0))
    if missing := sorted(set(range(1, made + 1)) - set(passes)):
        yield Finding("lost", f"job {job.id} did not report passes {missing}")
