"""Names of the arrays a corpus is made of."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ids = NDArray[np.int32]
Places = NDArray[np.int64]


def numbered(codes: NDArray[np.integer]) -> tuple[NDArray[np.integer], Ids]:
    """(the distinct codes in order of first sight, the place of each code in these)."""
    found, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(order.size, np.int32)
    rank[order] = np.arange(order.size)
    return found[order], rank[inverse]
