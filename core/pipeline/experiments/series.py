"""Several runs, one after another, as one job: one progress, one checkpoint format, one list of outcomes.

The outcome of a finished run is a plain dict, because checkpoints, events and the result contain it unchanged. A
checkpoint holds the outcomes of all finished runs and the state of the current run. A resumed job therefore repeats
only what came after the checkpoint.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.base.flat_file import CorruptFile
from tagsmith.core.base.steps import mapped
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.run import checkpoint, loop
from tagsmith.core.learn.run.loop import Learned
from tagsmith.core.learn.run.progress import Part, Progress
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.learn.trainers import memory

T = TypeVar("T")

#: The outcome of a run, as plain values.
Entry = dict[str, Any]


class EveryRunFailed(TagsmithError):
    """All runs of a job failed."""

    default_code = "every_run_failed"


class Series:
    """The runs of a job; `of` is their total number."""

    def __init__(self, of: int, resume: Path | None = None, *, report_passes: bool = True) -> None:
        self.of = of
        self.done: list[Entry] = []
        #: The checkpoint of the current run, until that run takes it.
        self._resume: Path | None = None
        self._report_passes = report_passes
        if resume is not None:
            self.done, midway = checkpoint.carried_over(resume)
            if len(self.done) + midway > of:
                raise CorruptFile("The checkpoint belongs to another job.")
            self._resume = resume if midway else None

    def resumed(self) -> Iterator[Progress]:
        """Report how many runs were finished before an interruption, if any."""
        if self.done:
            yield self.started(f"resumed after run {len(self.done)} of {self.of}")

    def started(self, message: str) -> Progress:
        """Return a report that belongs to no single run."""
        return Progress("compile", fraction=len(self.done) / self.of, message=message)

    def run(
        self,
        name: str,
        spec: Learning,
        problem: Problem,
        dev: Problem,
        entry: Callable[[Learned], Entry],
    ) -> Generator[Progress, None, None]:
        """Execute the next run. Append its `entry`, or the error of a failed run, to `done`."""
        # Reported before any allocation, so that the worker can refuse the run.
        needed_bytes = memory.peak_bytes(
            spec.trainer, problem, threads=spec.threads, keeps_best=spec.stop.keeps_best
        )
        needed = Progress("compile", needed_bytes=needed_bytes)
        yield self._as_part(needed, Part(name, len(self.done) + 1, self.of))
        learning = loop.learn(spec, problem, dev, resume=self.take_resume(), carried=tuple(self.done))
        try:
            outcome = entry((yield from self.as_part_of_job(name, learning)))
        except CorruptFile:
            raise
        except TagsmithError as error:
            # A trainer that diverges, or that cannot train on the corpus, does not affect the other runs.
            outcome = {"error": {"code": error.code, "message": error.message}}
        yield self.ended(name, outcome)

    def ended(self, name: str, outcome: Entry) -> Progress:
        """Record the end of the current run, and return its report."""
        self.done.append(outcome)
        number = len(self.done)
        if "error" in outcome:
            message = f"{name} failed: {outcome['error']['message']}"
        else:
            message = f"{name}: score {outcome['score']:.2f} after {outcome['passes']} passes"
        shown = {key: value for key, value in outcome.items() if key != "curve"}
        return Progress(
            "finish",
            fraction=number / self.of,
            seconds=self._spent(),
            eta_seconds=self._remaining(number, self._spent()),
            message=message,
            run=Part(name, number, self.of, shown),
            run_done=True,
            checkpoint=partial(checkpoint.save, kept=None, arrays={}, carried=tuple(self.done)),
        )

    def take_resume(self) -> Path | None:
        """Return the checkpoint to resume from. Only the first run after an interruption has one."""
        resume, self._resume = self._resume, None
        return resume

    def as_part_of_job(self, name: str, steps: Generator[Progress, None, T]) -> Generator[Progress, None, T]:
        """Convert the progress of the current run to progress of the job."""
        part = Part(name, len(self.done) + 1, self.of)
        return mapped(steps, lambda progress: self._as_part(progress, part))

    def _as_part(self, progress: Progress, part: Part) -> Progress:
        done = len(self.done) + progress.fraction
        silent = progress.pass_done and not self._report_passes
        return replace(
            progress,
            fraction=done / self.of,
            eta_seconds=self._remaining(done, self._spent() + progress.seconds),
            message=f"{part.name}: {progress.message}" if progress.message and not silent else "",
            pass_done=progress.pass_done and not silent,
            run=part,
        )

    def _spent(self) -> float:
        return float(sum(entry.get("seconds", 0.0) for entry in self.done))

    def _remaining(self, done: float, spent: float) -> float | None:
        """Estimate the remaining seconds, assuming that all runs take equally long."""
        return round(spent * (self.of - done) / done, 3) if done and spent else None
