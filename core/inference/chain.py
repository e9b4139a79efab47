"""Exact inference over one chain: scaled forward-backward and Viterbi.

Buffers are one-dimensional. Each row has `width` labels, padded to whole vectors. Row t of a chain starts at
`(at + t) * width`. The caller owns every buffer that a kernel writes.

Scaling. With psi_t = exp(score_t - max) and M = exp(transition - max), the recursion keeps
    a_t = (a_{t-1} M) * psi_t / s_{t-1},   s_t = sum a_t,   log Z = sum_t log s_t + shifts
The division by the sum is off the critical path: the sum is known one step before it is needed. The backward recursion
    V_{t+1} = psi_{t+1} * b_{t+1} / s_t,   b_t = M V_{t+1},   b_{n-1} = 1 / s_{n-1}
yields the marginals directly: p(y_t) = a_t b_t and p(y_t, y_{t+1}) = a_t M V_{t+1}.

M is one matrix for the whole chain. With rich edges there is one matrix per token except the first (`Edges.step`), each
with its own maximum.

Underflow. psi_t and M are at most 1. Values below the smallest normal number of the type (tiny) become zero, so each
weight or a_t(j) has an absolute error of at most tiny. The relative error of Z is then tiny b_t(j). Each b_t is a sum
of V, so this error is negligible while all V and all 1 / s are well below 1 / tiny (`kept`). A b_t(j) can itself lack a
term, because some b_u(k) is below tiny. The path from j to k weighs at most exp(span) times the path from the most
likely label of t, which weighs at most 1 / a_t. The product is tiny^2 exp(span) / s. It is negligible while the span of
the transition scores is less than the range of the type. Since V <= 1 / (min M)^2, a small span is sufficient proof for
any tokens. All other chains use log space (`log_chain`), which is slower and always correct.
"""

from math import exp, isfinite, log, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inlined, kernel
from tagsmith.core.inference.tree.solver import SolverBlock, no_solver

Floats = NDArray[Any]  # float32 in training and serving; float64 in quasi-Newton and tests

#: Natural logarithms of the smallest normal float32 and float64, with a margin for the rounding of a product.
_REACH_32, _REACH_64 = 85.0, 705.0
#: The fraction of that range allowed for V and 1 / s. The error is then below the rounding error of a sum.
_SHARE = 0.65


class Edges(NamedTuple):
    """The transitions of one model, as input to the recursions. Those into the token of row t start at t * step.

    With step 0, all tokens share one matrix. Otherwise `scores` and `forward` are the same memory: it holds scores,
    then exponentials, then transition probabilities. There is no transpose, because each matrix would use it only once.
    """

    scores: Floats  # (Y * width,) score of label i followed by label j, at i * width + j
    forward: Floats  # (Y * width,) exp(scores - shift), columns beyond Y zero
    backward: Floats  # (Y * width,) the transpose of `forward`
    span: Floats  # (1,) highest minus lowest score of a matrix; the maximum over tokens with rich edges
    step: int


class Chain(NamedTuple):
    """Scratch buffers for chains of up to `rows` tokens in total."""

    psi: Floats  # (rows * width,) scores, then exp(scores - max), then V
    alpha: Floats  # (rows * width,) a
    beta: Floats  # (rows * width,) b, then marginals
    sums: Floats  # (rows,) s
    pairs: Floats  # (Y * width,) expected transitions, summed over chains until cleared
    matrices: Floats  # (rows * Y * width,) transitions into each token; empty unless `rich`
    held: Floats  # (rows * width,) marginals that are kept while others are computed; empty unless `partial`
    held_matrices: Floats  # (rows * Y * width,) the same for transitions; empty unless `rich` and `partial`
    trees: SolverBlock  # for sentences that are trees
    rich: bool  # whether each token has its own transitions


def edges(labels: int, dtype: Any) -> Edges:
    """Allocate zeroed transitions for `labels` labels."""
    size = labels * v.padded(labels)
    scores, forth, back = (v.zeros(size, dtype) for _ in range(3))
    return Edges(scores, forth, back, np.zeros(1, dtype), 0)


