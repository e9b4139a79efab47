"""What a job may take of a worker: memory, known before a run starts, and time."""

from core.errors import Invalid
from core.settings import Settings
from core.store.jobs import JobRow
from worker.context import Said
from worker.lease import Lease

_MIB = 1 << 20


class Limits:
    """The limits of one claim of one job."""

    def __init__(self, settings: Settings, job: JobRow, lease: Lease) -> None:
        self._memory_bytes = settings.job_memory
        self._max_seconds: float | None = job.spec.get("max_seconds")
        self._lease = lease

    def check(self, said: Said) -> None:
        """Raise Invalid when the job has had its time, or says that it will need more memory than it may have."""
        # Only training knows what it will need.
        needed: int | None = getattr(said, "needed_bytes", None)
        if needed is not None and needed > self._memory_bytes:
            raise Invalid(
                f"The job needs about {needed / _MIB:,.0f} MiB of memory, and jobs may take "
                f"{self._memory_bytes / _MIB:,.0f} MiB: choose fewer features, a higher cutoff or `pairs: seen`",
                code="too_large",
            )
        if self._max_seconds is not None and self._lease.worked_seconds > self._max_seconds:
            raise Invalid(f"The job was not done within its {self._max_seconds:g} s", code="out_of_time")
