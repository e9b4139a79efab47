"""log Z and arc marginals of all projective trees: inside-outside on Eisner's spans in log space, O(n^3).

Inside. The recursions of `projective` with sums instead of maxima. Each projective tree has one derivation, so with
(+) for log(exp a + exp b),
    joined(s, t) = (+)_{s <= r < t} right(s, r) + left(r + 1, t)
    arc(s, t)    = score(s, t) + joined(s, t),   arc(t, s) = score(t, s) + joined(s, t)
    right(s, t)  = (+)_{s < r <= t} arc(s, r) + right(r, t)
    left(s, t)   = (+)_{s <= r < t} left(s, r) + arc(t, r)
and log Z = right(0, n), or with a single root log Z = (+)_r score(0, r) + left(1, r) + right(r, n).

Outside. The derivative of log Z with respect to an item is the probability that a tree contains it (Eisner 2016,
"Inside-outside and forward-backward algorithms are just backprop"). Each sum passes its own derivative on to its terms,
in proportion to them: term r of right(s, t) gets
    out(right(s, t)) exp(arc(s, r) + right(r, t) - right(s, t))
The outputs are sums of probabilities, which need no logarithms. The derivative of arc(h, m) is the marginal of the arc.

The highest score of an arc into each word is subtracted first, to keep precision for differences.
"""

from math import exp, inf, log

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inlined, inner, kernel
from tagsmith.core.inference.tree.scratch import Floats, Spans, TreeScratch, row_width

#: A term of a sum that adds nothing.
_NOTHING = -1e30


@kernel
def projective_log_z(scores: Floats, single_root: bool, s: TreeScratch) -> float:
    """Return log Z of all projective trees."""
    return _inside(scores, single_root, s.spans)


@kernel
def projective_marginals(scores: Floats, single_root: bool, s: TreeScratch, marginals: Floats) -> float:
    """Write the probability of each arc to `marginals`; return log Z of all projective trees."""
    p, n = s.spans, scores.shape[0] - 1
    width = row_width(n)
    log_z = _inside(scores, single_root, p)
    for k in range((n + 1) * width):
        p.right_out[k] = p.left_out[k] = p.arcs_out[k] = 0.0
    if single_root:
        total = _root_terms(scores, p, n, width)
        _pass_on(p, n, total, 1.0, p.left_out, width + 1, p.right_out, n * width + 1)
        for r in range(1, n + 1):
            p.arcs_out[r] = exp(p.line[r - 1] - total)
    else:
        p.right_out[n] = 1.0
    for t in range(n, 0, -1):
        if not single_root:
            _out(p, ZERO, t, width)
        for begin in range(1, t):
            _out(p, begin, t, width)
    for h in range(n + 1):
        for m in range(n + 1):
            marginals[h, m] = min(p.arcs_out[h * width + m], 1.0) if m not in (0, h) else 0.0
    return log_z


@inner
def _inside(scores: Floats, single_root: bool, p: Spans) -> float:
    """Fill in all spans; return log Z."""
    n = scores.shape[0] - 1
    width = row_width(n)
    total = 0.0
    for m in range(1, n + 1):
        top = -inf
        for h in range(n + 1):
            if h != m:
                top = max(top, scores[h, m])
        p.shifts[m] = top
        total += top
    for t in range(n + 1):
        p.right[t * width + t] = p.left[t * width + t] = 0.0
        for begin in range(t - 1, -1 if not single_root else 0, -1):
            _fill(scores, p, begin, t, width)
    return total + (_root_terms(scores, p, n, width) if single_root else p.right[n])


@inner
def _fill(scores: Floats, p: Spans, begin: int, t: int, width: int) -> None:
    """Fill in the span from `begin` to t. No arc enters the root."""
    from_begin, from_t, terms = begin * width, t * width, t - begin
    joined = _log_sum(p, p.right, from_begin + begin, p.left, from_t + begin + 1, terms)
    p.joined[from_begin + t] = joined
    p.arcs[from_begin + t] = joined + (scores[begin, t] - p.shifts[t])
    right = _log_sum(p, p.arcs, from_begin + begin + 1, p.right, from_t + begin + 1, terms)
    p.right[from_begin + t] = p.right[from_t + begin] = right
    if begin > 0:
        p.arcs[from_t + begin] = joined + (scores[t, begin] - p.shifts[begin])
        left = _log_sum(p, p.left, from_begin + begin, p.arcs, from_t + begin, terms)
        p.left[from_begin + t] = p.left[from_t + begin] = left


