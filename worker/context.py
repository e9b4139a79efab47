"""The resources that all parts of a worker share: opened once, passed down."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redis import Redis

from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.jobs.resources import JobResources
from tagsmith.core.jobs.runner_interface import JobRun
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database

if TYPE_CHECKING:
    from tagsmith.core.service.tracing.otel import Tracing

#: Runs one job.
Runner = Callable[[JobResources], JobRun]


@dataclass(frozen=True, slots=True)
class Context:
    """The resources of one worker."""

    settings: Settings
    db: Database
    redis: Redis
    #: Identifies this process among all workers, in logs and leases.
    worker_id: str
    #: Set when the process must stop.
    stop: threading.Event
    #: Set while the worker handles a message.
    busy: threading.Event
    #: Sends a message about a job to the broker; returns False when the broker is unavailable.
    send: Callable[[JobRow], bool]
    #: Runners by job kind.
    runners: Mapping[str, Runner]
    #: None without tracing.
    tracing: "Tracing | None" = None
