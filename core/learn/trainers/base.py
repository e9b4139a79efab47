"""The interface of every trainer: a spec, a state of plain arrays, and a generator of passes over it.

The loop (`run.loop`) owns progress, evaluation, early stopping, time budget and cancellation. A trainer only learns. It
yields a `Report` several times per second, and one with `pass_done` at the end of each pass. At that moment its state
is a checkpoint: a run resumed from it ends with the same weights, bit for bit. A trainer returns when it has converged.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any, ClassVar, Literal, Self

from numpy.typing import NDArray
from pydantic import Field

from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.base.spec import Spec
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.sizes import Sizes
from tagsmith.core.learn.weights.scoring import Weights

State = dict[str, NDArray[Any]]

#: Seconds of kernel time between two reports. A stop request takes effect within a few of these.
SLICE_SECONDS = 0.1


class Diverged(TagsmithError):
    """The loss is no longer finite."""

    default_code = "diverged"


class TrainerSpec(Spec):
    """Fields common to all trainers; each adds `kind` and its own."""

    #: The spec of a short run that compiles every kernel of the kind. Kinds that share kernels share the run.
    example: ClassVar[dict[str, Any]]
    #: Whether most weights of the model are nonzero, which needs more memory when the model is built.
    dense: ClassVar[bool] = False

    kind: str
    passes: Annotated[int, Field(ge=1, le=100_000)] = 30
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @property
    def total_passes(self) -> int:
        """The maximum number of passes of a run, over all its stages."""
        return self.passes

    def with_total_passes(self, passes: int) -> Self:
        """Return the same spec for a run of `passes` passes in total, or of the minimum for its kind."""
        return type(self).model_validate({**self.model_dump(), "passes": passes})

    @property
    def selection_passes(self) -> int:
        """The number of passes of a stage that only selects features. Early stopping ignores these passes."""
        return 0

    @property
    def uses_threads(self) -> bool:
        """Whether the trainer can use several threads, as trainers do that read the whole corpus at each step."""
        return False

    @property
    def calibrated(self) -> bool:
        """Whether the trainer fits probabilities. Otherwise scores have no defined scale."""
        return True

    def make(self, threads: int) -> "Trainer":
        """Make the trainer."""
        raise NotImplementedError

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        """Estimate the peak memory of the trainer, including calibration."""
        raise NotImplementedError

    def calibration_bytes(self, sizes: Sizes) -> int:
        """Estimate the part of `state_bytes` that is freed before the first pass."""
        del sizes
        return 0

    def held_bytes(self, sizes: Sizes) -> int:
        """Estimate the memory that the trainer still holds while the model is built."""
        return self.state_bytes(sizes, 1)


@dataclass(frozen=True, slots=True)
class Report:
    """The progress of a trainer."""

    phase: Literal["calibrate", "train"]
    pass_number: int  # passes finished, including the current one if pass_done
    fraction: float  # of the current pass
    pass_done: bool = False
    loss: float | None = None  # running estimate over the pass, once it is done
    objective: float | None = None  # exact, from trainers that compute it
    message: str = ""


def in_slices(count: int, batch: int, run: Callable[[int, int], float]) -> Iterator[tuple[float, float]]:
    """Run updates 0 to `count` in slices of about SLICE_SECONDS, in whole batches; yield (fraction done, loss)."""
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
    """One learner. The object itself has no state: everything that changes is in the `State` argument."""

    #: Strengths of the penalties, for the objective that all trainers report.
    l1: float = 0.0
    l2: float = 0.0

    @abstractmethod
    def start(self, problem: Problem, init: Weights | None = None) -> State:
        """Create the state before the first pass, from the weights `init` or from zero."""

    @abstractmethod
    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        """Train pass by pass, updating `state`."""

    @abstractmethod
    def weights(self, problem: Problem, state: State) -> Weights:
        """Return the weights of the model at this point of training."""

    def varies(self, name: str) -> bool:
        """Whether an array of the state can be created or change its length during training."""
        del name
        return False

    def penalty(self, weights: Weights, norm1: float, norm2: float) -> float:
        """Return the trainer's penalty at weights with the given |w|_1 and |w|^2."""
        del weights
        return self.l1 * norm1 + 0.5 * self.l2 * norm2

    def findings(self, weights: Weights, state: State) -> dict[str, Any]:
        """Return results other than the weights, by name, for the metrics of the version."""
        del weights, state
        return {}


def part_of(state: State, prefix: str) -> State:
    """Return the arrays of one stage of a staged trainer: those whose names begin with the prefix."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


def put_part(state: State, prefix: str, part: State) -> None:
    """Put the arrays of a stage into the state of its staged trainer."""
    state.update({prefix + name: array for name, array in part.items()})
