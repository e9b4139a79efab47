"""log Z and arc marginals of all trees, projective or not: the matrix-tree theorem without subtractions, O(n^3).

The sum over all trees is a determinant of the Laplacian of the graph (Tutte 1984; Koo et al. 2007; McDonald and Satta
2007; Smith and Smith 2007). The usual LU decomposition subtracts, and loses all digits where cycles of strong arcs make
the determinant small. Here the diagonal of the Laplacian is not stored: it is the sum of the other entries of its
column. Gaussian elimination then only adds, multiplies and divides positive numbers (Grassmann, Taksar and Heyman
1985), and each result has a small relative error.

Elimination. Let W(h, m) = exp(score(h, m) - shift). To eliminate word k,
    D_k = sum_h W(h, k),   q_k(h) = W(h, k) / D_k,   W(h, m) += q_k(h) W(k, m)   for all h, m that are left,
where loops (h = m) are not counted. Then Z is the product of all D_k.

Marginals. A random walk goes from each word to one of its heads, with probability proportional to W, until it reaches
the root. Let e_m(h) be the probability that the walk from h reaches the root before m. In a random tree, the head of m
is the last exit from m of the walk that starts there (Wilson 1996), so
    p(h, m) = W(h, m) e_m(h) / sum_h' W(h', m) e_m(h'),   e_m(0) = 1,   e_m(m) = 0
Elimination does not change e_m for the words that are left. For k eliminated and m left,
    e_m(k) = sum_h q_k(h) e_m(h)
Eliminate all words except m, then go back: this gives e_m. To share the work between all m, bisect: eliminate the right
half of the words, treat the left half in the same way, go back; then the same with the halves exchanged. The first
level takes 23/24 n^3 multiplications, all levels 23/18 n^3. LU and the inverse take n^3.

Single root. Multiply the root arcs by t. Z becomes a polynomial in t, and the coefficient of t is the sum over the
trees with one root arc. To the lowest order in t, D_k does not contain the root arc, unless k is the last word, and
e_m(h) is a multiple of t, except e_m(0). The other equations do not change.

Range. The shift of a word is the highest score of an arc into it, so W <= 1. With a single root it is the highest score
of an arc from another word, and all root arcs have one more shift. Weights are raised to F = exp(FLOOR) if they are
lower. Then every D_k is at least F and every e_m(h) at most n / F: nothing overflows. Let S be the product over all
words of sum_h W(h, m). The trees with a given arc add at most W S to Z, so the floor and all underflow change Z by less
than n^3 F S. This is negligible if Z / S is much greater than F. (Z / S is the probability that heads chosen
independently form a tree.) Otherwise the same is done with logarithms, which is slower and always correct.
"""

from math import inf, log
from typing import Any

import numpy as np

from tagsmith.core.base.jit import ZERO, inlined, inner, kernel
from tagsmith.core.inference.tree import elimination as el
from tagsmith.core.inference.tree import log_elimination as logs
from tagsmith.core.inference.tree.scratch import Elimination, Floats, TreeScratch, row_width

_ONE: Any = np.int64(1)
#: The lowest log(Z / S) at which weights are sufficient. exp(-50) n^3 is below the rounding error.
_SURE = el.FLOOR + 50.0


@kernel
def spanning_log_z(scores: Floats, single_root: bool, s: TreeScratch) -> float:
    """Return log Z of all trees."""
    g, n = s.elimination, scores.shape[0] - 1
    width = row_width(n)
    shift = _set_shifts(scores, single_root, g)
    log_s = el.load(scores, g, width)
    log_z = el.eliminate(g.work, ZERO, width, n, _ONE, single_root) + log(g.work[width])
    if not log_z - log_s > _SURE:
        logs.load(scores, g, width)
        log_z = logs.eliminate(g.work, ZERO, width, n, _ONE, single_root) + g.work[width]
    return float(shift + log_z)


@kernel
def spanning_marginals(scores: Floats, single_root: bool, s: TreeScratch, marginals: Floats) -> float:
    """Write the probability of each arc to `marginals`; return log Z of all trees."""
    g, n = s.elimination, scores.shape[0] - 1
    width = row_width(n)
    shift = _set_shifts(scores, single_root, g)
    log_s = el.load(scores, g, width)
    log_z, in_logs = 0.0, False
    while True:
        log_z = _bisect(g, n, single_root, in_logs)
        if in_logs or log_z - log_s > _SURE:
            break
        logs.load(scores, g, width)
        in_logs = True
    for h in range(n + 1):
        marginals[h, 0] = 0.0
    for m in range(1, n + 1):
        if in_logs:
            logs.normalise(g, m * width, n)
        else:
            el.normalise(g, m * width, width)
        for h in range(n + 1):
            marginals[h, m] = min(g.escape[m * width + h], 1.0)
    return float(shift + log_z)


