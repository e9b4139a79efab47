"""`perceptron` and `averaged-perceptron` (Collins 2002).

Decode; where the labels are wrong, w += phi(gold) - phi(decoded). The averaged one serves the mean of the weights after
each update, which forgets less and does not depend on where training stops.
"""

from typing import Literal

import numpy as np

from core.learn.margin import PERCEPTRON, Rule
from core.learn.online import Online, OnlineSpec
from core.learn.problem import Problem


class PerceptronSpec(OnlineSpec):
    """Nothing to tune but the passes."""

    kind: Literal["perceptron"] = "perceptron"


class AveragedPerceptronSpec(OnlineSpec):
    """Nothing to tune but the passes."""

    kind: Literal["averaged-perceptron"] = "averaged-perceptron"


class Perceptron(Online):
    """See the module."""

    def __init__(self, spec: PerceptronSpec | AveragedPerceptronSpec) -> None:
        super().__init__(spec)
        self._averaged = isinstance(spec, AveragedPerceptronSpec)

    def rule(self, problem: Problem) -> Rule:
        del problem
        return Rule(PERCEPTRON, 0.0, self._averaged, np.empty(0, self.dtype))
