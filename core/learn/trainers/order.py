"""The order of sequences in a pass. We use our own shuffle, so that a seed means the same order in every release."""

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.hashing import GOLDEN, scaled_below, splitmix64
from tagsmith.core.base.jit import kernel, readonly


@kernel
def _shuffle(order: NDArray[np.int64], state: np.uint64) -> None:
    """Fisher-Yates shuffle with splitmix64 as the random generator."""
    for i in range(order.shape[0] - 1, 0, -1):
        state += GOLDEN
        j = scaled_below(splitmix64(state), i + 1)
        order[i], order[j] = order[j], order[i]


def pass_order(sequences: int, seed: int, pass_number: int) -> NDArray[np.int64]:
    """Return the permutation of a pass. It depends only on seed and pass number, so a resumed run uses the same one."""
    order = np.arange(sequences, dtype=np.int64)
    mixed = (seed * 0xD1342543DE82EF95 + pass_number * 0xAF251AF3B0F025B5 + 1) & 0xFFFFFFFFFFFFFFFF
    _shuffle(order, np.uint64(mixed))
    return readonly(order, np.int64)
