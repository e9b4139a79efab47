"""What every part of a worker is given: opened once, passed down."""

import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from redis import Redis
from sqlalchemy.engine import Connection

from core.settings import Settings
from core.store.engine import Database
from core.store.jobs import JobRow

if TYPE_CHECKING:
    from core.tracing.otel import Tracing


class Report(Protocol):
    """What a runner says about where it stands; `core.learn` has the one for training."""

    @property
    def event(self) -> str | None:
        """The type of event it makes, with all its figures: `pass` and `run` when one has ended, `message`, or none."""

    @property
    def message(self) -> str:
        """The line for people in that event."""

    @property
    def checkpoint(self) -> Callable[[Path], None] | None:
        """At the end of a pass, what writes a file from which the runner can go on; None when it has none."""

    def as_dict(self) -> dict[str, Any]:
        """The `progress` of the HTTP contract."""


@dataclass(frozen=True, slots=True)
class Note:
    """A line for people that is no progress; it makes a `message` event."""

    message: str
    level: str = "info"


class Outcome(Protocol):
    """The end of a job that succeeded."""

    @property
    def serves(self) -> bool:
        """Whether storing it changes what can be served."""

    def store(self, conn: Connection) -> dict[str, Any]:
        """Store everything the job made, and give the `result` of its row.

        Runs in the transaction that ends the job, which is undone when the lease was lost meanwhile; may run
        again after an outage of the database.
        """


#: The work of one kind of job. So that it can be stopped it yields at least every fifth of a second: a report,
#: a note, or None when there is nothing to say. It is stopped by closing it.
Said = Report | Note | None
Running = Generator[Said, None, Outcome]
Runner = Callable[[JobRow, "Workplace"], Running]


@dataclass(frozen=True, slots=True)
class Context:
    """One worker."""

    settings: Settings
    db: Database
    redis: Redis
    #: Tells this process from all other workers, in logs and leases.
    worker_id: str
    #: Set when the process is asked to end.
    stop: threading.Event
    #: Set while a message is being answered.
    busy: threading.Event
    #: Gives the broker a message about a job; False when it was away.
    send: Callable[[JobRow], bool]
    #: Kind of job -> what runs it.
    runners: Mapping[str, Runner]
    #: None where nothing is traced.
    tracing: "Tracing | None" = None


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a runner may use."""

    settings: Settings
    db: Database
    #: A folder of its own, removed when the job ends.
    scratch: Path
