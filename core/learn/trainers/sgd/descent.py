"""Stochastic gradient descent: the trainer that every SGD kind shares. `updates` has the update rules."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import readonly
from tagsmith.core.inference import chain as ch
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import Diverged, Report, State, Trainer, TrainerSpec, in_slices
from tagsmith.core.learn.trainers.order import pass_order
from tagsmith.core.learn.trainers.sgd import line_search
from tagsmith.core.learn.trainers.sgd.schedule import CALIBRATION_SEQUENCES, Schedule, calibrate
from tagsmith.core.learn.trainers.sgd.updates import (
    DescentPlan,
    Extras,
    Mean,
    PassData,
    Penalty,
    Swept,
    reading_of,
    run_updates,
)
from tagsmith.core.learn.trainers.sizes import Sizes
from tagsmith.core.learn.weights.pairs import Pairs, mask_of, pairs_of_marks
from tagsmith.core.learn.weights.posterior import Buffers
from tagsmith.core.learn.weights.rows import census, rows, rows_of, settle
from tagsmith.core.learn.weights.scoring import Weights

#: Bytes per cell of the sample: the cell, and two int64 indices while the sample is selected.
SAMPLED_CELL_BYTES = 4 + 2 * 8


class DescentSpec(TrainerSpec):
    """`schedule` sets how the rate decays; `batch` is the number of sequences per update."""

    example: ClassVar[dict[str, Any]] = {"kind": "sgd-l1", "passes": 1}
    #: Number of matrices in the state: the weights and, in `asgd`, their sums.
    matrices: ClassVar[int] = 1

    schedule: Schedule = Schedule()
    batch: Annotated[int, Field(ge=1, le=100_000)] = 1

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        del threads
        return self.held_bytes(sizes) + sizes.chains(self.batch) + self.calibration_bytes(sizes)

    def calibration_bytes(self, sizes: Sizes) -> int:
        if self.schedule.eta0 != "auto":
            return 0
        return self.matrices * sizes.matrix + 4 * sizes.rows + sample_bytes(sizes)

    def held_bytes(self, sizes: Sizes) -> int:
        return self.matrices * sizes.matrix + 4 * sizes.rows


def sample_bytes(sizes: Sizes) -> int:
    """Estimate the memory of the calibration sample."""
    sampled = sizes.cells * min(1.0, CALIBRATION_SEQUENCES / max(1, sizes.sentences))
    return int(SAMPLED_CELL_BYTES * sampled)


@dataclass(frozen=True, slots=True)
class Pass:
    """The inputs of the updates of one pass, for any rule."""

    sequences: int  # N of the whole run; a calibration trial uses fewer
    updates: NDArray[np.float64]  # the update numbers within a whole run
    mask: NDArray[np.uint8]
    order: NDArray[np.int64]
    rates: NDArray[np.float64]
    buffers: Buffers
    sufficient: float | None


class Descent(Trainer):
    """SGD with one of the penalty rules. Subclasses set the rule, its strength, and whether to search for rates."""

    dtype: type = np.float32
    rule: Penalty = Penalty.CUMULATIVE
    #: The decrease that the line search requires of a trial (see `line_search`). None: use the scheduled rates.
    sufficient: float | None = None

    def __init__(self, spec: DescentSpec) -> None:
        self._descent = spec
        self._swept_of: tuple[NDArray[np.uint8], Swept] | None = None

    @property
    def _strength(self) -> float:
        return self.l2 if self.rule == Penalty.DECAY else self.l1

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        r = rows(problem.rows, problem.width, self.dtype)
        if init is not None:
            r.weights[:] = init.values
        eta0 = self._descent.schedule.eta0
        return {
            "weights": r.weights,
            "touched": r.touched,
            "penalty": np.array([1.0 if self.rule == Penalty.DECAY else 0.0]),
            "eta0": np.array([0.0 if eta0 == "auto" else eta0]),
            "passes": np.zeros(1, np.int64),
        }

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        mask = mask_of(problem)
        if state["eta0"][0] == 0.0:
            yield from self._calibrate(problem, state, seed, mask)
        while True:
            loss = 0.0
            number = int(state["passes"][0]) + 1
            updates = np.arange(
                (number - 1) * problem.sentences, number * problem.sentences, dtype=np.float64
            )
            parts = self._one_pass(
                problem, state, seed, updates, problem.sentences, mask, sufficient=self.sufficient
            )
            for fraction, part in parts:
                loss += part
                if not isfinite(loss):
                    raise Diverged(
                        f"The loss is no longer a finite number in pass {number} (eta0 {state['eta0'][0]:g}). "
                        'Set a smaller `schedule.eta0`, or "auto".'
                    )
                yield Report("train", number - 1, fraction)
            state["passes"][0] = number
            yield Report("train", number, 0.0, pass_done=True, loss=loss)

    def _one_pass(
        self,
        problem: Problem,
        state: State,
        seed: int,
        updates: NDArray[np.float64],
        sequences: int,
        mask: NDArray[np.uint8],
        *,
        sufficient: float | None = None,
    ) -> Iterator[tuple[float, float]]:
        """Yield (fraction done, loss of the slice). `updates` holds the update numbers in a run over N `sequences`."""
        labels, batch = len(problem.labels), self._descent.batch
        p = Pass(
            sequences=sequences,
            updates=updates,
            mask=mask,
            order=pass_order(problem.sentences, seed, int(state["passes"][0]) + 1),
            rates=self._descent.schedule.rates(float(state["eta0"][0]), updates, sequences, self.l2),
            buffers=Buffers(
                ch.edges(labels, self.dtype),
                problem.chain(problem.room(batch), self.dtype),
            ),
            sufficient=sufficient,
        )
        yield from in_slices(problem.sentences, batch, self._updates(problem, state, p))

    def _updates(self, problem: Problem, state: State, p: Pass) -> Callable[[int, int], float]:
        """Return a function that runs the updates `first` to `last` of a pass and returns their total loss."""
        r = rows_of(state["weights"], state["touched"], p.mask)
        strength = self._strength / p.sequences
        plan = DescentPlan(int(self.rule), self._descent.batch, strength, problem.layout)
        search = line_search.search(problem, p.sufficient, self.dtype)
        extras = Extras(search, self._swept(p.mask, problem.width), self._mean(state, p))
        data = PassData(problem.data, p.order, p.rates)

        def run(first: int, last: int) -> float:
            return run_updates(data, first, last, plan, r, state["penalty"], p.buffers, extras)

        return run

    def _mean(self, state: State, p: Pass) -> Mean:
        """Return the running sum of the weights; disabled unless a subclass overrides this."""
        del state, p
        return Mean(False, np.empty(0, self.dtype), np.zeros(2), 0)

    def _swept(self, mask: NDArray[np.uint8], width: int) -> Swept:
        if self.rule != Penalty.NAIVE or len(mask) == 0:
            nothing = Pairs(readonly(np.zeros(1), np.int64), readonly(np.empty(0), np.int32))
            return Swept(False, nothing, np.empty(0, self.dtype))
        if self._swept_of is None or self._swept_of[0] is not mask:
            pairs = pairs_of_marks(np.unpackbits(mask, bitorder="little").reshape(-1, width))
            self._swept_of = (
                mask,
                Swept(len(pairs.labels) > 0, pairs, np.empty(len(pairs.labels), self.dtype)),
            )
        return self._swept_of[1]

    def _calibrate(
        self, problem: Problem, state: State, seed: int, mask: NDArray[np.uint8]
    ) -> Iterator[Report]:
        # Most rows do not occur in the sample. Without them, a trial takes a third of the time.
        sample, rows = problem.sample(CALIBRATION_SEQUENCES).occurring()
        mask = readonly(mask.reshape(problem.rows, -1)[rows].reshape(-1), np.uint8)
        weights = state["weights"].reshape(problem.rows, -1)
        start = weights[rows].reshape(-1) if weights.any() else None
        best = (np.inf, 0.0)

        def objective_after(eta0: float) -> float:
            return self._objective_after(sample, eta0, seed, problem.sentences, mask, start)

        for trial, (eta0, objective) in enumerate(calibrate(objective_after), start=1):
            best = min(best, (objective, eta0))
            yield Report("calibrate", 0, 0.0, message=f"trial {trial}: eta0 {eta0:g} gives {objective:.6g}")
        if not isfinite(best[0]):
            raise Diverged(
                "No learning rate kept the loss finite on a sample of the corpus. Set a small `schedule.eta0`."
            )
        state["eta0"][0] = best[1]
        yield Report("calibrate", 0, 0.0, message=f"eta0 {best[1]:g}")

    def _objective_after(
        self, sample: Problem, eta0: float, seed: int, sequences: int, mask: NDArray[np.uint8], start: Any
    ) -> float:
        state = self.start(sample)
        state["eta0"][0] = eta0
        if start is not None:
            state["weights"][:] = start
        whole_run = np.linspace(0, self._descent.passes * sequences, sample.sentences)
        for _ in self._one_pass(sample, state, seed, whole_run, sequences, mask):
            pass
        weights = self.weights(sample, state)
        _, norm1, norm2 = census(weights.values)
        penalty = self.l1 * norm1 + 0.5 * self.l2 * norm2
        return sum(weights.loss(sample)) + penalty * sample.sentences / sequences

    def weights(self, problem: Problem, state: State) -> Weights:
        out = v.zeros(state["weights"].shape[0], self.dtype)
        r = rows_of(state["weights"], state["touched"])
        settle(r, reading_of(int(self.rule), float(state["penalty"][0])), problem.layout, out)
        return Weights(problem, out)