def chain(
    rows: int,
    labels: int,
    dtype: Any,
    *,
    rich: bool = False,
    partial: bool = False,
    trees: SolverBlock | None = None,
) -> Chain:
    """Allocate scratch for `rows` tokens in total.

    Set `rich` if each token has its own transitions, and `partial` if some tokens have no single gold label. `trees` is
    the scratch of sentences that are trees.
    """
    width = v.padded(labels)
    psi, alpha, beta = (v.zeros(rows * width, dtype) for _ in range(3))
    matrices = v.zeros(rows * labels * width if rich else 0, dtype)
    held = v.zeros(len(beta) if partial else 0, dtype)
    held_matrices = v.zeros(len(matrices) if partial else 0, dtype)
    sums, pairs = v.zeros(rows, dtype), v.zeros(labels * width, dtype)
    return Chain(psi, alpha, beta, sums, pairs, matrices, held, held_matrices, trees or no_solver(), rich)


@inlined
def edges_of_tokens(e: Edges, c: Chain, labels: int, width: int) -> Edges:
    """Return the transitions in `c.matrices` in the form that the recursions expect."""
    return Edges(c.matrices, c.matrices, e.backward, e.span, labels * width)


@kernel
def set_edges(labels: int, width: int, e: Edges) -> float:
    """Exponentiate `e.scores` in both orientations; return the subtracted shift."""
    shift = lowest = e.scores[0]
    for i in range(labels):
        for j in range(labels):
            shift = max(shift, e.scores[i * width + j])
            lowest = min(lowest, e.scores[i * width + j])
    e.span[0] = shift - lowest
    shift_v = v.splat(shift)
    for i in range(labels):
        for j in range(0, width, v.LANES):
            v.store(e.forward, i * width + j, v.exp(v.subtract(v.load(e.scores, i * width + j), shift_v)))
        for j in range(labels, width):
            e.forward[i * width + j] = 0
        for j in range(labels):
            e.backward[j * width + i] = e.forward[i * width + j]
    return np.float64(shift)


@inlined
def _times(
    a: Floats, a_at: int, matrix: Floats, at: int, labels: int, width: int, out: Floats, out_at: int
) -> None:
    """out_j = sum_i a_i M_ij, where M starts at `at`. Two accumulators per block let additions overlap."""
    for j in range(0, width, v.LANES):
        even, odd = v.zero(out), v.zero(out)
        for i in range(0, labels - 1, 2):
            even = v.fma(v.splat(a[a_at + i]), v.load(matrix, at + i * width + j), even)
            odd = v.fma(v.splat(a[a_at + i + 1]), v.load(matrix, at + (i + 1) * width + j), odd)
        if labels % 2:
            i = labels - 1
            even = v.fma(v.splat(a[a_at + i]), v.load(matrix, at + i * width + j), even)
        v.store(out, out_at + j, v.add(even, odd))


@inlined
def _dots(
    matrix: Floats, at: int, b: Floats, b_at: int, labels: int, width: int, out: Floats, out_at: int
) -> None:
    """out_i = sum_j M_ij b_j, where M starts at `at`; the padding is set to zero."""
    for i in range(labels):
        acc = v.zero(out)
        for j in range(0, width, v.LANES):
            acc = v.fma(v.load(matrix, at + i * width + j), v.load(b, b_at + j), acc)
        out[out_at + i] = v.total(acc)
    for i in range(labels, width):
        out[out_at + i] = 0


@inlined
def clear_padding(matrix: Floats, at: int, labels: int, width: int) -> None:
    """Set the columns beyond the labels to zero, in the matrix that starts at `at`."""
    for i in range(labels):
        for j in range(labels, width):
            matrix[at + i * width + j] = 0


@inlined
def _ends(c: Chain, t: int, first: int, labels: int, width: int) -> Any:
    """Return the highest and the lowest score in the matrix of row t.

    Uses `alpha` and `beta` as scratch, one maximum and minimum per lane. They are not filled yet.
    """
    row, whole = t * width, labels - labels % v.LANES
    v.store(c.alpha, row, v.splat(c.matrices[first]))
    v.store(c.beta, row, v.splat(c.matrices[first]))
    for i in range(labels):
        for j in range(0, whole, v.LANES):
            here = v.load(c.matrices, first + i * width + j)
            v.store(c.alpha, row, v.maximum(v.load(c.alpha, row), here))
            v.store(c.beta, row, v.minimum(v.load(c.beta, row), here))
    top, lowest = c.alpha[row], c.beta[row]
    for j in range(1, v.LANES):
        top, lowest = max(top, c.alpha[row + j]), min(lowest, c.beta[row + j])
    for i in range(labels):
        for j in range(whole, labels):
            here = c.matrices[first + i * width + j]
            top, lowest = max(top, here), min(lowest, here)
    return top, lowest