@inlined
def _root_terms(scores: Floats, p: Spans, n: int, width: int) -> float:
    """Write the terms of log Z with a single root to `line`; return their log sum."""
    top = -inf
    for r in range(1, n + 1):
        p.line[r - 1] = (scores[0, r] - p.shifts[r]) + p.left[width + r] + p.right[n * width + r]
        top = max(top, p.line[r - 1])
    return _log_sum_of_line(p, n, top)


@inlined
def _log_sum(p: Spans, a: Floats, a_at: int, b: Floats, b_at: int, terms: int) -> float:
    """Return the log-sum-exp of a[a_at + i] + b[b_at + i]."""
    if terms == 1:
        return float(a[a_at] + b[b_at])
    top = -inf
    for i in range(terms):
        p.line[i] = a[a_at + i] + b[b_at + i]
        top = max(top, p.line[i])
    return _log_sum_of_line(p, terms, top)


@inlined
def _log_sum_of_line(p: Spans, terms: int, top: float) -> float:
    _end_line(p, terms)
    top_v, mass = v.splat(top), v.zero(p.line)
    for i in range(0, terms, v.LANES):
        mass = v.add(mass, v.exp(v.subtract(v.load(p.line, i), top_v)))
    return float(top + log(v.total(mass)))


@inlined
def _end_line(p: Spans, terms: int) -> None:
    """Fill the last vector of the line with terms that add nothing."""
    for i in range(terms, terms // v.LANES * v.LANES + v.LANES):
        p.line[i] = _NOTHING


@inner
def _out(p: Spans, begin: int, t: int, width: int) -> None:
    """Pass the derivatives of the span from `begin` to t on to its parts. All larger spans are done."""
    from_begin, from_t, terms = begin * width, t * width, t - begin
    out = p.right_out[from_begin + t] + p.right_out[from_t + begin]
    if out > 0.0:
        _terms(p, p.arcs, from_begin + begin + 1, p.right, from_t + begin + 1, terms)
        total = p.right[from_begin + t]
        _pass_on(p, terms, total, out, p.arcs_out, from_begin + begin + 1, p.right_out, from_t + begin + 1)
    out = p.left_out[from_begin + t] + p.left_out[from_t + begin]
    if begin > 0 and out > 0.0:
        _terms(p, p.left, from_begin + begin, p.arcs, from_t + begin, terms)
        total = p.left[from_begin + t]
        _pass_on(p, terms, total, out, p.left_out, from_begin + begin, p.arcs_out, from_t + begin)
    out = p.arcs_out[from_begin + t]
    if begin > 0:
        out += p.arcs_out[from_t + begin]
    if out > 0.0:
        _terms(p, p.right, from_begin + begin, p.left, from_t + begin + 1, terms)
        total = p.joined[from_begin + t]
        _pass_on(p, terms, total, out, p.right_out, from_begin + begin, p.left_out, from_t + begin + 1)


@inlined
def _terms(p: Spans, a: Floats, a_at: int, b: Floats, b_at: int, terms: int) -> None:
    """Write a[a_at + i] + b[b_at + i] to the line."""
    for i in range(0, terms, v.LANES):
        v.store(p.line, i, v.add(v.load(a, a_at + i), v.load(b, b_at + i)))


@inlined
def _pass_on(
    p: Spans, terms: int, total: float, out: float, a: Floats, a_at: int, b: Floats, b_at: int
) -> None:
    """Add out * exp(line[i] - total) to a[a_at + i] and b[b_at + i].

    The last vector can reach beyond the terms. What it adds there is below 1e-307.
    """
    _end_line(p, terms)
    total_v, out_v = v.splat(total), v.splat(out)
    for i in range(0, terms, v.LANES):
        share = v.multiply(out_v, v.exp(v.subtract(v.load(p.line, i), total_v)))
        v.store(a, a_at + i, v.add(v.load(a, a_at + i), share))
        v.store(b, b_at + i, v.add(v.load(b, b_at + i), share))
