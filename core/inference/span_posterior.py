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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import inlined, kernel
from tagsmith.core.inference.chain import Chain, Edges, Floats


class ChunkTables(NamedTuple):
    """Where chunks start and end, by pairs of labels [previous, current]. The last row and column are a break."""

    starts: NDArray[np.bool_]  # (Y + 1, Y + 1) a chunk starts at the current token
    bounds: NDArray[np.bool_]  # (Y + 1, Y + 1) one starts there, or ends before it
    types: NDArray[np.int64]  # (Y + 1,) the type of each label


# Which pairs of labels a step keeps.
_FIRST, _INSIDE, _AFTER = range(3)


@inlined
def _keeps(tables: ChunkTables, i: int, j: int, kind: int, step: int) -> bool:
    if step == _FIRST:
        return bool(tables.starts[i, j] and tables.types[j] == kind)
    return bool(tables.bounds[i, j] == (step == _AFTER))


@inlined
def _walk(
    c: Chain, t: int, e: Edges, logs: bool, tables: ChunkTables, kind: int, step: int, mass: Floats, at: int,
    labels: int, width: int,
) -> None:  # fmt: skip
    """Replace the probabilities of the labels of token t - 1 in `mass` by those of token t, over the pairs kept."""
    row, out = t * width, at + width
    for j in range(labels):
        mass[out + j] = 0
    for i in range(labels):
        if mass[at + i] > 0:
            into = t * e.step + i * width
            top, total = 0.0, 0.0
            if logs:
                top = e.scores[into] + c.psi[row]
                for j in range(1, labels):
                    top = max(top, e.scores[into + j] + c.psi[row + j])
            for j in range(labels):
                weight = (
                    exp(e.scores[into + j] + c.psi[row + j] - top)
                    if logs
                    else e.forward[into + j] * c.psi[row + j]
                )
                mass[out + width + j] = weight
                total += weight
            if total > 0:
                for j in range(labels):
                    if _keeps(tables, i, j, kind, step):
                        mass[out + j] += mass[at + i] * mass[out + width + j] / total
    for j in range(labels):
        mass[at + j] = mass[out + j]


@kernel
def span_probability(
    c: Chain, n: int, e: Edges, logs: bool, tables: ChunkTables, start: int, stop: int, kind: int, mass: Floats,
    labels: int, width: int,
) -> float:  # fmt: skip
    """Return the probability of one span, after the marginals of the chain; `logs` if they were computed in log space.

    `mass` is scratch, (3 * width,).
    """
    if start == 0:
        for j in range(labels):
            mass[j] = c.beta[j] if _keeps(tables, labels, j, kind, _FIRST) else 0.0
    else:
        for i in range(labels):
            mass[i] = c.beta[(start - 1) * width + i]
        _walk(c, start, e, logs, tables, kind, _FIRST, mass, 0, labels, width)
    for t in range(start + 1, stop):
        _walk(c, t, e, logs, tables, kind, _INSIDE, mass, 0, labels, width)
    if stop < n:
        _walk(c, stop, e, logs, tables, kind, _AFTER, mass, 0, labels, width)
    total = 0.0
    for j in range(labels):
        total += mass[j]
    return min(total, 1.0)


@kernel
def span_probabilities(
    c: Chain, n: int, e: Edges, logs: bool, tables: ChunkTables, chosen: NDArray[np.int32], begin: int,
    mass: Floats, out: NDArray[np.float64], labels: int, width: int,
) -> None:  # fmt: skip
    """Write the probability of each span of the chosen labels to `out`, at its first token; 0 elsewhere."""
    first = -1
    for t in range(n + 1):
        before = chosen[begin + t - 1] if t > 0 else labels
        here = chosen[begin + t] if t < n else labels
        if first >= 0 and (t == n or tables.bounds[before, here]):
            kind = tables.types[chosen[begin + first]]
            out[begin + first] = span_probability(c, n, e, logs, tables, first, t, kind, mass, labels, width)
            first = -1
        if t < n:
            out[begin + t] = 0
            if tables.starts[before, here]:
                first = t