@inlined
def _reach(x: Floats) -> float:
    """Return the largest difference of scores whose exponentials this type can represent."""
    return _REACH_64 if x.itemsize == 8 else _REACH_32


@kernel
def exponentiate(c: Chain, at: int, n: int, e: Edges, shift: float, labels: int, width: int) -> float:
    """Replace the scores in `psi` and `matrices` by exp(score - maximum); the padding is set to zero.

    Returns the sum of the maxima. For transitions shared by all tokens, the maximum is `shift` (see `set_edges`).
    Returns NaN if the transition scores differ too much for `forward` and `backward`.
    """
    shifts = 0.0
    for t in range(at, at + n):
        row = t * width
        top = c.psi[row]
        for j in range(1, labels):
            top = max(top, c.psi[row + j])
        top_v = v.splat(top)
        for j in range(0, width, v.LANES):
            v.store(c.psi, row + j, v.exp(v.subtract(v.load(c.psi, row + j), top_v)))
        for j in range(labels, width):
            c.psi[row + j] = 0
        shifts += float(top)
    if not c.rich:
        shifts += (n - 1) * shift
    else:
        e.span[0] = 0
        for t in range(at + 1, at + n):
            first = t * labels * width
            top, lowest = _ends(c, t, first, labels, width)
            top_v = v.splat(top)
            for k in range(first, first + labels * width, v.LANES):
                v.store(c.matrices, k, v.exp(v.subtract(v.load(c.matrices, k), top_v)))
            clear_padding(c.matrices, first, labels, width)
            shifts += float(top)
            e.span[0] = max(e.span[0], top - lowest)
    return shifts if e.span[0] < _reach(c.psi) and isfinite(shifts) else nan


@kernel
def forward(c: Chain, at: int, n: int, e: Edges, labels: int, width: int) -> float:
    """Fill `alpha` and `sums` from `psi`; return log Z without the shifts."""
    log_z, one = 0.0, v.splat(c.sums.dtype.type(1))
    for t in range(at, at + n):
        row = t * width
        if t == at:
            for j in range(0, width, v.LANES):
                v.store(c.alpha, row + j, v.load(c.psi, row + j))
        else:
            _times(c.alpha, row - width, e.forward, t * e.step, labels, width, c.alpha, row)
            # A vector division: a zero sum yields infinity, not an error.
            scale = v.divide(one, v.splat(c.sums[t - 1]))
            for j in range(0, width, v.LANES):
                scaled = v.multiply(v.load(c.psi, row + j), scale)
                v.store(c.alpha, row + j, v.multiply(v.load(c.alpha, row + j), scaled))
        acc = v.zero(c.sums)
        for j in range(0, width, v.LANES):
            acc = v.add(acc, v.load(c.alpha, row + j))
        c.sums[t] = v.total(acc)
        log_z += log(c.sums[t])
    return log_z


@kernel
def backward(c: Chain, at: int, n: int, e: Edges, labels: int, width: int) -> None:
    """After `forward`: fill `beta` with the marginals and replace `psi` by V."""
    one = v.splat(c.sums.dtype.type(1))
    for t in range(at + n - 1, at - 1, -1):
        row = t * width
        if t == at + n - 1:
            last = v.divide(one, v.splat(c.sums[t]))
            for j in range(0, width, v.LANES):
                v.store(c.beta, row + j, last)
        elif e.step == 0:
            _times(c.psi, row + width, e.backward, ZERO, labels, width, c.beta, row)
        else:
            _dots(e.forward, (t + 1) * e.step, c.psi, row + width, labels, width, c.beta, row)
        scale = v.divide(one, v.splat(c.sums[t - 1])) if t > at else one
        for j in range(0, width, v.LANES):
            b = v.load(c.beta, row + j)
            v.store(c.psi, row + j, v.multiply(v.multiply(v.load(c.psi, row + j), b), scale))
            v.store(c.beta, row + j, v.multiply(v.load(c.alpha, row + j), b))


@inlined
def surely_kept(e: Edges) -> bool:
    """After `exponentiate`: whether these transitions exclude relevant underflow for any tokens."""
    return bool(2 * e.span[0] < _SHARE * _reach(e.scores))


@kernel
def kept(c: Chain, at: int, n: int, e: Edges, width: int) -> bool:
    """After `backward`: whether there was no relevant underflow."""
    if surely_kept(e):
        return True
    limit = exp(_SHARE * _reach(c.psi))
    for t in range(at, at + n):
        if not c.sums[t] * limit > 1:
            return False
    most = v.zero(c.psi)
    for k in range(at * width, (at + n) * width, v.LANES):
        most = v.maximum(v.load(c.psi, k), most)  # in this order, NaN in the padding is ignored
    return bool(v.total(most) < limit)


