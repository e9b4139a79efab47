"""The best projective tree: Eisner's algorithm (1996), O(n^3).

right(s, t) is the best tree over the words s..t with head s, left(s, t) with head t, and arc(h, m) the best pair of
such trees that an arc from h to m joins:
    arc(s, t)   = score(s, t) + max_{s <= r < t} right(s, r) + left(r + 1, t),   arc(t, s) likewise
    right(s, t) = max_{s < r <= t} arc(s, r) + right(r, t)
    left(s, t)  = max_{s <= r < t} left(s, r) + arc(t, r)
The root is word 0, which only has right trees: the best tree is right(0, n). With a single root it is
    max_r score(0, r) + left(1, r) + right(r, n)

There are no back-pointers: the trace finds the winner of each maximum again, only for the spans of the best tree. In a
tie, the lower r wins.
"""

from math import inf

from tagsmith.core.base.jit import ZERO, inlined, kernel
from tagsmith.core.inference.tree.scratch import Floats, Integers, Spans, TreeScratch, row_width


@kernel
def projective_tree(scores: Floats, single_root: bool, s: TreeScratch, heads: Integers) -> float:
    """Write the heads of the best projective tree to `heads`, -1 at the root; return its score."""
    p, n = s.spans, scores.shape[0] - 1
    width = row_width(n)
    for t in range(n + 1):
        p.right[t * width + t] = p.left[t * width + t] = 0.0
        for begin in range(t - 1, 0, -1):
            _fill(scores, p, begin, t, width)
        if t > 0 and not single_root:
            _fill_root(scores, p, t, width)
    heads[0] = -1
    depth = ZERO
    if single_root:
        child = _only_child(scores, p, n, width)
        heads[child] = 0
        depth = _push(p, depth, child, 1)
        depth = _push(p, depth, child, n)
    else:
        depth = _push(p, depth, 0, n)
    _trace(p, depth, width, heads)
    total = 0.0
    for m in range(1, n + 1):
        total += scores[heads[m], m]
    return total


@inlined
def _fill(scores: Floats, p: Spans, begin: int, t: int, width: int) -> None:
    """Fill in the span from `begin` to t. The three maxima are independent, so their loops are one."""
    from_begin, from_t = begin * width, t * width
    joined = p.right[from_begin + begin] + p.left[from_t + begin + 1]
    right = left = -inf
    for r in range(begin + 1, t):
        joined = max(joined, p.right[from_begin + r] + p.left[from_t + r + 1])
        right = max(right, p.arcs[from_begin + r] + p.right[from_t + r])
        left = max(left, p.left[from_begin + r] + p.arcs[from_t + r])
    forth, back = joined + scores[begin, t], joined + scores[t, begin]
    p.arcs[from_begin + t], p.arcs[from_t + begin] = forth, back
    p.right[from_begin + t] = p.right[from_t + begin] = max(right, forth)
    p.left[from_begin + t] = p.left[from_t + begin] = max(left, back)


@inlined
def _fill_root(scores: Floats, p: Spans, t: int, width: int) -> None:
    """Fill in the span from the root to t."""
    joined = right = -inf
    for r in range(t):
        joined = max(joined, p.right[r] + p.left[t * width + r + 1])
    p.arcs[t] = joined + scores[0, t]
    for r in range(1, t + 1):
        right = max(right, p.arcs[r] + p.right[t * width + r])
    p.right[t] = p.right[t * width] = right


@inlined
def _only_child(scores: Floats, p: Spans, n: int, width: int) -> int:
    child, best = 1, -inf
    for r in range(1, n + 1):
        score = scores[0, r] + p.left[width + r] + p.right[n * width + r]
        if score > best:
            child, best = r, score
    return child


@inlined
def _push(p: Spans, depth: int, head: int, end: int) -> int:
    """Push the complete span with this head that reaches to `end`, unless it is the head alone."""
    if head == end:
        return depth
    p.stack[2 * depth], p.stack[2 * depth + 1] = head, end
    return depth + 1


@inlined
def _best(a: Floats, a_at: int, b: Floats, b_at: int, first: int, stop: int) -> int:
    """Return the r in first..stop-1 with the highest a[a_at + r] + b[b_at + r]."""
    winner, best = first, -inf
    for r in range(first, stop):
        if a[a_at + r] + b[b_at + r] > best:
            winner, best = r, a[a_at + r] + b[b_at + r]
    return winner


@inlined
def _trace(p: Spans, depth: int, width: int, heads: Integers) -> None:
    """Write the arcs in all spans on the stack. They never share two neighbouring words, so they are at most n."""
    while depth > 0:
        depth -= 1
        head, end = p.stack[2 * depth], p.stack[2 * depth + 1]
        if head < end:
            m = _best(p.arcs, head * width, p.right, end * width, head + 1, end + 1)
        else:
            m = _best(p.left, end * width, p.arcs, head * width, end, head)
        heads[m] = head
        low, high = min(head, m), max(head, m)
        split = _best(p.right, low * width, p.left, high * width + 1, low, high)
        depth = _push(p, depth, m, end)
        depth = _push(p, depth, low, split)
        depth = _push(p, depth, high, split + 1)
