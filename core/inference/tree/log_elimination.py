"""Elimination of words from a graph with logarithms, for scores that differ too much for `elimination`.

The same functions on the same buffers, which hold logarithms.
"""

from math import exp, log, log1p

from tagsmith.core.base.jit import inlined, inner
from tagsmith.core.inference.tree.elimination import scaled_score
from tagsmith.core.inference.tree.scratch import Elimination, Floats

#: Finite replacement for log(0), so that additions are safe.
_NOTHING = -1e30
#: Arcs that score less than the best by this are forbidden.
_FORBIDDEN = -1e15


@inlined
def _log_add(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high if high - low > 40.0 else high + log1p(exp(low - high))


@inner
def load(scores: Floats, g: Elimination, width: int) -> None:
    """Write the logarithms of the weights to `work`.

    The score of a forbidden arc is so low that all digits would be lost in sums with it. It is replaced by one that is
    just low enough: below the difference between any two trees of allowed arcs, by more than the number of trees.
    """
    n = scores.shape[0] - 1
    lowest = -50.0 - n * log(n + 1.0)
    for m in range(1, n + 1):
        low = 0.0
        for h in range(n + 1):
            if h != m:
                here = scaled_score(scores, g, h, m)
                g.work[m * width + h] = here
                low = min(low, here) if here > _FORBIDDEN else low
        lowest += low
    for m in range(1, n + 1):
        g.work[m * width + m] = _NOTHING
        for h in range(n + 1):
            if h != m and not g.work[m * width + h] > _FORBIDDEN:
                g.work[m * width + h] = lowest


@inlined
def _log_sum(x: Floats, first: int, stop: int) -> float:
    top = x[first]
    for j in range(first + 1, stop):
        top = max(top, x[j])
    mass = 0.0
    for j in range(first, stop):
        mass += exp(x[j] - top)
    return float(top + log(mass))


@inner
def eliminate(x: Floats, at: int, width: int, size: int, kept: int, single_root: bool) -> float:
    """Eliminate the words after `kept` from a graph of `size` words; return the sum of log D_k.

    Row k becomes log q_k.
    """
    log_d = 0.0
    for k in range(size, kept, -1):
        row = at + k * width
        d = _log_sum(x, row + 1 if single_root else row, row + k)
        log_d += d
        for h in range(k):
            x[row + h] -= d
        for m in range(1, k):
            into = at + m * width
            weight = x[into + k]
            for h in range(k):
                x[into + h] = _log_add(x[into + h], weight + x[row + h])
    return log_d


@inlined
def start(g: Elimination, row: int) -> None:
    """Set the escape probabilities for a graph of one word: 1 from the root, 0 from the word itself."""
    g.escape[row] = 0.0
    g.escape[row + 1] = _NOTHING


@inner
def extend(g: Elimination, at: int, width: int, size: int, kept: int, row: int) -> None:
    """Extend one row of escape probabilities from the `kept` first words to all words: e(k) = sum_h q_k(h) e(h)."""
    for k in range(kept + 1, size + 1):
        for h in range(k):
            g.spare[h] = g.work[at + k * width + h] + g.escape[row + h]
        g.escape[row + k] = _log_sum(g.spare, 0, k)


@inlined
def normalise(g: Elimination, row: int, n: int) -> None:
    """Replace the escape probabilities of one word by the marginals of the arcs into it."""
    for h in range(n + 1):
        g.escape[row + h] += g.work[row + h]
    total = _log_sum(g.escape, row, row + n + 1)
    for h in range(n + 1):
        g.escape[row + h] = exp(g.escape[row + h] - total)
