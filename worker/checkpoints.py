"""Where a job would go on if this worker were lost: staged on local disk often, stored in SQL now and then.

The state of a trainer is whole only at the end of a pass. What a worker that is told to stop can still store is
therefore the last state it staged, not the present one.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import Unavailable
from core.store import blobs, checkpoints, events
from core.store.ids import new_id
from worker.context import Context, Report
from worker.lease import Lease
from worker.reporter import Reporter

# Of the time of training, what copying states to disk and to SQL may take. A state of a batch trainer can be a
# gigabyte: without this a short `checkpoint_seconds` would leave no time to train.
STAGE_SHARE = 0.02
STORE_SHARE = 0.1
# The end of a run, of a job that makes several, has no state but figures: it is small, and worth storing soon.
RUN_PAUSE_S = 1.0
READ_BYTES = 1 << 20

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Due:
    """When the next state of one sort may be staged, and when it should be stored."""

    pause_s: float
    store_at: float
    stage_at: float = float("-inf")


class Checkpoints:
    """The checkpoints of one claim of one job."""

    def __init__(self, context: Context, lease: Lease, reporter: Reporter, scratch: Path) -> None:
        self._context = context
        self._lease = lease
        self._reporter = reporter
        self._path = scratch / "checkpoint"
        #: What is staged, and whether that is stored too.
        self._staged: Mapping[str, Any] | None = None
        self._is_stored = False
        pause_s = context.settings.checkpoint_seconds
        self._passes = _Due(pause_s, time.monotonic() + pause_s)
        self._runs = _Due(min(pause_s, RUN_PAUSE_S), time.monotonic())

    def offer(self, report: Report) -> None:
        """Take the state at the end of a pass or run, if it is time. Raises LeaseLost when the job is another's."""
        due = self._runs if report.event == "run" else self._passes
        store = time.monotonic() >= due.store_at
        if report.checkpoint is None or not (store or time.monotonic() >= due.stage_at):
            return
        self._stage(report, due)
        if store and self._staged is not None:
            self._store(self._staged, due, None)

    def keep_last(self, patience_s: float) -> None:
        """Store what is staged, if it is newer than what is stored and can be stored in so many seconds."""
        if self._staged is not None and not self._is_stored:
            self._store(self._staged, self._passes, time.monotonic() + patience_s)

    def _stage(self, report: Report, due: _Due) -> None:
        assert report.checkpoint is not None
        began = time.monotonic()
        try:
            report.checkpoint(self._path)
            self._staged, self._is_stored = report.as_dict(), False
        except OSError as error:
            # Training goes on without: a full disk costs safety, not the job.
            self._staged = None
            self._warn("cannot stage a checkpoint", error)
        ended = time.monotonic()
        due.stage_at = ended + (ended - began) / STAGE_SHARE

    def _store(self, staged: Mapping[str, Any], due: _Due, deadline: float | None) -> None:
        began = time.monotonic()
        job_id, number, run = self._lease.job_id, int(staged["pass"]), staged.get("run")
        told = {"pass": number} if run is None else {"pass": number, "run": run["name"]}
        message = _message(number, run)
        try:
            with self._context.db.write() as conn:
                # The bytes first: they take longest, and nobody else should wait for the row meanwhile.
                blob = blobs.write(conn, new_id("blb"), self._pieces(deadline))
                data = told | {"size_bytes": blob.size_bytes}
                self._reporter.write(conn, events.Draft("checkpoint", message, data))
                checkpoints.replace(conn, job_id, number, blob.id)
        except (_Abandoned, Unavailable, OSError) as error:
            self._warn("checkpoint not stored", error)
        else:
            self._reporter.written()
            self._is_stored = True
        ended = time.monotonic()
        due.store_at = ended + max(due.pause_s, (ended - began) / STORE_SHARE)

    def _pieces(self, deadline: float | None) -> Iterator[bytes]:
        """Read the staged file; whoever wants the job stopped does not wait for the end of it."""
        with self._path.open("rb") as handle:
            while piece := handle.read(READ_BYTES):
                stopping = self._context.stop.is_set() if deadline is None else time.monotonic() > deadline
                if stopping or self._lease.cancel or self._lease.lost:
                    raise _Abandoned("there was no time to store it")
                yield piece

    def _warn(self, message: str, error: Exception) -> None:
        _log.warning(message, extra={"job_id": self._lease.job_id, "error": str(error)})


def _message(number: int, run: Mapping[str, Any] | None) -> str:
    if run is None:
        return f"checkpoint after pass {number}"
    return (
        f"checkpoint after {run['name']}"
        if "outcome" in run
        else f"checkpoint after pass {number} of {run['name']}"
    )


class _Abandoned(Exception):
    """Storing a checkpoint was given up."""
