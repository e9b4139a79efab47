"""Elimination of words from a graph, for the sums over all trees. `matrix_tree` has the equations.

A graph of k words is a matrix in one buffer, from `at` on. Row m holds the weights W(h, m) of the arcs into word m, for
all heads h; head 0 is the root. The diagonal is never read. Words are eliminated from the last to the first, so those
that are left are a prefix of each row. Loops run over whole vectors: the columns beyond the prefix are not needed.
"""

from math import log

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import inlined, inner
from tagsmith.core.inference.tree.scratch import Elimination, Floats

#: The lowest logarithm of a weight. A quotient of two weights is still in the range of float64.
FLOOR = -600.0


@inlined
def scaled_score(scores: Floats, g: Elimination, h: int, m: int) -> float:
    """Return the score of an arc minus its shift. The shift of the root comes last: both can be huge and cancel."""
    here = scores[h, m] - g.shifts[m]
    return float(here - g.shifts[0] if h == 0 else here)


@inner
def load(scores: Floats, g: Elimination, width: int) -> float:
    """Write the weights to `work`. Return log S, the sum of the logarithms of the sums over all heads of a word."""
    n, log_s = scores.shape[0] - 1, 0.0
    for m in range(1, n + 1):
        row = m * width
        for h in range(n + 1):
            g.work[row + h] = max(scaled_score(scores, g, h, m), FLOOR) if h != m else FLOOR
        for j in range(0, width, v.LANES):
            v.store(g.work, row + j, v.exp(v.load(g.work, row + j)))
        g.work[row + m] = 0.0
        for h in range(n + 1, width):
            g.work[row + h] = 0.0
        log_s += log(_row_sum(g.work, row, width))
    return log_s


@inlined
def _row_sum(x: Floats, row: int, stop: int) -> float:
    total = v.zero(x)
    for j in range(0, stop, v.LANES):
        total = v.add(total, v.load(x, row + j))
    return float(v.total(total))


@inner
def eliminate(x: Floats, at: int, width: int, size: int, kept: int, single_root: bool) -> float:
    """Eliminate the words after `kept` from a graph of `size` words; return the sum of log D_k.

    Row k becomes q_k, followed by zeros.
    """
    log_d = 0.0
    for k in range(size, kept, -1):
        row = at + k * width
        for j in range(k, k // v.LANES * v.LANES + v.LANES):
            x[row + j] = 0.0
        root = x[row]
        if single_root:
            x[row] = 0.0
        d = _row_sum(x, row, k)
        x[row] = root
        log_d += log(d)
        factor = v.splat(1.0 / d)
        for j in range(0, k, v.LANES):
            v.store(x, row + j, v.multiply(v.load(x, row + j), factor))
        for m in range(1, k):
            into = at + m * width
            weight = v.splat(x[into + k])
            for j in range(0, k, v.LANES):
                v.store(x, into + j, v.fma(weight, v.load(x, row + j), v.load(x, into + j)))
    return log_d


@inlined
def start(g: Elimination, row: int, width: int) -> None:
    """Set the escape probabilities for a graph of one word: 1 from the root, 0 from the word itself."""
    for j in range(width):
        g.escape[row + j] = 0.0
    g.escape[row] = 1.0


@inner
def extend(g: Elimination, at: int, width: int, size: int, kept: int, row: int) -> None:
    """Extend one row of escape probabilities from the `kept` first words to all words: e(k) = sum_h q_k(h) e(h)."""
    for k in range(kept + 1, size + 1):
        total = v.zero(g.escape)
        for j in range(0, k, v.LANES):
            total = v.fma(v.load(g.work, at + k * width + j), v.load(g.escape, row + j), total)
        g.escape[row + k] = v.total(total)


@inlined
def normalise(g: Elimination, row: int, width: int) -> None:
    """Replace the escape probabilities of one word by the marginals of the arcs into it."""
    for j in range(0, width, v.LANES):
        v.store(g.escape, row + j, v.multiply(v.load(g.escape, row + j), v.load(g.work, row + j)))
    factor = v.splat(1.0 / _row_sum(g.escape, row, width))
    for j in range(0, width, v.LANES):
        v.store(g.escape, row + j, v.multiply(v.load(g.escape, row + j), factor))
