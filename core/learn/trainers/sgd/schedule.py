"""Learning rates: how eta decays over the updates, and how eta0 is found if the spec does not set it."""

from collections.abc import Callable, Iterator
from math import inf, isfinite
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tagsmith.core.base.spec import Spec

#: Sequences in the calibration sample: enough to rank rates, and cheaper than a pass.
CALIBRATION_SEQUENCES = 1000
#: The first eta0 of the search, and the maximum number of trials.
FIRST_ETA0 = 0.5
MAX_TRIALS = 12


class Schedule(Spec):
    """`eta_k` for update k, with N updates per pass. `eta0: "auto"` finds the initial rate by trials on a sample."""

    kind: Literal["exponential", "inverse", "bottou"] = "exponential"
    eta0: Annotated[float, Field(gt=0, le=1e6)] | Literal["auto"] = "auto"
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.85

    def rates(
        self, eta0: float, k: NDArray[np.float64], sequences: int, l2: float = 0.0
    ) -> NDArray[np.float64]:
        """Return the rates of the updates numbered `k`, from 0, with `sequences` updates per pass."""
        if self.kind == "exponential":
            return np.asarray(eta0 * self.alpha ** (k / sequences))
        if self.kind == "inverse":
            return np.asarray(eta0 / (1.0 + k / sequences))
        return np.asarray(eta0 / (1.0 + l2 / sequences * eta0 * k))


def calibrate(objective_after: Callable[[float], float]) -> Iterator[tuple[float, float]]:
    """Yield (eta0, objective) for rates doubled, then halved, from FIRST_ETA0 while the objective falls.

    `objective_after(eta0)` runs one pass over the sample and returns the objective. The pass compresses the rates of a
    whole run. (With the initial rate alone, every rate would seem too high, because rates decay later.) The caller
    takes the best pair. It can report and stop at each yield.

    The result of a rate that is too high is noise, so half that rate may seem worse. Therefore the search downwards
    skips one rate that is no better.
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
