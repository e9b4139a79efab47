"""Integer hash functions, identical on every machine and in every release.

Keys of stored models, sentence orders and synthetic corpora depend on them, so they must never change.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import inlined

#: 2^64 divided by the golden ratio: the step of splitmix64, and an odd constant for multiplicative hashes.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)

_SPLITMIX_1, _SPLITMIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_S1, _S2 = np.uint64(_SPLITMIX_1), np.uint64(_SPLITMIX_2)
_MURMUR_1, _MURMUR_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_MASK = (1 << 64) - 1


def _splitmix64(state: Any) -> Any:
    """Return the output of splitmix64 (Steele, Lea and Flood 2014) for a state; the next state is `state + GOLDEN`."""
    z = (state ^ (state >> np.uint64(30))) * _S1
    z = (z ^ (z >> np.uint64(27))) * _S2
    return z ^ (z >> np.uint64(31))


#: For kernels.
splitmix64 = inlined(_splitmix64)


def splitmix64_of(states: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the outputs of splitmix64 for an array of states."""
    return np.asarray(_splitmix64(states), np.uint64)


class SplitMix64:
    """splitmix64 with Python integers, one output at a time."""

    def __init__(self, state: int = 0) -> None:
        self.state = state & _MASK

    def next(self) -> int:
        """Advance the state and return its output, 0 to 2^64 - 1."""
        self.state = (self.state + int(GOLDEN)) & _MASK
        z = ((self.state ^ (self.state >> 30)) * _SPLITMIX_1) & _MASK
        z = ((z ^ (z >> 27)) * _SPLITMIX_2) & _MASK
        return z ^ (z >> 31)


@inlined
def scaled_below(z: Any, bound: Any) -> Any:
    """Scale a random 64-bit number to 0 .. bound - 1 by its upper half.

    Uniform to within bound / 2^32, and without a division.
    """
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@inlined
def murmur_finish(h: np.uint64) -> np.uint64:
    """Apply the finalizer of MurmurHash3, a bijection of 64-bit numbers in which every bit affects all others."""
    h ^= h >> np.uint64(33)
    h *= _MURMUR_1
    h ^= h >> np.uint64(33)
    h *= _MURMUR_2
    return h ^ (h >> np.uint64(33))


def fnv1a(text: str) -> int:
    """Return the FNV-1a hash of the UTF-8 bytes of a text."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    return value
