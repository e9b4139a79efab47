"""Tests of single characters: one character, any character, sets."""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache

from tagsmith.core.base.regex.program import Test


def anything(c: str) -> bool:  # noqa: ARG001
    return True


@cache
def complement(test: Test) -> Test:
    return lambda c: not test(c)


def character(wanted: str) -> Test:
    return wanted.__eq__


@dataclass
class Members:
    """The members of a set. A test takes time logarithmic in the number of ranges."""

    ranges: list[tuple[str, str]] = field(default_factory=list)
    classes: set[Test] = field(default_factory=set)

    @property
    def empty(self) -> bool:
        return not self.ranges and not self.classes

    def test(self, *, negated: bool) -> Test:
        lows: list[str] = []
        highs: list[str] = []
        for low, high in sorted(self.ranges):
            if highs and low <= highs[-1]:
                highs[-1] = max(highs[-1], high)
            else:
                lows.append(low)
                highs.append(high)
        classes = tuple(self.classes)

        def contains(c: str) -> bool:
            i = bisect_right(lows, c) - 1
            return (i >= 0 and c <= highs[i]) or any(test(c) for test in classes)

        return (lambda c: not contains(c)) if negated else contains
