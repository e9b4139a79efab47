"""Learning rates: how eta falls as updates go by, and how eta0 is found when nobody gives it."""

from collections.abc import Callable, Iterator
from math import inf, isfinite
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from core.specs_base import Spec

#: Sequences that calibration looks at: enough to rank rates, few enough to cost less than a pass.
CALIBRATION_SEQUENCES = 1000
#: Where the search for eta0 starts, and how many rates it may try.
FIRST_ETA0 = 0.5
MAX_TRIALS = 12


class Schedule(Spec):
    """`eta_k` for update k of N a pass. `eta0: "auto"` finds the start by trial on a sample."""

    kind: Literal["exponential", "inverse", "bottou"] = "exponential"
    eta0: Annotated[float, Field(gt=0, le=1e6)] | Literal["auto"] = "auto"
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.85

    def rates(
        self, eta0: float, k: NDArray[np.float64], sequences: int, l2: float = 0.0
    ) -> NDArray[np.float64]:
        """The rates of the updates numbered `k`, from 0, with `sequences` updates a pass."""
        if self.kind == "exponential":
            return np.asarray(eta0 * self.alpha ** (k / sequences))
        if self.kind == "inverse":
            return np.asarray(eta0 / (1.0 + k / sequences))
        return np.asarray(eta0 / (1.0 + l2 / sequences * eta0 * k))


def calibrate(objective_after: Callable[[float], float]) -> Iterator[tuple[float, float]]:
    """Yield (eta0, objective) for rates doubled, then halved, from FIRST_ETA0 while the objective falls.

    `objective_after(eta0)` runs one pass over the sample, with the rates of a whole run squeezed into it, and gives the
    objective it reached: judged at its starting rate alone, a run that will cool down always looks too hot. The best
    pair yielded is the answer; yielding lets the caller report and stop in between.

    What a rate that is too hot ends with is chance: half of one such may look worse than itself. So on the way down one
    rate that is no better is passed over.
    """
    best = _trial(objective_after, FIRST_ETA0)
    yield FIRST_ETA0, best
    for factor, patience in ((2.0, 1), (0.5, 2)):
        improved, worse = False, 0
        for number in range(1, MAX_TRIALS // 2 + 1):
            eta0 = FIRST_ETA0 * factor**number
            objective = _trial(objective_after, eta0)
            yield eta0, objective
            if objective < best:
                best, improved, worse = objective, True, 0
            elif isfinite(best) or factor > 1:
                worse += 1
            if worse == patience:
                break
        if improved:
            return


def _trial(objective_after: Callable[[float], float], eta0: float) -> float:
    objective = objective_after(eta0)
    return objective if isfinite(objective) else inf
