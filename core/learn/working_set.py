"""The parameters that OWL-QN works on, and its memory over just these.

Near the optimum under L1 nearly all weights are zero and stay there: a weight leaves zero only when the gradient of the
loss exceeds l1. Such parameters are left out ("shrinking", known from solvers of support vector machines), and
with them the attributes that have no others: on CoNLL-2000 nine parameters in ten. F is exact all the same, since what
is left out is zero. From time to time, and always before training may end, the whole gradient is evaluated, and the set
is chosen anew if a parameter outside wants to move. The units of parameters are measured then too. Without L1 the set
is always the whole.
"""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from core.learn.batch import Batch
from core.learn.quasi_newton import Memory, Objective, Point
from core.learn.trainer import State
from core.learn.vectors import Vector

#: A parameter at zero stays in the set while its gradient exceeds this part of l1: it may soon be needed.
MARGIN = 0.75
#: The set is made smaller when no more than this part of it is needed.
SHRINK = 0.5


def whole(parameters: int, memory: int) -> State:
    """The arrays of a state that works on every parameter."""
    return {
        "kept": np.ones(parameters, np.bool_),
        # Steps and changes of the kept parameters only, packed to the front.
        "steps": np.zeros(memory * parameters),
        "changes": np.zeros(memory * parameters),
        "stored": np.zeros(1, np.int64),
        "units": np.ones(parameters),
    }


class WorkingSet:
    """The batch, the objective and the memory over the parameters that a state keeps."""

    def __init__(self, full: Batch, l1: float, l2: float, state: State) -> None:
        self._full, self._state = full, state
        self._at = np.flatnonzero(state["kept"])
        self.all = len(self._at) == full.parameters
        self.objective = Objective(full if self.all else full.restricted(state["kept"]), l1, l2)
        # A problem may have no parameters: no feature, or none left.
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
        """The state's point, at which F was found to be `objective`."""
        return Point(self._state["w"][self._at], objective, self._state["gradient"][self._at])

    def keep(self, point: Point) -> None:
        """Write a point into the state."""
        self._state["w"][self._at], self._state["gradient"][self._at] = point.w, point.gradient

    def measure(self) -> Generator[None, None, float]:
        """Evaluate F over all parameters at the state's point: the whole gradient, and new units. Returns F."""
        state, full = self._state, Objective(self._full, self.objective.l1, self.objective.l2)
        point = yield from full.at(state["w"])
        state["gradient"][:] = point.gradient
        state["units"][:] = yield from full.units()
        self.memory.units = state["units"][self._at]
        return point.objective

    def chosen(self) -> "WorkingSet":
        """The set to go on with: a new one when a parameter outside wants to move, or when few inside are needed.

        The state's gradient must be the whole one: see `measure`.
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
    """Turn `count` rows over the parameters `old`, packed to the front, into rows over `new`; zero where not in `old`.

    Rows that get longer are moved from the last on, rows that get shorter from the first: none is written over.
    """
    dense = np.zeros(max(int(old[-1]), int(new[-1])) + 1)
    for i in reversed(range(count)) if len(new) > len(old) else range(count):
        dense[old] = rows[i * len(old) : (i + 1) * len(old)]
        rows[i * len(new) : (i + 1) * len(new)] = dense[new]
        dense[old] = 0.0
