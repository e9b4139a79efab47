"""The order of sequences in a pass: a shuffle of our own, so that a seed means the same order in every release."""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel, readonly

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _shuffle(order: NDArray[np.int64], state: np.uint64) -> None:
    """Fisher-Yates, with splitmix64 as the source."""
    for i in range(order.shape[0] - 1, 0, -1):
        state += _GOLDEN
        z = state
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        # The high bits times the range: uniform to within range / 2^32, without a division.
        j = np.int64(((z >> np.uint64(32)) * np.uint64(i + 1)) >> np.uint64(32))
        order[i], order[j] = order[j], order[i]


def pass_order(sequences: int, seed: int, pass_number: int) -> NDArray[np.int64]:
    """A fresh permutation for each pass, fixed by seed and pass number: a resumed run draws the same one."""
    order = np.arange(sequences, dtype=np.int64)
    mixed = (seed * 0xD1342543DE82EF95 + pass_number * 0xAF251AF3B0F025B5 + 1) & 0xFFFFFFFFFFFFFFFF
    _shuffle(order, np.uint64(mixed))
    return readonly(order, np.int64)