@inlined
def _set_shifts(scores: Floats, single_root: bool, g: Elimination) -> float:
    """Set the shift of the arcs into each word, and the further shift of root arcs (at 0). Return their sum.

    A tree with a single root contains one root arc. Its further shift contains that of its word, which therefore
    cancels. Huge numbers cancel where a word can only be the root, so they are not added in the first place.
    """
    n = scores.shape[0] - 1
    apart = single_root and n > 1
    for m in range(1, n + 1):
        top = -inf
        for h in range(1 if apart else 0, n + 1):
            if h != m:
                top = max(top, scores[h, m])
        g.shifts[m] = top
    g.shifts[0], child = 0.0, 0
    if apart:
        g.shifts[0] = -inf
        for m in range(1, n + 1):
            if scores[0, m] - g.shifts[m] > g.shifts[0]:
                g.shifts[0], child = scores[0, m] - g.shifts[m], m
    total = scores[0, child] if apart else 0.0
    for m in range(1, n + 1):
        if m != child:
            total += g.shifts[m]
    return total


@inner
def _bisect(g: Elimination, n: int, single_root: bool, in_logs: bool) -> float:
    """Write e_m(h) to row m of `escape`, for all words; return log Z of the graph at the start of `work`.

    Each level is a range of words. Its graph is at `source`, with rows of `pitch` entries. A copy at `place` is
    eliminated, and is the source of the next level. Stage 0 is before the left half, 1 between the halves, 2 after the
    right half.
    """
    log_z, level = 0.0, ZERO
    g.begin[0], g.size[0], g.stage[0], g.source[0], g.pitch[0] = 0, n, 0, 0, row_width(n)
    g.place[0] = (n + 1) * row_width(n)
    while level >= 0:
        begin, size, stage, width = g.begin[level], g.size[level], g.stage[level], row_width(g.size[level])
        if size == 1:
            log_z += _leaf(g, level, row_width(n), in_logs)
        elif stage > 0:
            first, kept = _half(size, stage - 1)
            _go_back(g, level, first, kept, row_width(n), in_logs)
        if size == 1 or stage == 2:
            level -= 1
            continue
        first, kept = _half(size, stage)
        _copy(g, level, first, kept)
        if in_logs:
            log_d = logs.eliminate(g.work, g.place[level], width, size, kept, single_root)
        else:
            log_d = el.eliminate(g.work, g.place[level], width, size, kept, single_root)
        if begin + first == 0:
            log_z += log_d
        g.stage[level] += 1
        level += 1
        g.begin[level], g.size[level], g.stage[level] = begin + first, kept, 0
        g.source[level], g.pitch[level] = g.place[level - 1], width
        g.place[level] = g.place[level - 1] + (size + 1) * width
    return log_z


@inlined
def _half(size: int, which: int) -> tuple[int, int]:
    """Return the number of words before the left half (0) or the right half (1), and in it."""
    left = (size + 1) // 2
    return which * left, left if which == 0 else size - left


@inlined
def _leaf(g: Elimination, level: int, width: int, in_logs: bool) -> float:
    """Finish a range of one word. Return the logarithm of its root arc if it is the first word, else 0."""
    root = g.work[g.source[level] + g.pitch[level]]
    row = (g.begin[level] + 1) * width
    if in_logs:
        logs.start(g, row)
    else:
        el.start(g, row, width)
    if g.begin[level] > 0:
        return 0.0
    return float(root if in_logs else log(root))


@inlined
def _copy(g: Elimination, level: int, first: int, kept: int) -> None:
    """Copy the graph of a level to its place, the `kept` words after `first` in front of the others."""
    size, source, place, pitch = g.size[level], g.source[level], g.place[level], g.pitch[level]
    width, others = row_width(size), 0 if first > 0 else kept
    for i in range(1, size + 1):
        here = place + i * width
        there = source + (first + i if i <= kept else others + i - kept) * pitch
        g.work[here] = g.work[there]
        for j in range(1, kept + 1):
            g.work[here + j] = g.work[there + first + j]
        for j in range(1, size - kept + 1):
            g.work[here + kept + j] = g.work[there + others + j]


@inlined
def _go_back(g: Elimination, level: int, first: int, kept: int, width: int, in_logs: bool) -> None:
    """Extend e_m of the `kept` words m after `first` to all words of the level, and put them in order."""
    size, place = g.size[level], g.place[level]
    for m in range(first + 1, first + kept + 1):
        row = (g.begin[level] + m) * width
        if in_logs:
            logs.extend(g, place, row_width(size), size, kept, row)
        else:
            el.extend(g, place, row_width(size), size, kept, row)
        if first > 0:
            for j in range(1, kept + 1):
                g.spare[j] = g.escape[row + j]
            for j in range(1, first + 1):
                g.escape[row + j] = g.escape[row + kept + j]
            for j in range(1, kept + 1):
                g.escape[row + first + j] = g.spare[j]
