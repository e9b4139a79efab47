"""Where a job would go on if this worker were lost: staged on local disk often, stored in SQL now and then.

The state of a trainer is whole only at the end of a pass. What a worker that is told to stop can still store is
therefore the last state it staged, not the present one.
"""

import logging
import time
from collections.abc import Iterator, Mapping
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
# How long a worker that is told to stop may spend on a last checkpoint. Less than the patience of its lease.
LAST_S = 1.5
READ_BYTES = 1 << 20

_log = logging.getLogger(__name__)


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
        self._stage_at = float("-inf")
        self._store_at = time.monotonic() + context.settings.checkpoint_seconds

    def offer(self, report: Report) -> None:
        """Take the state at the end of a pass, if it is time. Raises LeaseLost when the job is another's."""
        store = time.monotonic() >= self._store_at
        if report.checkpoint is None or not (store or time.monotonic() >= self._stage_at):
            return
        self._stage(report)
        if store and self._staged is not None:
            self._store(self._staged, None)

    def keep_last(self) -> None:
        """Store what is staged, if it is newer than what is stored and can be stored in a moment."""
        if self._staged is not None and not self._is_stored:
            self._store(self._staged, time.monotonic() + LAST_S)

    def _stage(self, report: Report) -> None:
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
        self._stage_at = ended + (ended - began) / STAGE_SHARE

    def _store(self, staged: Mapping[str, Any], deadline: float | None) -> None:
        began = time.monotonic()
        job_id, number, run = self._lease.job_id, int(staged["pass"]), staged.get("run")
        told = {"pass": number} if run is None else {"pass": number, "run": run["name"]}
        message = f"checkpoint after pass {number}" + ("" if run is None else f" of {run['name']}")
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
        pause = max(self._context.settings.checkpoint_seconds, (ended - began) / STORE_SHARE)
        self._store_at = ended + pause

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


class _Abandoned(Exception):
    """Storing a checkpoint was given up."""
