"""Running a trainer for so many passes, in one go or broken off and resumed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import State, Trainer
from tagsmith.core.learn.weights.scoring import Weights


def assert_equal_but_for_rounding(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare weights that a learner found in float32, as models have them, with those of its twin in float64.

    The learner is within 5e-7 of its twin after some dozens of updates; a wrong step is wrong by more than 1e-3.
    """
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


def all_rows(weights: Weights) -> NDArray[Any]:
    """(rows, labels): attributes, transitions, blocks of edge attributes."""
    return weights.values.reshape(-1, weights.problem.width)[:, : len(weights.problem.labels)]


def run_to(problem: Problem, state: State, passes: int, trainer: Trainer, seed: int = 3) -> State:
    """Train until the state is that after `passes` passes, counting those it has had."""
    for report in trainer.passes(problem, state, seed):
        if report.pass_done and report.pass_number == passes:
            return state
    raise AssertionError("the trainer stopped early")


def trained(
    problem: Problem, passes: int, trainer: Trainer, seed: int = 3, init: Weights | None = None
) -> Weights:
    """The weights after `passes` passes from zero, or from `init`."""
    return trainer.weights(problem, run_to(problem, trainer.start(problem, init), passes, trainer, seed))


def resumed(problem: Problem, stop: int, passes: int, trainer: Trainer, seed: int = 3) -> State:
    """The state after `passes` passes of a run broken off after `stop`: it goes on from a copy of what there was."""
    before = run_to(problem, trainer.start(problem), stop, trainer, seed)
    copy = {name: array.copy() for name, array in before.items()}
    return run_to(problem, copy, passes, trainer, seed)
