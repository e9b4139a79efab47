"""Restrict decoding to allowed sequences: labels of single tokens, label pairs, first and last labels.

A label or pair that is not allowed gets a very low score, so no path through it can win or add to a sum. All decoders
and all sums over paths then respect the constraints without special code. Probabilities are conditional on the
constraints.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import kernel
from tagsmith.core.inference.chain import Floats

#: The score of labels and pairs that are not allowed. Sums of many stay finite in float32; no model score is as low.
NEVER = -1e30
#: A path with a lower score contains a label or pair that is not allowed.
IMPOSSIBLE = NEVER / 2


class Allowed(NamedTuple):
    """The constraints on sequences. `first`, `last` and `pairs` are 0 or `NEVER`."""

    first: Floats  # (width,) labels of the first token
    last: Floats  # (width,) labels of the last token
    pairs: Floats  # (Y * width,) label i followed by label j, at i * width + j
    fixed: NDArray[np.int32]  # (tokens,) the required label of each token, or -1; empty if there is none


def anything(labels: int) -> Allowed:
    """No constraints."""
    width = v.padded(labels)
    first, last, pairs = (v.zeros(size, np.float32) for size in (width, width, labels * width))
    return Allowed(first, last, pairs, np.empty(0, np.int32))


@kernel
def restrict(scores: Floats, n: int, a: Allowed, begin: int, labels: int, width: int) -> None:
    """Lower the scores of labels that the tokens of a chain must not have. Its first token is `begin` in `fixed`."""
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
    """Lower the scores of pairs that are not allowed, in the transitions into every token except the first."""
    size = a.pairs.shape[0]
    for t in range(1, n):
        for k in range(0, size, v.LANES):
            v.store(matrices, t * size + k, v.add(v.load(matrices, t * size + k), v.load(a.pairs, k)))
