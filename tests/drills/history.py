"""What the clients of a drill asked for and what they were told, kept outside the service. `checker` compares it.

An intention is recorded before its request is sent, and completed when the response arrives. One without a response may
or may not have been carried out, but never twice.
"""

import dataclasses
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self


@dataclass(slots=True)
class Upload:
    """A corpus, under a name that no other upload has."""

    name: str
    sha256: str
    #: None until the response arrives.
    id: str | None = None


@dataclass(slots=True)
class Submission:
    """A job that trains a model, with a seed that no other job of the model has."""

    model: str
    seed: int
    id: str | None = None
    #: The states in which it may end.
    ends: tuple[str, ...] = ("succeeded",)


@dataclass(slots=True)
class Version:
    """A version that a client has seen."""

    model: str
    version: int
    sha256: str


@dataclass(slots=True)
class Promotion:
    """A move of an alias to a version."""

    model: str
    alias: str
    version: int
    #: Number of the move, from the response.
    seq: int | None = None


@dataclass(slots=True)
class History:
    """All that clients know. Threads may share it."""

    uploads: list[Upload] = field(default_factory=list)
    jobs: list[Submission] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    moves: list[Promotion] = field(default_factory=list)
    #: Distinct answers by reference: of `drill@champion`, (version, tags as JSON) and how often.
    answers: dict[str, dict[tuple[int, str], int]] = field(default_factory=dict)
    #: What was tagged to get `answers`.
    sentences: list[Any] = field(default_factory=list)
    #: Ids of jobs, and versions as `name:3`, of other histories of the service, which the checker need not look at.
    others: set[str] = field(default_factory=set, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def answered(self, reference: str, version: int, tags: list[list[str]]) -> None:
        """Record an answer to `sentences`."""
        with self._lock:
            counts = self.answers.setdefault(reference, {})
            key = (version, json.dumps(tags))
            counts[key] = counts.get(key, 0) + 1

    def add(self, other: "History") -> None:
        """Take over the records of another history of the same service."""
        self.uploads += other.uploads
        self.jobs += other.jobs
        self.versions += other.versions
        self.moves += other.moves
        self.sentences = self.sentences or other.sentences
        for reference, counts in other.answers.items():
            mine = self.answers.setdefault(reference, {})
            for key, count in counts.items():
                mine[key] = mine.get(key, 0) + count

    def copy(self) -> Self:
        """Return a history of its own with the same records."""
        return self.of(self.as_dict())

    def save(self, path: Path) -> None:
        """Write everything to a file."""
        path.write_text(json.dumps(self.as_dict()))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file that `save` wrote."""
        return cls.of(json.loads(path.read_text()))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        record = {
            name: [dataclasses.asdict(each) for each in getattr(self, name)]
            for name in ("uploads", "jobs", "versions", "moves")
        }
        answers = {
            reference: [[version, tags, count] for (version, tags), count in counts.items()]
            for reference, counts in self.answers.items()
        }
        return {**record, "answers": answers, "sentences": self.sentences}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Restore what `as_dict` returned."""
        return cls(
            uploads=[Upload(**each) for each in record["uploads"]],
            jobs=[Submission(**{**each, "ends": tuple(each["ends"])}) for each in record["jobs"]],
            versions=[Version(**each) for each in record["versions"]],
            moves=[Promotion(**each) for each in record["moves"]],
            answers={
                reference: {(version, tags): count for version, tags, count in counts}
                for reference, counts in record["answers"].items()
            },
            sentences=record["sentences"],
        )
