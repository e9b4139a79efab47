"""The working set of OWL-QN: the parameters it optimises, with its memory over these only.

Near the optimum under L1, most weights are zero and stay zero: a weight leaves zero only when the gradient of the loss
exceeds l1. Such parameters are excluded ("shrinking", as in solvers for support vector machines), together with
attributes that have no other parameters. On CoNLL-2000 this excludes nine of ten parameters. F is still exact, because
the excluded weights are zero. Periodically, and always before training can end, the whole gradient is evaluated. The
set is chosen again if an excluded parameter needs to move. The units of the parameters are computed at the same time.
Without L1, the set contains all parameters.
"""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.learn.trainers.base import State
from tagsmith.core.learn.trainers.batch.gradient import Batch
from tagsmith.core.learn.trainers.batch.quasi_newton import Memory, Objective, Point
from tagsmith.core.learn.trainers.batch.vectors import Vector

#: A parameter at zero stays in the set while its gradient exceeds this fraction of l1, because it may be needed soon.
MARGIN = 0.75
#: The set shrinks when at most this fraction of it is needed.
SHRINK = 0.5


def whole(parameters: int, memory: int) -> State:
    """Create the arrays of a state whose working set is every parameter."""
    return {
        "kept": np.ones(parameters, np.bool_),
        # Steps and changes of the kept parameters only, packed to the front.
        "steps": np.zeros(memory * parameters),
        "changes": np.zeros(memory * parameters),
        "stored": np.zeros(1, np.int64),
        "units": np.ones(parameters),
    }


class WorkingSet:
    """The batch, the objective and the memory over the parameters in the working set of a state."""

    def __init__(self, full: Batch, l1: float, l2: float, state: State) -> None:
        self._full, self._state = full, state
        self._at = np.flatnonzero(state["kept"])
        self.all = len(self._at) == full.parameters
        self.objective = Objective(full if self.all else full.restricted(state["kept"]), l1, l2)
        # A problem may have no parameters, for example if it has no features.
        self._remembered = len(state["steps"]) // max(full.parameters, 1)
        self.memory = Memory(
            self._rows("steps"),
            self._rows("changes"),
            state["stored"],
            state["units"][self._at],
            self.objective.vectors,
        )

    def _rows(self, name: str) -> Vector:
        size = len(self._at)
        return self._state[name][: self._remembered * size].reshape(self._remembered, size)

    def point(self, objective: float) -> Point:
        """Return the state's point, where F is `objective`."""
        return Point(self._state["w"][self._at], objective, self._state["gradient"][self._at])

    def keep(self, point: Point) -> None:
        """Write a point into the state."""
        self._state["w"][self._at], self._state["gradient"][self._at] = point.w, point.gradient

    def measure(self) -> Generator[None, None, float]:
        """Evaluate F over all parameters at the state's point, with the whole gradient and new units. Return F."""
        state, full = self._state, Objective(self._full, self.objective.l1, self.objective.l2)
        point = yield from full.at(state["w"])
        state["gradient"][:] = point.gradient
        state["units"][:] = yield from full.units()
        self.memory.units = state["units"][self._at]
        return point.objective

    def chosen(self) -> "WorkingSet":
        """Return the next working set. It changes if an excluded parameter needs to move or few are needed.

        The state must hold the whole gradient: see `measure`.
        """
        state, l1 = self._state, self.objective.l1
        pull = np.abs(state["gradient"])
        needed = (state["w"] != 0.0) | (pull >= MARGIN * l1)
        missing = bool(np.any((pull > l1) & ~state["kept"]))
        count = np.count_nonzero(needed)
        if count == 0 or (not missing and count > SHRINK * len(self._at)):
            return self
        for name in ("steps", "changes"):
            _repack(state[name], self._remembered, self._at, np.flatnonzero(needed))
        state["kept"][:] = needed
        return WorkingSet(self._full, l1, self.objective.l2, state)


def _repack(rows: Vector, count: int, old: NDArray[np.int64], new: NDArray[np.int64]) -> None:
    """Repack `count` rows from the parameters `old` to the parameters `new`; zero where not in `old`.

    Rows are packed to the front. Rows that grow are moved last to first, and rows that shrink first to last, so that
    none is overwritten.
    """
    dense = np.zeros(max(int(old[-1]), int(new[-1])) + 1)
    for i in reversed(range(count)) if len(new) > len(old) else range(count):
        dense[old] = rows[i * len(old) : (i + 1) * len(old)]
        rows[i * len(new) : (i + 1) * len(new)] = dense[new]
        dense[old] = 0.0
