"""`perceptron`: the structured perceptron (Collins 2002).

Decode; if any label is wrong, w += phi(gold) - phi(decoded).
"""

from typing import ClassVar, Literal

import numpy as np

from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.margin.margin import Margin, Rule, rule_of
from tagsmith.core.learn.trainers.margin.online import Online, OnlineSpec


class PerceptronSpec(OnlineSpec):
    """Only the number of passes can be tuned."""

    second_matrix: ClassVar[bool] = False

    kind: Literal["perceptron"] = "perceptron"

    def make(self, threads: int) -> "Perceptron":
        del threads
        return Perceptron(self)


class Perceptron(Online):
    """Unit steps. The model has the last weights or, with `averaged`, their mean."""

    averaged = False

    def rule(self, problem: Problem) -> Rule:
        del problem
        return rule_of(Margin.PERCEPTRON, 0.0, np.empty(0, self.dtype), averaged=self.averaged)
