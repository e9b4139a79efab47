"""Forward-backward in log space, in the buffers of `chain`, for scores that differ too much for scaling."""

from math import log
from typing import Any

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import inlined, kernel
from tagsmith.core.inference.chain import Chain, Edges, Floats, clear_padding

#: Finite replacement for log(0), so that additions are safe.
_NOTHING = -1e30


@inlined
def _keep_if(wanted: bool, out: Floats, at: int, value: Any) -> None:
    if wanted:
        v.store(out, at, value)


@inlined
def _log_sum(x: Floats, at: Any, labels: int, width: int) -> float:
    """Return the log-sum-exp of one row, whose padding is about `_NOTHING`."""
    top = x[at]
    for j in range(1, labels):
        top = max(top, x[at + j])
    top_v, mass = v.splat(top), v.zero(x)
    for j in range(0, width, v.LANES):
        mass = v.add(mass, v.exp(v.subtract(v.load(x, at + j), top_v)))
    return float(top) + log(float(v.total(mass)))


@inlined
def _lowered(x: Floats, at: Any, labels: int) -> float:
    """Subtract the maximum of a row from all its entries, to keep precision for differences. Return the maximum."""
    top = x[at]
    for j in range(1, labels):
        top = max(top, x[at + j])
    for j in range(labels):
        x[at + j] -= top
    return float(top)


@kernel
def log_forward(c: Chain, at: int, n: int, e: Edges, labels: int, width: int) -> float:
    """Fill `alpha` with log sums of the scores in `psi`, each row up to a constant; return log Z.

    Overwrites `beta`.
    """
    log_z = 0.0
    for t in range(at, at + n):
        row = t * width
        for j in range(0, width, v.LANES):
            if t == at:
                v.store(c.alpha, row + j, v.load(c.psi, row + j))
                continue
            before, into = row - width, t * e.step + j
            top = v.add(v.splat(c.alpha[before]), v.load(e.scores, into))
            for i in range(1, labels):
                top = v.maximum(top, v.add(v.splat(c.alpha[before + i]), v.load(e.scores, into + i * width)))
            mass = v.zero(c.alpha)
            for i in range(labels):
                edge = v.add(v.splat(c.alpha[before + i]), v.load(e.scores, into + i * width))
                mass = v.add(mass, v.exp(v.subtract(edge, top)))
            v.store(c.alpha, row + j, v.add(v.load(c.psi, row + j), top))
            v.store(c.beta, row + j, mass)
        if t > at:
            for j in range(labels):
                c.alpha[row + j] = float(c.alpha[row + j]) + log(float(c.beta[row + j]))
        log_z += _lowered(c.alpha, row, labels)
        for j in range(labels, width):
            c.alpha[row + j] = _NOTHING
    return log_z + _log_sum(c.alpha, (at + n - 1) * width, labels, width)


@inlined
def _edges_from(c: Chain, t: int, i: int, e: Edges, labels: int, width: int) -> float:
    """Write to `beta` the scores of the edges out of label i of row t, plus all that follows. Return their log sum."""
    for j in range(0, width, v.LANES):
        edge = v.add(v.load(e.scores, (t + 1) * e.step + i * width + j), v.load(c.psi, (t + 1) * width + j))
        v.store(c.beta, t * width + j, edge)
    return _log_sum(c.beta, t * width, labels, width)


@kernel
def log_backward(c: Chain, at: int, n: int, e: Edges, pairs: bool, labels: int, width: int) -> None:
    """After `log_forward`: write the marginals to `beta`; if `pairs`, add the expected transitions to `c.pairs`.

    `psi` becomes score + b of its token, up to a constant, which is the only input that the previous token needs. Its
    padding is so low that it contributes nothing. `alpha` becomes the logarithm of the marginals. Each token is
    normalised separately, so its marginals are a distribution for scores of any size. With one matrix per token, the
    matrix is replaced by the probabilities of the transitions into the token.
    """
    kind = c.psi.dtype.type
    for t in range(at + n - 1, at - 1, -1):
        row, last = t * width, t == at + n - 1
        for i in range(labels):
            b = 0.0 if last else _edges_from(c, t, i, e, labels, width)
            c.psi[row + i] = float(c.psi[row + i]) + b
            c.alpha[row + i] = float(c.alpha[row + i]) + b
        norm = _log_sum(c.alpha, row, labels, width)
        for i in range(labels):
            c.alpha[row + i] = float(c.alpha[row + i]) - norm
        if pairs and not last:
            for i in range(labels):
                b = _edges_from(c, t, i, e, labels, width)
                away = v.splat(kind(float(c.alpha[row + i]) - b))
                for j in range(0, width, v.LANES):
                    k = i * width + j
                    p = v.exp(v.add(v.load(c.beta, row + j), away))
                    v.store(c.pairs, k, v.add(v.load(c.pairs, k), p))
                    _keep_if(e.step > 0, e.scores, (t + 1) * e.step + k, p)
            if e.step > 0:
                clear_padding(e.scores, (t + 1) * e.step, labels, width)
        for j in range(0, width, v.LANES):
            v.store(c.beta, row + j, v.exp(v.load(c.alpha, row + j)))
        _lowered(c.psi, row, labels)
        for j in range(labels, width):
            c.beta[row + j] = 0
            c.psi[row + j] = _NOTHING
    clear_padding(c.pairs, 0, labels, width)
