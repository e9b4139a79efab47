"""Checkpoints, from which a job resumes after its worker is lost: staged on local disk often, stored in SQL less often.

The state of a trainer is consistent only at the end of a pass. A worker that must stop can therefore store only the
last staged state, not the current one.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.jobs import checkpoints, events
from tagsmith.core.jobs.runner_interface import JobReport
from tagsmith.core.store import blobs
from tagsmith.core.store.ids import new_id
from tagsmith.worker.context import Context
from tagsmith.worker.lease import Lease
from tagsmith.worker.reporter import Reporter

# Maximum share of the training time spent on copying states to disk and to SQL. The state of a batch trainer
# can be a gigabyte: without these limits a short `checkpoint_seconds` would leave no time to train.
STAGE_SHARE = 0.02
STORE_SHARE = 0.1
# In a job with several runs, the checkpoint at the end of a run holds only results. It is small, so it is stored soon.
RUN_INTERVAL_S = 1.0
READ_BYTES = 1 << 20

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Due:
    """The times at which the next state of one type can be staged and should be stored."""

    interval_s: float
    store_at: float
    stage_at: float = float("-inf")


class Checkpoints:
    """The checkpoints of one claim of one job."""

    def __init__(self, context: Context, lease: Lease, reporter: Reporter, scratch: Path) -> None:
        self._context = context
        self._lease = lease
        self._reporter = reporter
        self._path = scratch / "checkpoint"
        #: The progress of the staged state, and whether that state is also stored.
        self._staged: Mapping[str, Any] | None = None
        self._is_stored = False
        interval_s = context.settings.checkpoint_seconds
        self._passes = _Due(interval_s, time.monotonic() + interval_s)
        self._runs = _Due(min(interval_s, RUN_INTERVAL_S), time.monotonic())

    def offer(self, report: JobReport) -> None:
        """Stage or store the state at the end of a pass or run, if it is due. Raises LeaseLost if the lease is lost."""
        due = self._runs if report.event == "run" else self._passes
        store = time.monotonic() >= due.store_at
        if report.checkpoint is None or not (store or time.monotonic() >= due.stage_at):
            return
        self._stage(report, due)
        if store and self._staged is not None:
            self._store(self._staged, due, None)

    def keep_last(self, patience_s: float) -> None:
        """Store the staged state if it is newer than the stored one. Give up after `patience_s` seconds."""
        if self._staged is not None and not self._is_stored:
            self._store(self._staged, self._passes, time.monotonic() + patience_s)

    def _stage(self, report: JobReport, due: _Due) -> None:
        assert report.checkpoint is not None
        started_at = time.monotonic()
        try:
            report.checkpoint(self._path)
            self._staged, self._is_stored = report.as_dict(), False
        except OSError as error:
            # Training continues without a checkpoint: a full disk must not fail the job.
            self._staged = None
            self._warn("cannot stage a checkpoint", error)
        ended = time.monotonic()
        due.stage_at = ended + (ended - started_at) / STAGE_SHARE

    def _store(self, staged: Mapping[str, Any], due: _Due, deadline: float | None) -> None:
        started_at = time.monotonic()
        job_id, number, run = self._lease.job_id, int(staged["pass"]), staged.get("run")
        position = {"pass": number} if run is None else {"pass": number, "run": run["name"]}
        message = _message(number, run)
        try:
            with self._context.db.write() as conn:
                # Write the bytes first: this takes longest, and the row of the job must not be locked meanwhile.
                blob = blobs.write(conn, new_id("blb"), self._chunks(deadline))
                data = position | {"size_bytes": blob.size_bytes}
                self._reporter.write(conn, events.Draft("checkpoint", message, data))
                checkpoints.replace(conn, job_id, number, blob.id)
        except (_Abandoned, Unavailable, OSError) as error:
            self._warn("checkpoint not stored", error)
        else:
            self._reporter.clear_written()
            self._is_stored = True
        ended = time.monotonic()
        due.store_at = ended + max(due.interval_s, (ended - started_at) / STORE_SHARE)

    def _chunks(self, deadline: float | None) -> Iterator[bytes]:
        """Read the staged file. Raises _Abandoned when the job must stop before the end of the file."""
        with self._path.open("rb") as handle:
            while chunk := handle.read(READ_BYTES):
                stopping = self._context.stop.is_set() if deadline is None else time.monotonic() > deadline
                if stopping or self._lease.cancel or self._lease.lost:
                    raise _Abandoned("there was no time to store it")
                yield chunk

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
    """Storing a checkpoint was abandoned."""
