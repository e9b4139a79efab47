"""Stochastic gradient descent: the trainer that every SGD kind shares. What an update does is told in `updates`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Chain, Edges
from core.jit import readonly
from core.learn import line_search
from core.learn.evaluation import Weights
from core.learn.order import pass_order
from core.learn.pairs import Pairs, mask_of, pairs_of_marks
from core.learn.problem import Problem
from core.learn.rows import EVERYTHING, Rows, census, rows, settle
from core.learn.schedule import CALIBRATION_SEQUENCES, Schedule, calibrate
from core.learn.trainer import Diverged, Report, State, Trainer, TrainerSpec, in_slices
from core.learn.updates import CUMULATIVE, DECAY, NAIVE, Mean, Swept, Task, reading_of, run_updates


class DescentSpec(TrainerSpec):
    """`schedule` says how the rate falls; `batch` is the sequences of one update."""

    schedule: Schedule = Schedule()
    batch: Annotated[int, Field(ge=1, le=100_000)] = 1


@dataclass(frozen=True, slots=True)
class Pass:
    """What the updates of one pass work with, whatever their rule."""

    sequences: int  # N of the whole run; a trial goes over fewer
    updates: NDArray[np.float64]  # the numbers of the updates in a whole run
    mask: NDArray[np.uint8]
    order: NDArray[np.int64]
    rates: NDArray[np.float64]
    edges: Edges
    chain: Chain
    sufficient: float | None


class Descent(Trainer):
    """SGD by one of the rules. Subclasses say which, how strong, and whether rates are searched for."""

    dtype: type = np.float32
    mode = CUMULATIVE
    #: What the line search asks of a trial (see `line_search`); None: rates are as scheduled.
    sufficient: float | None = None

    def __init__(self, spec: DescentSpec) -> None:
        self._descent = spec
        self._swept_of: tuple[NDArray[np.uint8], Swept] | None = None

    @property
    def _strength(self) -> float:
        return self.l2 if self.mode == DECAY else self.l1

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        r = rows(problem.rows, problem.width, self.dtype)
        if init is not None:
            r.weights[:] = init.values
        eta0 = self._descent.schedule.eta0
        return {
            "weights": r.weights,
            "touched": r.touched,
            "penalty": np.array([1.0 if self.mode == DECAY else 0.0]),
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
                        'Give a smaller schedule.eta0, or leave it at "auto"'
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
        """Yield (fraction done, loss of the slice). `updates` are numbers of updates in a run over N `sequences`."""
        labels, batch = len(problem.labels), self._descent.batch
        p = Pass(
            sequences=sequences,
            updates=updates,
            mask=mask,
            order=pass_order(problem.sentences, seed, int(state["passes"][0]) + 1),
            rates=self._descent.schedule.rates(float(state["eta0"][0]), updates, sequences, self.l2),
            edges=ch.edges(labels, self.dtype),
            chain=ch.chain(problem.room(batch), labels, self.dtype, rich=problem.rich),
            sufficient=sufficient,
        )
        yield from in_slices(problem.sentences, batch, self._updates(problem, state, p))

    def _updates(self, problem: Problem, state: State, p: Pass) -> Callable[[int, int], float]:
        """What makes the updates `first` to `last` of a pass and returns the loss met."""
        r = Rows(state["weights"], state["touched"], p.mask)
        task = Task(
            self.mode,
            self._descent.batch,
            self._strength / p.sequences,
            problem.attributes,
            problem.blocks,
            len(problem.labels),
            problem.width,
            problem.edges,
        )
        search = line_search.search(problem, p.sufficient, self.dtype)
        swept = self._swept(p.mask, problem.width)
        mean = self._mean(state, p)

        def run(first: int, last: int) -> float:
            return run_updates(
                problem.data, p.order, p.rates, first, last, task, r, state["penalty"], p.edges, p.chain, search,
                swept, mean,
            )  # fmt: skip

        return run

    def _mean(self, state: State, p: Pass) -> Mean:
        """What is summed up on the way: nothing, unless a subclass says so."""
        del state, p
        return Mean(np.empty(0, self.dtype), np.zeros(2), 0)

    def _swept(self, mask: NDArray[np.uint8], width: int) -> Swept:
        if self.mode != NAIVE or len(mask) == 0:
            nothing = Pairs(readonly(np.zeros(1), np.int64), readonly(np.empty(0), np.int32))
            return Swept(nothing, np.empty(0, self.dtype))
        if self._swept_of is None or self._swept_of[0] is not mask:
            pairs = pairs_of_marks(np.unpackbits(mask, bitorder="little").reshape(-1, width))
            self._swept_of = (mask, Swept(pairs, np.empty(len(pairs.labels), self.dtype)))
        return self._swept_of[1]

    def _calibrate(
        self, problem: Problem, state: State, seed: int, mask: NDArray[np.uint8]
    ) -> Iterator[Report]:
        # Most rows do not occur in the sample: without them a trial takes a third of the time.
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
            raise Diverged("No learning rate kept the loss finite on a sample of the corpus")
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
        r = Rows(state["weights"], state["touched"], EVERYTHING)
        settle(r, reading_of(self.mode, float(state["penalty"][0])), len(problem.labels), problem.width, out)
        return Weights(problem, out)
