"""Sums over all labellings of one chain: log Z, marginals, expected transitions. Scaled, with log space as fallback.

Only this module chooses between the two methods. Scaling is fast, but fails for scores that differ too much (`chain`
has the bound). Log space is slow and never fails. Scaling overwrites the scores, so the caller must compute them again
after a failure:

    log_z = by_scaling(...)
    if isnan(log_z):
        ...  # compute the scores again
        log_z = by_logarithms(...)

A structure other than a chain would also be added here. The input is scores in buffers. The output is log Z and
marginals in buffers. No trainer depends on the structure in between.
"""

from enum import IntEnum
from math import isnan, nan
from typing import Any

from tagsmith.core.base.jit import inner, keep_apart
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference import log_chain
from tagsmith.core.inference.chain import Chain, Edges


class Sums(IntEnum):
    """Which sums to compute; each member includes the previous ones."""

    LOG_Z = 0
    MARGINALS = 1  # written to `beta`
    PAIRS = 2  # expected transitions, added to `pairs`; with rich edges also per token, in `matrices`


@inner
def by_scaling(
    c: Chain, at: Any, n: Any, e: Edges, shift: float, sums: Sums, labels: int, width: int
) -> float:
    """Return log Z for the scores in `psi`, `matrices` and `e`; NaN if log space is required.

    `shift` belongs to the transitions that all tokens share (see `set_edges`).
    """
    shifts = ch.exponentiate(c, at, n, e, shift, labels, width)
    if isnan(shifts):
        return nan
    log_z = ch.forward(c, at, n, e, labels, width) + shifts
    if sums == Sums.LOG_Z and ch.surely_kept(e):
        return float(log_z)
    ch.backward(c, at, n, e, labels, width)
    if not ch.kept(c, at, n, e, width):
        return nan
    if sums == Sums.PAIRS:
        ch.add_pairs(c, at, n, e, labels, width)
    return float(log_z)


@inner
def by_logarithms(c: Chain, at: Any, n: Any, e: Edges, sums: Sums, labels: int, width: int) -> float:
    """Return log Z, computed in log space, for any scores."""
    keep_apart()
    log_z = log_chain.log_forward(c, at, n, e, labels, width)
    if sums != Sums.LOG_Z:
        log_chain.log_backward(c, at, n, e, sums == Sums.PAIRS, labels, width)
    return float(log_z)
