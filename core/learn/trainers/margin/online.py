"""Online learners whose step size depends on the sample: perceptron, PA, MIRA, DCA, CW, AROW.

`margin` has the updates. This module has the trainer that all kinds share.
"""

from collections.abc import Iterator
from math import isfinite
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tagsmith.core.base import simd as v
from tagsmith.core.inference import chain as ch
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import Diverged, Report, State, Trainer, TrainerSpec, in_slices
from tagsmith.core.learn.trainers.margin.margin import (
    MarginPlan,
    Rule,
    direction,
    labellings,
    run_margin,
    uses_variance,
)
from tagsmith.core.learn.trainers.order import pass_order
from tagsmith.core.learn.trainers.sizes import Sizes
from tagsmith.core.learn.weights.pairs import mask_of
from tagsmith.core.learn.weights.rows import rows, rows_of
from tagsmith.core.learn.weights.scoring import Weights


class OnlineSpec(TrainerSpec):
    """`batch` is the number of sequences per update."""

    example: ClassVar[dict[str, Any]] = {"kind": "averaged-perceptron", "passes": 1}
    #: Whether the state holds averages or variances in addition to the weights.
    second_matrix: ClassVar[bool] = True

    passes: Annotated[int, Field(ge=1, le=100_000)] = 10
    batch: Annotated[int, Field(ge=1, le=100_000)] = 1

    @property
    def calibrated(self) -> bool:
        return False

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        del threads
        # Weights, and averages or variances; per row, the slot of its sum in the current update.
        matrices = (2 if self.second_matrix else 1) * sizes.matrix
        return matrices + 4 * sizes.rows + sizes.chains(self.batch)


class Online(Trainer):
    """A learner defined by its rule. Subclasses create the rule for the labels of a problem."""

    dtype: type = np.float32

    def __init__(self, spec: OnlineSpec) -> None:
        self._online = spec

    def rule(self, problem: Problem) -> Rule:
        """Return the update rule."""
        raise NotImplementedError

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        rule = self.rule(problem)
        r = rows(problem.rows, problem.width, self.dtype)
        if init is not None:
            r.weights[:] = init.values
        state: State = {
            "weights": r.weights,
            "updates": np.zeros(1, np.int64),
            "passes": np.zeros(1, np.int64),
        }
        if uses_variance(rule.margin):
            state["variance"] = v.zeros(len(r.weights), self.dtype)
            state["variance"][:] = 1
        elif rule.averaged:
            state["average"] = v.zeros(len(r.weights), self.dtype)
        return state

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        batch, count = self._online.batch, problem.sentences
        layout, tokens = problem.layout, problem.longest
        plan = MarginPlan(
            self.rule(problem),
            batch,
            layout,
            ch.edges(layout.labels, self.dtype),
            problem.chain(tokens, self.dtype),
            labellings(tokens),
            direction(problem, batch, self.dtype),
        )
        r = rows_of(state["weights"], np.empty(0, self.dtype), mask_of(problem))
        second = state.get("average", state.get("variance", np.empty(0, self.dtype)))
        while True:
            number = int(state["passes"][0]) + 1
            order = pass_order(count, seed, number)

            def run(first: int, last: int, order: NDArray[np.int64] = order) -> float:
                return run_margin(problem.data, order, first, last, r, second, state["updates"], plan)

            loss = 0.0
            for fraction, part in in_slices(count, batch, run):
                loss += part
                if not isfinite(loss):
                    raise Diverged(f"The loss is no longer a finite number in pass {number}")
                yield Report("train", number - 1, fraction)
            state["passes"][0] = number
            yield Report("train", number, 0.0, pass_done=True, loss=loss)

    def weights(self, problem: Problem, state: State) -> Weights:
        values = v.zeros(len(state["weights"]), self.dtype)
        if "average" in state and state["updates"][0]:
            # In place: the memory estimate allows for only one more matrix.
            np.divide(state["average"], self.dtype(-state["updates"][0]), out=values)
        values += state["weights"]
        return Weights(problem, values)
