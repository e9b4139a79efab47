"""Pseudo-random choices that are the same in every release of Python."""

from collections.abc import Sequence
from typing import TypeVar

from tagsmith.core.base.hashing import SplitMix64

T = TypeVar("T")


class Stream:
    """A splitmix64 generator. The `choice` of the standard library may change with releases of Python."""

    def __init__(self, *key: int) -> None:
        """Streams with different keys are independent."""
        source = SplitMix64()
        for part in key:
            source = SplitMix64(source.next() ^ part)
        self._next = source.next

    def below(self, bound: int) -> int:
        """Return an integer from 0 to `bound` - 1."""
        return (self._next() * bound) >> 64

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, inclusive."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self._next() < probability * (1 << 64)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of `choices`, all with the same probability."""
        return choices[self.below(len(choices))]

    def favour(self, choices: Sequence[T]) -> T:
        """Return one of `choices`, the first ones far more often, as in the distribution of words."""
        return choices[min(self.below(len(choices)), self.below(len(choices)), self.below(len(choices)))]
