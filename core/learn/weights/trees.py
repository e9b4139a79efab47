"""From the scores of the arcs of a sentence to losses, directions and trees.

The "tokens" of a sentence of n words are its n * n possible arcs, numbered by modifier, then by head (`features.arcs`).
The first label scores the arc. The others score the relation of an arc, and count only for arcs in the tree:

    loss = log Z - score(gold tree) + sum over gold arcs of log sum_r exp score_r - score(gold relation)

so the relations are a classifier over the chosen arcs, which shares the attributes and the updates of the trees. `gold`
of an arc is -1 if the gold tree does not contain it, else the label of its relation, 0 if there are no relations.

Only the arcs of the gold tree, or of the tree that was found, have scores for relations; see `labels_of`.
"""

from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inlined, inner, keep_apart
from tagsmith.core.features.arcs import arc_of
from tagsmith.core.inference.chain import Chain, Floats
from tagsmith.core.inference.tree.solver import Solver, Task, solve, solver_of
from tagsmith.core.learn.problem.layout import Layout
from tagsmith.core.learn.problem.problem import Sequences


@inlined
def words_of(arcs: Any) -> int:
    """Return the number of words of a sentence with this number of arcs."""
    return int(np.int64(sqrt(float(arcs)) + 0.5))


@inlined
def lanes_of(data: Sequences, token: Any, layout: Layout) -> Any:
    """Return how many labels of a token have scores: all, but only the first vector for arcs without a relation."""
    return v.LANES if data.trees.present and data.gold[token] < 0 else layout.width


@inlined
def _put_scores(psi: Floats, at: Any, n: int, width: int, s: Solver) -> None:
    """Write the scores of all arcs to the solver."""
    side = n + 1
    for m in range(1, side):
        for h in range(side):
            if h != m:
                s.scores[h * side + m] = psi[(at + arc_of(h, m, n)) * width]


@inlined
def find_tree(data: Sequences, c: Chain, n: int, width: int) -> float:
    """Find the best tree for the scores in `psi`; return its score. The heads are in the solver."""
    s = solver_of(c.trees)
    _put_scores(c.psi, ZERO, n, width, s)
    return solve(Task.BEST, data.trees, n, s)


@inlined
def best_relation(psi: Floats, row: Any, labels: int) -> int:
    """Return the best relation of an arc; 0 if there are no relations."""
    best = 1 if labels > 1 else 0
    for r in range(2, labels):
        if psi[row + r] > psi[row + best]:
            best = r
    return best


@inlined
def _relation_log_sum(psi: Floats, row: Any, labels: int) -> float:
    """Return log sum_r exp score_r."""
    top, total = float(psi[row + best_relation(psi, row, labels)]), 0.0
    for r in range(1, labels):
        total += exp(float(psi[row + r]) - top)
    return top + log(total)


@inner
def tree_loss(data: Sequences, sentence: int, layout: Layout, c: Chain, at: Any, sums: bool) -> float:
    """Return the loss of the gold tree for the scores in `psi`.

    With `sums`, write the probabilities to `beta`: of each arc and, for arcs of the gold tree, of each relation.
    """
    keep_apart()
    begin, arcs = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    labels, width, n = layout.labels, layout.width, words_of(arcs)
    s = solver_of(c.trees)
    _put_scores(c.psi, at, n, width, s)
    loss = solve(Task.MARGINALS if sums else Task.LOG_Z, data.trees, n, s)
    if sums:
        _put_marginals(c, s, at, n, width)
    kind = c.beta.dtype.type
    for arc in range(arcs):
        gold, row = data.gold[begin + arc], (at + arc) * width
        if gold >= 0:
            loss -= float(c.psi[row])
            if labels > 1:
                total = _relation_log_sum(c.psi, row, labels)
                loss += total - float(c.psi[row + gold])
                if sums:
                    for r in range(1, labels):
                        c.beta[row + r] = kind(exp(float(c.psi[row + r]) - total))
    return loss


@inlined
def _put_marginals(c: Chain, s: Solver, at: Any, n: int, width: int) -> None:
    """Write the probability of each arc to `beta`, and zeros to its relations."""
    side, kind = n + 1, c.beta.dtype.type
    for k in range(at * width, (at + n * n) * width, v.LANES):
        v.store(c.beta, k, v.zero(c.beta))
    for m in range(1, side):
        for h in range(side):
            if h != m:
                c.beta[(at + arc_of(h, m, n)) * width] = kind(s.marginals[h * side + m])


@inlined
def add_gold(data: Sequences, token: Any, beta: Floats, row: Any, weight: Any) -> None:
    """Add the weight to the labels of a gold arc: that of the arc, and that of its relation."""
    gold = data.gold[token]
    if gold >= 0:
        beta[row] += weight
        if gold > 0:
            beta[row + gold] += weight


@inner
def tree_violation(
    data: Sequences, sentence: int, layout: Layout, costs: Floats, augmented: bool, c: Chain,
    found: NDArray[np.int32],
) -> tuple[float, float]:  # fmt: skip
    """Find the best tree, and the best relation of each gold arc; return how much higher they score than gold.

    `costs` has the cost of a wrong head, then that of missing each relation; it is empty without costs. With
    `augmented`, they count in the search. `found` gets a code for each arc: 2 * relation + whether the tree has it. The
    second result is the sum of the costs.
    """
    keep_apart()
    begin, arcs = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    labels, width, n, s = layout.labels, layout.width, words_of(arcs), solver_of(c.trees)
    side, loss, cost, costly = n + 1, 0.0, 0.0, costs.shape[0] > 0
    _put_scores(c.psi, ZERO, n, width, s)
    for m in range(1, side):
        for h in range(side):
            if h == m:
                continue
            arc = arc_of(h, m, n)
            gold, found[arc] = data.gold[begin + arc], 0
            if gold < 0 and augmented:
                s.scores[h * side + m] += float(costs[0])
            if gold >= 0:
                loss -= float(c.psi[arc * width])
    loss = max(loss + solve(Task.BEST, data.trees, n, s), 0.0)
    for m in range(1, side):
        arc = arc_of(s.heads[m], m, n)
        found[arc] = 1
        if costly and data.gold[begin + arc] < 0:
            cost += float(costs[0])
    for arc in range(arcs if labels > 1 else 0):
        gold, row = data.gold[begin + arc], arc * width
        if gold > 0:
            right = c.psi[row + gold]
            if augmented:
                c.psi[row + gold] -= costs[gold]
            best = best_relation(c.psi, row, labels)
            c.psi[row + gold] = right
            loss += float(c.psi[row + best] - right)
            if costly and best != gold:
                cost += float(costs[gold])
                loss += float(costs[gold]) if augmented else 0.0
            found[arc] += 2 * best
    return loss, cost


@inlined
def is_right(data: Sequences, token: Any, found: Any) -> bool:
    """Whether a code of `tree_violation` is that of the gold tree."""
    gold = data.gold[token]
    return bool((found & 1 != 0) == (gold >= 0) and (gold <= 0 or found >> 1 == gold))
