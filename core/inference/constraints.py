"""Keeping decoding to the sequences that are allowed: labels of single tokens, pairs of labels, first and last labels.

What is not allowed gets a score so low that no path through it can win or weigh anything. Every decoder and every sum
over paths then keeps to the constraints without knowing of them, and probabilities are those given the constraints.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import vector as v
from core.inference.chain import Floats
from core.jit import kernel

#: The score of what is not allowed. Sums of many still are numbers of float32, and no score of a model comes near.
NEVER = -1e30
#: Paths that score less go through something that is not allowed.
IMPOSSIBLE = NEVER / 2


class Allowed(NamedTuple):
    """What sequences must keep to. `first`, `last` and `pairs` are 0 or `NEVER`."""

    first: Floats  # (width,) labels of the first token
    last: Floats  # (width,) labels of the last
    pairs: Floats  # (Y * width,) label i followed by label j, at i * width + j
    fixed: NDArray[np.int32]  # (tokens,) the label a token must have, or -1; or empty when none must


def anything(labels: int) -> Allowed:
    """No constraints."""
    width = v.padded(labels)
    first, last, pairs = (v.zeros(size, np.float32) for size in (width, width, labels * width))
    return Allowed(first, last, pairs, np.empty(0, np.int32))


@kernel
def restrict(scores: Floats, n: int, a: Allowed, begin: int, labels: int, width: int) -> None:
    """Lower the scores of labels that the tokens of a chain cannot have; its first token is `begin` in `fixed`."""
    for y in range(labels):
        scores[y] += a.first[y]
        scores[(n - 1) * width + y] += a.last[y]
    if a.fixed.shape[0] > 0:
        for t in range(n):
            fixed = a.fixed[begin + t]
            if fixed >= 0:
                for y in range(labels):
                    if y != fixed:
                        scores[t * width + y] += np.float32(NEVER)


@kernel
def restrict_edges(matrices: Floats, n: int, a: Allowed) -> None:
    """Lower the scores of pairs that are not allowed, in the transitions into every token but the first."""
    size = a.pairs.shape[0]
    for t in range(1, n):
        for k in range(0, size, v.LANES):
            v.store(matrices, t * size + k, v.add(v.load(matrices, t * size + k), v.load(a.pairs, k)))
