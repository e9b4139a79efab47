"""The entropy of the labelling of a chain, exact and in nats.

Given the scores, the labels of a sentence form a Markov chain (see `span_posterior`). The chain rule of entropy gives
(Hernando et al. 2005, "Efficient computation of the hidden Markov model entropy for a given observation sequence"; Mann
and McCallum 2007 for conditional random fields)

    H(Y) = H(y_0) + sum_t sum_i p(y_{t-1} = i) H(y_t | y_{t-1} = i)

All terms are at least 0, so nothing cancels: also the entropy of an almost certain sentence is exact. The work is the
number of tokens times the number of label pairs, less those after labels that are all but impossible.
"""

from math import log

from tagsmith.core.base.jit import ZERO, inlined, inner
from tagsmith.core.inference.chain import Floats
from tagsmith.core.inference.span_posterior import Walk, weigh

#: What follows a label of lower probability is left out. It adds less than rounding does, and takes most of the time.
NEGLIGIBLE = 1e-18


@inlined
def _spread(weights: Floats, at: int, total: float, labels: int) -> float:
    """Return the entropy of the distribution proportional to `weights[at : at + labels]`, whose sum is `total`."""
    spread = 0.0
    for j in range(labels):
        p = weights[at + j] / total
        if p > 0:
            spread -= p * log(p)
    return spread


@inner
def entropy(w: Walk) -> float:
    """Return the entropy of the labelling of a chain after its marginals were computed."""
    beta, width, labels = w.chain.beta, w.width, w.labels
    first = 0.0
    for j in range(labels):
        first += beta[j]
    found = _spread(beta, ZERO, first, labels)
    for t in range(1, w.n):
        for i in range(labels):
            p = beta[(t - 1) * width + i]
            if p > NEGLIGIBLE:
                total = weigh(w, t, i)
                if total > 0:
                    found += p * _spread(w.mass, 2 * width, total, labels)
    return max(found, 0.0)
