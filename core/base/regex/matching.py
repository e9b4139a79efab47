"""The matcher: a kernel that runs a program over the characters of a text."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import inner, kernel
from tagsmith.core.base.regex.program import END, FOUND, START, TAKE, Step, Test

Numbers = NDArray[np.int64]

#: Below this many characters, sorting is faster than counting: counts have an entry for each possible code point.
_SORTED = 10_000


class Program(NamedTuple):
    """The steps of a program as arrays. The targets of step i, best first, are at bounds[i]:bounds[i + 1]."""

    operations: Numbers
    tests: Numbers  # the number of the test of each step
    targets: Numbers
    bounds: Numbers

    @staticmethod
    def of(steps: Sequence[Step]) -> tuple["Program", tuple[Test, ...]]:
        """Return the program and its distinct tests."""
        numbers: dict[Test, int] = {}
        for _, test, _ in steps:
            if test is not None:
                numbers.setdefault(test, len(numbers))
        operations = [operation for operation, _, _ in steps]
        tests = [-1 if test is None else numbers[test] for _, test, _ in steps]
        targets = [target for _, _, each in steps for target in each]
        bounds = np.cumsum([0, *(len(each) for _, _, each in steps)])
        made = [np.array(each, np.int64) for each in (operations, tests, targets, bounds)]
        return Program(*made), tuple(numbers)


def classes_of(points: NDArray[Any]) -> tuple[NDArray[Any], Numbers]:
    """Return the distinct characters of a text, and the number of each of its characters among these."""
    if points.size < _SORTED:
        distinct, classes = np.unique(points, return_inverse=True)
        return distinct, classes
    distinct = np.flatnonzero(np.bincount(points))
    class_of = np.zeros(int(distinct[-1]) + 1, np.int64)
    class_of[distinct] = np.arange(distinct.size)
    return distinct, class_of[points]


def passes_of(distinct: NDArray[Any], tests: Sequence[Test]) -> NDArray[np.bool_]:
    """Return which tests each character passes."""
    passes = np.zeros((max(distinct.size, 1), max(len(tests), 1)), np.bool_)
    for number, point in enumerate(distinct.tolist()):
        passes[number, : len(tests)] = [test(chr(point)) for test in tests]
    return passes


class SearchScratch(NamedTuple):
    """Buffers for each step and position of the longest text, and the steps that may still be taken."""

    seen: NDArray[np.bool_]  # (steps * positions,) pairs of a step and a position that were tried
    stack: Numbers  # twice as long
    left: Numbers  # (1,) negative when the limit is exceeded

    @staticmethod
    def of(program: Program, longest: int, left: Numbers) -> "SearchScratch":
        """Return buffers for texts of up to `longest` characters."""
        states = program.operations.size * (longest + 1)
        return SearchScratch(np.empty(states, np.bool_), np.empty(2 * states + 1, np.int64), left)


@kernel
def first_matches(
    program: Program, classes: Numbers, ends: Numbers, passes: NDArray[np.bool_], scratch: SearchScratch,
    starts: Numbers, stops: Numbers,
) -> None:  # fmt: skip
    """Write the start and stop of the leftmost match in each text, or -1. Text i ends at ends[i] of the `classes`.

    Stops when no steps are left.
    """
    begin = 0
    for i in range(ends.shape[0]):
        size = ends[i] - begin
        scratch.seen[: program.operations.shape[0] * (size + 1)] = False
        starts[i], stops[i] = _first_match(program, classes, begin, size, passes, scratch)
        if scratch.left[0] < 0:
            return
        begin = ends[i]


@inner
def _first_match(
    program: Program,
    classes: Numbers,
    begin: int,
    size: int,
    passes: NDArray[np.bool_],
    scratch: SearchScratch,
) -> tuple[int, int]:
    """Return the leftmost match, or (-1, -1). A step and position that failed once are never tried again."""
    seen, stack = scratch.seen, scratch.stack
    for start in range(size + 1):
        stack[0], filled = start, 1  # step * (size + 1) + position
        while filled > 0:
            filled -= 1
            state = stack[filled]
            if seen[state]:
                continue
            seen[state] = True
            scratch.left[0] -= 1
            step, at = state // (size + 1), state % (size + 1)
            operation = program.operations[step]
            if operation == FOUND:
                return start, at
            if operation == TAKE:
                if at == size or not passes[classes[begin + at], program.tests[step]]:
                    continue
                at += 1
            elif (operation == START and at > 0) or (operation == END and at < size):
                continue
            for i in range(program.bounds[step + 1] - 1, program.bounds[step] - 1, -1):
                stack[filled] = program.targets[i] * (size + 1) + at
                filled += 1
    return -1, -1
