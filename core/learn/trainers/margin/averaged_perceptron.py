"""`averaged-perceptron`: the structured perceptron with averaged weights (Collins 2002).

Uses the updates of `perceptron`. The model is the mean of the weights after each update. The mean varies less
between passes and depends less on when training stops.
"""

from typing import Literal

from tagsmith.core.learn.trainers.margin.online import OnlineSpec
from tagsmith.core.learn.trainers.margin.perceptron import Perceptron


class AveragedPerceptronSpec(OnlineSpec):
    """Only the number of passes can be tuned."""

    kind: Literal["averaged-perceptron"] = "averaged-perceptron"

    def make(self, threads: int) -> "AveragedPerceptron":
        del threads
        return AveragedPerceptron(self)


class AveragedPerceptron(Perceptron):
    """The perceptron, averaged."""

    averaged = True
