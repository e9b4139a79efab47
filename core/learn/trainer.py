"""What every trainer is: a spec, a state of plain arrays, and a generator of passes over it.

The loop outside (`loop.py`) owns progress, evaluation, early stopping, time budget and cancelling. A trainer only
learns: it yields a `Report` at least every fraction of a second, and at the end of each pass one with `pass_done`, at
which moment its state is a checkpoint: a run resumed from it goes on to the same weights, bit for bit. It returns when
it has converged.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any, Literal

from numpy.typing import NDArray
from pydantic import Field

from core.errors import TagsmithError
from core.learn.evaluation import Weights
from core.learn.problem import Problem
from core.specs_base import Spec

State = dict[str, NDArray[Any]]

#: Seconds of kernel between two reports: a stop request takes effect within a few of these.
SLICE_SECONDS = 0.1


class Diverged(TagsmithError):
    """The loss left the finite numbers."""

    default_code = "diverged"


class TrainerSpec(Spec):
    """Fields common to all trainers; each adds `kind` and its own."""

    kind: str
    passes: Annotated[int, Field(ge=1, le=100_000)] = 30
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @property
    def total_passes(self) -> int:
        """The most passes a run can have, those of all its stages."""
        return self.passes


@dataclass(frozen=True, slots=True)
class Report:
    """How far a trainer is."""

    phase: Literal["calibrate", "train"]
    pass_number: int  # passes finished, counting the present one when pass_done
    fraction: float  # of the present pass
    pass_done: bool = False
    loss: float | None = None  # running estimate over the pass, when it is done
    objective: float | None = None  # exact, from trainers that know it
    message: str = ""


def in_slices(count: int, batch: int, run: Callable[[int, int], float]) -> Iterator[tuple[float, float]]:
    """Run updates 0 to `count` in slices of about SLICE_SECONDS, whole batches each; yield (fraction done, loss)."""
    first, step = 0, batch * max(1, 64 // batch)
    while first < count:
        last = min(first + step, count)
        began = perf_counter()
        loss = run(first, last)
        seconds = perf_counter() - began
        step = batch * max(1, min(int(step / batch * SLICE_SECONDS / max(seconds, 1e-4)), 1 << 20))
        first = last
        yield first / count, loss


class Trainer(ABC):
    """One learner. Stateless itself: everything that changes is in the state."""

    #: Norms the trainer penalises, for the objective on the common scale.
    l1: float = 0.0
    l2: float = 0.0

    @abstractmethod
    def start(self, problem: Problem, init: Weights | None = None) -> State:
        """Make the state before the first pass, from the weights `init` or from zero."""

    @abstractmethod
    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        """Train, pass after pass, writing into `state`."""

    @abstractmethod
    def weights(self, problem: Problem, state: State) -> Weights:
        """The weights as the model would have them now."""

    def varies(self, name: str) -> bool:
        """Whether an array of the state changes its length, or comes to exist, as training goes on."""
        del name
        return False

    def penalty(self, weights: Weights, norm1: float, norm2: float) -> float:
        """What the trainer's penalty is at weights whose |w|_1 and |w|^2 are given."""
        del weights
        return self.l1 * norm1 + 0.5 * self.l2 * norm2

    def findings(self, weights: Weights, state: State) -> dict[str, Any]:
        """What the trainer has found out besides the weights, by name, for the metrics of the version."""
        del weights, state
        return {}


def part_of(state: State, prefix: str) -> State:
    """The arrays of one stage of a trainer that is made of several, whose names begin with the prefix."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


def put_part(state: State, prefix: str, part: State) -> None:
    """Put the arrays of a stage into the state of the trainer that is made of several."""
    state.update({prefix + name: array for name, array in part.items()})
