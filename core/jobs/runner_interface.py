"""The interface between a running job and the worker that runs it: reports, notes and the outcome."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy.engine import Connection


class JobReport(Protocol):
    """The progress of a job. `tagsmith.core.learn.run.progress` implements it for training."""

    @property
    def event(self) -> str | None:
        """The type of the event to store: `pass` or `run` when one has ended, `message`, or None."""

    @property
    def message(self) -> str:
        """The human-readable text of that event."""

    @property
    def checkpoint(self) -> Callable[[Path], None] | None:
        """A function that writes a file from which the job can resume; None when there is nothing to save."""

    def as_dict(self) -> dict[str, Any]:
        """The `progress` of the job."""


@dataclass(frozen=True, slots=True)
class Note:
    """A human-readable message that is not progress. It becomes a `message` event."""

    message: str
    level: str = "info"


@dataclass(frozen=True, slots=True)
class Waiting:
    """The job has done its work and waits for something, such as room on a disk. Its time no longer counts."""

    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """The progress of a job without passes. A non-empty message becomes a `message` event."""

    phase: str
    fraction: float
    message: str = ""
    checkpoint = None

    @property
    def event(self) -> str | None:
        return "message" if self.message else None

    def as_dict(self) -> dict[str, Any]:
        """The `progress` of the job."""
        return {"phase": self.phase, "fraction": round(self.fraction, 6)}


class Outcome(Protocol):
    """The outcome of a job that succeeded."""

    def store(self, conn: Connection) -> Mapping[str, Any]:
        """Store everything that the job has made, and return its result.

        The worker calls this in the transaction that ends the job. The transaction is rolled back if the lease is lost.
        It may run again after a database outage.
        """


@dataclass(frozen=True, slots=True)
class ResultOnly:
    """An outcome with nothing to store but the result."""

    result: Mapping[str, Any]

    def store(self, _conn: Connection) -> Mapping[str, Any]:
        return self.result


JobUpdate = JobReport | Note | Waiting | None
#: The work of a job, as a generator. It yields a report, a note or None at least five times per second, so that the
#: worker can stop it. The worker stops it by closing the generator.
JobRun = Generator[JobUpdate, None, Outcome]
