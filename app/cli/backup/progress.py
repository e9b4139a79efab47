"""The progress of a backup or a restore."""

from collections.abc import Callable

#: Called with what is being done, and the fraction that is done.
Report = Callable[[str, float], None]
#: Calls per phase: enough for a smooth bar.
STEPS = 1000


class Phase:
    """One part of the work. Call it with the number of rows that were handled."""

    def __init__(self, name: str, total: int, report: Report) -> None:
        self._name, self._total, self._report = name, max(1, total), report
        self._done = self._reported = 0

    def __call__(self, count: int) -> None:
        self._done += count
        if (self._done - self._reported) * STEPS >= self._total:
            self._reported = self._done
            self._report(self._name, min(1.0, self._done / self._total))
