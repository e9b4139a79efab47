"""Random numbers that are the same in every release of Python."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1


class Stream:
    """splitmix64. The standard library promises the same `random()` for a seed, but not the same `choice`."""

    def __init__(self, *key: int) -> None:
        """Streams of different keys are independent; every part of the key counts."""
        self._state = 0
        for part in key:
            self._state = (self._next() ^ part) & _MASK

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        return (self._next() * bound) >> 64

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """True with that probability."""
        return self._next() < probability * (_MASK + 1)

    def pick(self, choices: Sequence[T]) -> T:
        """One of `choices`, each as likely."""
        return choices[self.below(len(choices))]

    def favour(self, choices: Sequence[T]) -> T:
        """One of `choices`, the first ones far more often: words are like that."""
        return choices[min(self.below(len(choices)), self.below(len(choices)), self.below(len(choices)))]
