"""Online learners that take their step from the sample itself: perceptron, PA, MIRA, DCA, CW, AROW.

What an update does is told in `margin`; this is the trainer around it, one for all of them.
"""

from collections.abc import Iterator
from math import isfinite
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from core.inference import chain as ch
from core.inference import vector as v
from core.learn.evaluation import Weights
from core.learn.margin import CONFIDENCE, REGULARIZED, Rule, Scene, direction, run_margin
from core.learn.order import pass_order
from core.learn.pairs import mask_of
from core.learn.problem import Problem
from core.learn.rows import Rows, rows
from core.learn.trainer import Diverged, Report, State, Trainer, TrainerSpec, in_slices


class OnlineSpec(TrainerSpec):
    """`batch` is the sequences of one update."""

    passes: Annotated[int, Field(ge=1, le=100_000)] = 10
    batch: Annotated[int, Field(ge=1, le=100_000)] = 1


class Online(Trainer):
    """A learner given by its rule. Subclasses make the rule for the labels of a problem."""

    dtype: type = np.float32

    def __init__(self, spec: OnlineSpec) -> None:
        self._online = spec

    def rule(self, problem: Problem) -> Rule:
        """What an update does."""
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
        if rule.kind in (CONFIDENCE, REGULARIZED):
            state["variance"] = v.zeros(len(r.weights), self.dtype)
            state["variance"][:] = 1
        elif rule.averaged:
            state["average"] = v.zeros(len(r.weights), self.dtype)
        return state

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        labels, batch, count = len(problem.labels), self._online.batch, problem.sentences
        tokens = problem.longest
        scene = Scene(
            self.rule(problem),
            problem.attributes,
            labels,
            problem.width,
            problem.edges,
            ch.edges(labels, self.dtype),
            ch.chain(tokens, labels, self.dtype, rich=problem.rich),
            np.zeros(tokens, np.int32),
            direction(problem, batch, self.dtype),
        )
        r = Rows(state["weights"], np.empty(0, self.dtype), mask_of(problem))
        second = state.get("average", state.get("variance", np.empty(0, self.dtype)))
        while True:
            number = int(state["passes"][0]) + 1
            order = pass_order(count, seed, number)

            def run(first: int, last: int, order: NDArray[np.int64] = order) -> float:
                return run_margin(problem.data, order, first, last, batch, r, second, state["updates"], scene)

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
            # In place: a third matrix is all the room there is.
            np.divide(state["average"], self.dtype(-state["updates"][0]), out=values)
        values += state["weights"]
        return Weights(problem, values)
