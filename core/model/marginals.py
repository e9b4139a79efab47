"""How sure a model is: the probability of every label at every token."""

from math import isnan

import numpy as np
from numpy.typing import NDArray

from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Chain, Edges
from core.jit import kernel
from core.model.tagger import Coded, Extra, RichWeights, Scratch, Tagger, Weights, score, score_edges


@kernel
def _scored(
    w: Weights, rich: RichWeights, codes: NDArray[np.int32], x: Extra, begin: int, end: int, e: Edges, c: Chain,
    s: Scratch, labels: int, width: int,
) -> Edges:  # fmt: skip
    """Score the sentence `begin:end` into the chain, whose arrays are those of `s`; returns its transitions."""
    score(w, codes, x, begin, end, width, s)
    if c.matrices.shape[0] == 0:
        return e
    score_edges(w, rich, codes, begin, end, s)
    return ch.edges_of_tokens(e, c, labels, width)


@kernel
def _marginals(
    w: Weights, rich: RichWeights, codes: NDArray[np.int32], x: Extra, offsets: NDArray[np.int64], e: Edges, c: Chain,
    s: Scratch, out: NDArray[np.float32],
) -> None:  # fmt: skip
    """p(y_t) of every token into `out` (tokens, labels)."""
    labels, width = out.shape[1], c.pairs.shape[0] // out.shape[1]
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        n = end - begin
        if n == 0:
            continue
        own = _scored(w, rich, codes, x, begin, end, e, c, s, labels, width)
        if not isnan(ch.exponentiate(c, 0, n, own, 0.0, labels, width)):
            ch.forward(c, 0, n, own, labels, width)
            ch.backward(c, 0, n, own, labels, width)
        else:
            # Scores too far apart for these sums: again by their logarithms.
            _scored(w, rich, codes, x, begin, end, e, c, s, labels, width)
            ch.log_forward(c, 0, n, own, labels, width)
            ch.log_backward(c, 0, n, own, False, labels, width)
        for t in range(n):
            for y in range(labels):
                out[begin + t, y] = c.beta[t * width + y]


def marginals(tagger: Tagger, coded: Coded) -> NDArray[np.float32]:
    """The probability of each label at each token, (tokens, labels)."""
    labels, width = len(tagger.labels), v.padded(len(tagger.labels))
    longest = max(int(np.max(np.diff(coded.offsets), initial=0)), 1)
    e = ch.edges(labels, np.float32)
    c = ch.chain(longest, labels, np.float32, rich=tagger.model.edges is not None)
    e.scores[:] = tagger.weights.transitions
    ch.set_edges(labels, width, e)
    scratch = tagger.scratch(longest)._replace(scores=c.psi, matrices=c.matrices)
    out = np.zeros((int(coded.offsets[-1]), labels), np.float32)
    _marginals(
        tagger.weights, tagger.rich, coded.codes, coded.extra, coded.offsets, e, c, scratch, out
    )  # fmt: skip
    return out
