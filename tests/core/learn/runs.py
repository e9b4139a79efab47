"""Running a trainer for so many passes."""

from core.learn.evaluation import Weights
from core.learn.problem import Problem
from core.learn.trainer import Trainer


def trained(
    problem: Problem, passes: int, trainer: Trainer, seed: int = 3, init: Weights | None = None
) -> Weights:
    """The weights after `passes` passes from zero, or from `init`."""
    state = trainer.start(problem, init)
    for report in trainer.passes(problem, state, seed):
        if report.pass_done and report.pass_number == passes:
            return trainer.weights(problem, state)
    raise AssertionError("the trainer stopped early")
