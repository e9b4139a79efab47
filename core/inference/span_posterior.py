"""The probability of a span: that a chunk of its type has exactly its boundaries, summed over all such labellings.

Given the scores, the labels of a sentence form a Markov chain whose transition probabilities follow from the backward
recursion. With V as in `chain`, or the logarithms that `log_chain` leaves in the same place,

    p(y_t = j | y_{t-1} = i) = M_ij V_t(j) / sum_k M_ik V_t(k)

A span of tokens `start` to `stop` - 1 is a walk through that chain, from p(y_{start-1}): a chunk of the type starts
with the first step, none starts or ends with the steps inside, and one starts or ends with the step after the last.
Each step keeps only the label pairs for which this holds. All terms are probabilities, so nothing cancels and nothing
overflows. The work is (tokens of the span + 1) times the number of label pairs.
"""

from math import exp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import inlined, inner
from tagsmith.core.inference.chain import Chain, Edges, Floats


class ChunkTables(NamedTuple):
    """Where chunks start and end, by pairs of labels [previous, current]. The last row and column are a break."""

    starts: NDArray[np.bool_]  # (Y + 1, Y + 1) a chunk starts at the current token
    bounds: NDArray[np.bool_]  # (Y + 1, Y + 1) one starts there, or ends before it
    types: NDArray[np.int64]  # (Y + 1,) the type of each label


class Walk(NamedTuple):
    """One chain after its marginals were computed, and scratch for walks through it."""

    chain: Chain
    edges: Edges
    tables: ChunkTables
    mass: (
        Floats  # (3 * width,) probabilities of labels: before a step, after it, and the weights of one label
    )
    n: int  # tokens
    logs: bool  # whether the marginals were computed in log space
    labels: int
    width: int


# Which pairs of labels a step keeps. Not literals, which would each compile the kernels again.
_FIRST: Any = np.int64(0)
_INSIDE: Any = np.int64(1)
_AFTER: Any = np.int64(2)


@inlined
def _keeps(tables: ChunkTables, i: int, j: int, kind: int, step: int) -> bool:
    if step == _FIRST:
        return bool(tables.starts[i, j] and tables.types[j] == kind)
    return bool(tables.bounds[i, j] == (step == _AFTER))


@inlined
def weigh(w: Walk, t: int, i: int) -> float:
    """Write the weights of the labels of token t after label i to the third row of `mass`; return their sum."""
    row, into, out = t * w.width, t * w.edges.step + i * w.width, 2 * w.width
    psi, total = w.chain.psi, 0.0
    if w.logs:
        scores = w.edges.scores
        top = scores[into] + psi[row]
        for j in range(1, w.labels):
            top = max(top, scores[into + j] + psi[row + j])
        for j in range(w.labels):
            w.mass[out + j] = exp(scores[into + j] + psi[row + j] - top)
            total += w.mass[out + j]
    else:
        for j in range(w.labels):
            w.mass[out + j] = w.edges.forward[into + j] * psi[row + j]
            total += w.mass[out + j]
    return total


@inner
def _advance(w: Walk, t: int, kind: int, step: int) -> None:
    """Replace the probabilities of the labels of token t - 1 by those of token t, over the pairs that are kept."""
    mass, width = w.mass, w.width
    for j in range(w.labels):
        mass[width + j] = 0
    for i in range(w.labels):
        if mass[i] > 0:
            total = weigh(w, t, i)
            if total > 0:
                for j in range(w.labels):
                    if _keeps(w.tables, i, j, kind, step):
                        mass[width + j] += mass[i] * mass[2 * width + j] / total
    for j in range(w.labels):
        mass[j] = mass[width + j]


@inner
def span_probability(w: Walk, start: int, stop: int, kind: int) -> float:
    """Return the probability of one span."""
    beta, mass = w.chain.beta, w.mass
    if start == 0:
        for j in range(w.labels):
            mass[j] = beta[j] if _keeps(w.tables, w.labels, j, kind, _FIRST) else 0.0
    else:
        for i in range(w.labels):
            mass[i] = beta[(start - 1) * w.width + i]
        _advance(w, start, kind, _FIRST)
    for t in range(start + 1, stop):
        _advance(w, t, kind, _INSIDE)
    if stop < w.n:
        _advance(w, stop, kind, _AFTER)
    total = 0.0
    for j in range(w.labels):
        total += mass[j]
    return min(total, 1.0)


@inner
def span_probabilities(w: Walk, chosen: NDArray[np.int32], begin: int, out: NDArray[np.float64]) -> None:
    """Write the probability of each span of the chosen labels to `out`, at its first token; 0 elsewhere."""
    tables, first = w.tables, -1
    for t in range(w.n + 1):
        before = chosen[begin + t - 1] if t > 0 else w.labels
        here = chosen[begin + t] if t < w.n else w.labels
        if first >= 0 and (t == w.n or tables.bounds[before, here]):
            kind = tables.types[chosen[begin + first]]
            out[begin + first] = span_probability(w, first, t, kind)
            first = -1
        if t < w.n:
            out[begin + t] = 0
            if tables.starts[before, here]:
                first = t
