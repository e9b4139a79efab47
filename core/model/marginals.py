"""How sure a model is: the probability of every label at every token."""

from math import isnan

import numpy as np
from numpy.typing import NDArray

from core.errors import Unsupported
from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Chain, Edges
from core.jit import kernel
from core.model.tagger import Coded, Extra, Scratch, Tagger, Weights, score


@kernel
def _marginals(
    w: Weights, codes: NDArray[np.int32], x: Extra, offsets: NDArray[np.int64], e: Edges, c: Chain, s: Scratch,
    out: NDArray[np.float32],
) -> None:  # fmt: skip
    """p(y_t) of every token into `out` (tokens, labels)."""
    labels, width = out.shape[1], c.pairs.shape[0] // out.shape[1]
    for sentence in range(offsets.shape[0] - 1):
        begin, n = offsets[sentence], offsets[sentence + 1] - offsets[sentence]
        if n == 0:
            continue
        score(w, codes, x, begin, begin + n, width, s)
        for k in range(n * width):
            c.psi[k] = s.scores[k]
        if not isnan(ch.exponentiate(c, 0, n, e, 0.0, labels, width)):
            ch.forward(c, 0, n, e, labels, width)
            ch.backward(c, 0, n, e, labels, width)
        else:
            # Scores too far apart for these sums: again by their logarithms.
            for k in range(n * width):
                c.psi[k] = s.scores[k]
            ch.log_forward(c, 0, n, e, labels, width)
            ch.log_backward(c, 0, n, e, False, labels, width)
        for t in range(n):
            for y in range(labels):
                out[begin + t, y] = c.beta[t * width + y]


def marginals(tagger: Tagger, coded: Coded) -> NDArray[np.float32]:
    """The probability of each label at each token, (tokens, labels)."""
    if tagger.model.edges is not None:
        raise Unsupported("Probabilities of models with templates of label pairs are not computed yet")
    labels, width = len(tagger.labels), v.padded(len(tagger.labels))
    longest = int(np.max(np.diff(coded.offsets), initial=0))
    e, c = ch.edges(labels, np.float32), ch.chain(max(longest, 1), labels, np.float32)
    e.scores[:] = tagger.weights.transitions
    ch.set_edges(labels, width, e)
    out = np.zeros((int(coded.offsets[-1]), labels), np.float32)
    _marginals(
        tagger.weights, coded.codes, coded.extra, coded.offsets, e, c, tagger.scratch(longest), out
    )  # fmt: skip
    return out
