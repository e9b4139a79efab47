"""Several runs, one after another, as one job: one progress, one kind of checkpoint, one list of what came of them.

What a finished run came to is a plain dict, because it goes as it is into checkpoints, events and the result. A
checkpoint holds those of all finished runs and the state of the present one, so a job that is resumed makes no run and
no pass again, but those since the checkpoint.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from core.errors import TagsmithError
from core.flat_file import CorruptFile
from core.learn import checkpoint, loop, memory
from core.learn.loop import Learned
from core.learn.problem import Problem
from core.learn.progress import Part, Progress
from core.specs import Learning
from core.steps import mapped

T = TypeVar("T")

#: What came of a run, as plain values.
Entry = dict[str, Any]


class EveryRunFailed(TagsmithError):
    """None of the runs of a job came to an end."""

    default_code = "every_run_failed"


class Series:
    """The runs of a job, of which there will be `of`."""

    def __init__(self, of: int, resume: Path | None = None, *, tell_passes: bool = True) -> None:
        self.of = of
        self.done: list[Entry] = []
        #: A checkpoint of the present run, until that has taken it.
        self._resume: Path | None = None
        self._tell_passes = tell_passes
        if resume is not None:
            self.done, midway = checkpoint.carried_over(resume)
            if len(self.done) + midway > of:
                raise CorruptFile("The checkpoint is of another job")
            self._resume = resume if midway else None

    def resumed(self) -> Iterator[Progress]:
        """Say how many runs were made before an interruption, if there were any."""
        if self.done:
            yield self.started(f"resumed after run {len(self.done)} of {self.of}")

    def started(self, message: str) -> Progress:
        """Say something that is about no single run."""
        return Progress("compile", fraction=len(self.done) / self.of, message=message)

    def run(
        self,
        name: str,
        spec: Learning,
        problem: Problem,
        dev: Problem,
        entry: Callable[[Learned], Entry],
    ) -> Generator[Progress, None, None]:
        """Make the next run, and add to `done` what `entry` says of its end, or why it failed."""
        # Said before anything is taken, so that whoever drives this can refuse.
        needed = Progress("compile", needed_bytes=memory.peak_bytes(spec, problem))
        yield self._as_part(needed, Part(name, len(self.done) + 1, self.of))
        learning = loop.learn(spec, problem, dev, resume=self.take_resume(), carried=tuple(self.done))
        try:
            outcome = entry((yield from self.told(name, learning)))
        except CorruptFile:
            raise
        except TagsmithError as error:
            # One trainer that diverges, or cannot be what its spec asks, leaves the others theirs.
            outcome = {"error": {"code": error.code, "message": error.message}}
        yield self.ended(name, outcome)

    def ended(self, name: str, outcome: Entry) -> Progress:
        """Note that the present run has come to an end."""
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
        """The checkpoint to go on from; only the first run after an interruption has one."""
        found, self._resume = self._resume, None
        return found

    def told(self, name: str, steps: Generator[Progress, None, T]) -> Generator[Progress, None, T]:
        """The progress of the present run as that of the job."""
        part = Part(name, len(self.done) + 1, self.of)
        return mapped(steps, lambda said: self._as_part(said, part))

    def _as_part(self, said: Progress, part: Part) -> Progress:
        done = len(self.done) + said.fraction
        silent = said.pass_done and not self._tell_passes
        return replace(
            said,
            fraction=done / self.of,
            eta_seconds=self._remaining(done, self._spent() + said.seconds),
            message=f"{part.name}: {said.message}" if said.message and not silent else "",
            pass_done=said.pass_done and not silent,
            run=part,
        )

    def _spent(self) -> float:
        return float(sum(entry.get("seconds", 0.0) for entry in self.done))

    def _remaining(self, done: float, spent: float) -> float | None:
        """Seconds to come, if the runs to come are like those before."""
        return round(spent * (self.of - done) / done, 3) if done and spent else None