@kernel
def add_pairs(c: Chain, at: int, n: int, e: Edges, labels: int, width: int) -> None:
    """After `backward`: pairs_ij += M_ij sum_t a_t(i) V_{t+1}(j), as one blocked product per chain.

    With one matrix per token, the matrix is replaced by the probabilities of the transitions into the token.
    """
    if e.step > 0:
        for t in range(at + 1, at + n):
            for i in range(labels):
                a = v.splat(c.alpha[(t - 1) * width + i])
                for j in range(0, width, v.LANES):
                    k, here = i * width + j, t * e.step + i * width + j
                    p = v.multiply(v.multiply(a, v.load(e.forward, here)), v.load(c.psi, t * width + j))
                    v.store(e.forward, here, p)
                    v.store(c.pairs, k, v.add(v.load(c.pairs, k), p))
        return
    for i in range(labels):
        for j in range(0, width, v.LANES):
            acc = v.zero(c.pairs)
            for t in range(at, at + n - 1):
                acc = v.fma(v.splat(c.alpha[t * width + i]), v.load(c.psi, (t + 1) * width + j), acc)
            k = i * width + j
            v.store(c.pairs, k, v.fma(acc, v.load(e.forward, k), v.load(c.pairs, k)))


@kernel
def gold_score(
    psi: Floats, at: int, gold: NDArray[np.int32], begin: int, n: int, e: Edges, width: int
) -> float:
    """Return the score of the gold labels. Reads the scores in `psi` before they are exponentiated."""
    score = 0.0
    for t in range(n):
        y = gold[begin + t]
        score += float(psi[(at + t) * width + y])
        if t:
            score += float(e.scores[(at + t) * e.step + gold[begin + t - 1] * width + y])
    return score


@kernel
def viterbi(
    scores: Floats, n: int, transitions: Floats, step: int, labels: int, width: int, out: NDArray[np.int32],
    out_at: int,
) -> float:  # fmt: skip
    """Write the best labels of one chain to `out`. Ties go to the lower label.

    Overwrites `scores` with the best prefix scores. The transitions into token t start at t * step. There are no
    back-pointers: the backward pass finds the winner of each step again, only for the label on the path.
    """
    for t in range(1, n):
        row, j, into = t * width, 0, t * step
        while width - j >= 3 * v.LANES:  # three independent maxima, which overlap
            first = v.splat(scores[row - width])
            a = v.add(first, v.load(transitions, into + j))
            b = v.add(first, v.load(transitions, into + j + v.LANES))
            c = v.add(first, v.load(transitions, into + j + 2 * v.LANES))
            for i in range(1, labels):
                here, at = v.splat(scores[row - width + i]), into + i * width + j
                a = v.maximum(a, v.add(here, v.load(transitions, at)))
                b = v.maximum(b, v.add(here, v.load(transitions, at + v.LANES)))
                c = v.maximum(c, v.add(here, v.load(transitions, at + 2 * v.LANES)))
            v.store(scores, row + j, v.add(v.load(scores, row + j), a))
            v.store(scores, row + j + v.LANES, v.add(v.load(scores, row + j + v.LANES), b))
            v.store(scores, row + j + 2 * v.LANES, v.add(v.load(scores, row + j + 2 * v.LANES), c))
            j += 3 * v.LANES
        while j < width:
            best = v.add(v.splat(scores[row - width]), v.load(transitions, into + j))
            for i in range(1, labels):
                here = v.splat(scores[row - width + i])
                best = v.maximum(best, v.add(here, v.load(transitions, into + i * width + j)))
            v.store(scores, row + j, v.add(v.load(scores, row + j), best))
            j += v.LANES
    row = (n - 1) * width
    y = 0
    for j in range(1, labels):
        if scores[row + j] > scores[row + y]:
            y = j
    out[out_at + n - 1] = y
    top = float(scores[row + y])
    for t in range(n - 2, -1, -1):
        row, into = t * width, (t + 1) * step + y
        best_y = 0
        best_score = scores[row] + transitions[into]
        for i in range(1, labels):
            score = scores[row + i] + transitions[into + i * width]
            if score > best_score:
                best_score = score
                best_y = i
        y = best_y
        out[out_at + t] = y
    return top
