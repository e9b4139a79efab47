"""The limits of a job: memory, estimated before a run starts, and time."""

from tagsmith.core.base.errors import Invalid
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.jobs.runner_interface import JobUpdate, Waiting
from tagsmith.core.service.settings import Settings
from tagsmith.worker.lease import Lease

_MIB = 1 << 20


class ResourceLimits:
    """The limits of one claim of one job."""

    def __init__(self, settings: Settings, job: JobRow, lease: Lease) -> None:
        self._memory_bytes = settings.job_memory
        self._max_seconds: float | None = job.spec.get("max_seconds")
        self._lease = lease

    def check(self, update: JobUpdate) -> None:
        """Raise Invalid when the job has used up its time, or reports that it needs more memory than allowed."""
        # Only training progress has a memory estimate.
        needed: int | None = getattr(update, "needed_bytes", None)
        if needed is not None and needed > self._memory_bytes:
            raise Invalid(
                f"The job needs about {needed / _MIB:,.0f} MiB of memory, and jobs may use "
                f"{self._memory_bytes / _MIB:,.0f} MiB. Use fewer features, a higher cutoff or `pairs: seen`.",
                code="too_large",
            )
        if isinstance(update, Waiting):
            return
        if self._max_seconds is not None and self._lease.worked_seconds > self._max_seconds:
            raise Invalid(
                f"The job did not finish within {self._max_seconds:g} s. Raise its max_seconds.",
                code="out_of_time",
            )
