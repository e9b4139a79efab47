"""All that a chain can tell beside its best labels: probabilities, the next best, what is best under constraints.

Scores are those of tagging, in float32. Sums over labellings are taken in float64, so that the probabilities of a list
of labellings add up to no more than 1. Of models that were not trained for probabilities (margins, perceptrons) they
are the same softmax over scores: they order labellings well, and are no frequencies.
"""

from dataclasses import dataclass
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import chain as ch
from core.inference import log_chain
from core.inference.chain import Chain, Edges, Floats
from core.inference.constraints import IMPOSSIBLE, Allowed, anything, restrict, restrict_edges
from core.inference.nbest import Lists, lists, nbest
from core.jit import ZERO, inlined, inner, kernel
from core.model.tagger import Coded, Extra, RichWeights, Scratch, Tagger, Weights, score, score_edges


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to find out: how many labellings, whether labels are those of least risk, and probabilities."""

    nbest: int = 1
    #: Choose the labels with the least expected number of wrong ones, rather than the most probable labelling.
    posterior: bool = False
    probabilities: bool = False
    #: Of every label at every token.
    distributions: bool = False

    @property
    def sums(self) -> bool:
        """Whether it takes a sum over all labellings."""
        return self.nbest > 1 or self.posterior or self.probabilities or self.distributions


@dataclass(frozen=True, eq=False, slots=True)
class Decoded:
    """What was found out; arrays of what was not wanted are empty."""

    labels: NDArray[np.int32]  # (tokens,)
    feasible: NDArray[np.bool_]  # (sentences,) whether any labelling keeps to the constraints
    probabilities: NDArray[np.float64]  # (sentences,) of the labels chosen
    marginals: NDArray[np.float32]  # (tokens,) of the label chosen at each token
    distributions: NDArray[np.float32]  # (tokens, labels)
    paths: NDArray[np.int32]  # (nbest, tokens)
    path_counts: NDArray[np.int64]  # (sentences,) how many of these each sentence has
    path_probabilities: NDArray[np.float64]  # (sentences, nbest)


class Work(NamedTuple):
    """What the kernel writes on the way; one call's own."""

    scratch: Scratch
    kept: Floats  # (longest * width,) scores under the constraints
    transitions: Floats  # (Y * width,) those of all tokens, under the constraints
    edges: Edges
    chain: Chain
    lists: Lists
    shift: float


class Found(NamedTuple):
    """What the kernel fills: see `Decoded`."""

    labels: NDArray[np.int32]
    feasible: NDArray[np.bool_]
    scores: NDArray[np.float64]  # (sentences,) of the labels chosen
    log_z: NDArray[np.float64]  # (sentences,)
    marginals: NDArray[np.float32]
    distributions: NDArray[np.float32]
    paths: NDArray[np.int32]
    path_counts: NDArray[np.int64]
    totals: NDArray[np.float64]  # (sentences, nbest) scores of the paths


@kernel
def _posterior(n: int, rich: bool, work: Work, labels: int, width: int) -> float:
    """Fill `chain.beta` with the marginals of the chain whose scores stand in `kept`; returns log Z."""
    c, size = work.chain, labels * width
    e = ch.edges_of_tokens(work.edges, c, labels, width) if rich else work.edges
    for attempt in range(2):
        for k in range(n * width):
            c.psi[k] = work.kept[k]
        if rich:
            for k in range(size, n * size):
                c.matrices[k] = work.scratch.matrices[k]
        if attempt == 0:
            shifts = ch.exponentiate(c, ZERO, n, e, work.shift, labels, width)
            if not isnan(shifts):
                log_z = shifts + ch.forward(c, ZERO, n, e, labels, width)
                ch.backward(c, ZERO, n, e, labels, width)
                if ch.kept(c, ZERO, n, e, width):
                    return log_z
    # Scores too far apart for these sums, as those of what is not allowed are: by their logarithms.
    log_z = log_chain.log_forward(c, ZERO, n, e, labels, width)
    log_chain.log_backward(c, ZERO, n, e, False, labels, width)
    return log_z


@inlined
def _scored(
    w: Weights, rich: RichWeights, codes: NDArray[np.int32], x: Extra, begin: int, n: int, a: Allowed, labels: int,
    width: int, work: Work,
) -> Any:  # fmt: skip
    """Score a sentence under the constraints; returns its transitions and the step from one token's to the next."""
    s = work.scratch
    score(w, codes, x, begin, begin + n, width, s)
    restrict(s.scores, n, a, begin, labels, width)
    for k in range(n * width):
        work.kept[k] = s.scores[k]
    if s.matrices.shape[0] == 0:
        return work.transitions, 0
    score_edges(w, rich, codes, begin, begin + n, s)
    restrict_edges(s.matrices, n, a)
    return s.matrices, labels * width


@inner
def _sum_up(
    sentence: int,
    begin: int,
    n: int,
    a: Allowed,
    posterior: bool,
    labels: int,
    width: int,
    work: Work,
    out: Found,
) -> None:
    """Fill in what takes the sum over all labellings of the sentence that was scored."""
    s, beta = work.scratch, work.chain.beta
    out.log_z[sentence] = _posterior(n, s.matrices.shape[0] > 0, work, labels, width)
    if posterior:
        # The best path through the marginals: the most labels right by expectation, among what is allowed.
        for k in range(n * width):
            s.scores[k] = beta[k]
        restrict(s.scores, n, a, begin, labels, width)
        ch.viterbi(s.scores, n, a.pairs, 0, labels, width, out.labels, begin)
    for t in range(n):
        out.marginals[begin + t] = beta[t * width + out.labels[begin + t]]
    if out.distributions.shape[0] > 0:
        for t in range(n):
            for y in range(labels):
                out.distributions[begin + t, y] = beta[t * width + y]


@kernel
def _decode(
    w: Weights, rich: RichWeights, codes: NDArray[np.int32], x: Extra, offsets: NDArray[np.int64], a: Allowed,
    sums: bool, posterior: bool, labels: int, width: int, work: Work, out: Found,
) -> None:  # fmt: skip
    s = work.scratch
    for sentence in range(offsets.shape[0] - 1):
        begin, n = offsets[sentence], offsets[sentence + 1] - offsets[sentence]
        out.feasible[sentence] = True
        if n == 0:
            out.path_counts[sentence] = 1
            continue
        transitions, step = _scored(w, rich, codes, x, begin, n, a, labels, width, work)
        top = ch.viterbi(s.scores, n, transitions, step, labels, width, out.labels, begin)
        if top <= IMPOSSIBLE:
            out.feasible[sentence] = False
            continue
        if out.totals.shape[1] > 0:
            out.path_counts[sentence] = nbest(
                work.kept, n, transitions, step, labels, width, work.lists, out.paths, begin, out.totals, sentence
            )  # fmt: skip
            for t in range(begin, begin + n):
                out.labels[t] = out.paths[0, t]
        if sums:
            _sum_up(sentence, begin, n, a, posterior, labels, width, work, out)
        chosen = Edges(transitions, transitions, transitions, transitions, step)
        out.scores[sentence] = ch.gold_score(work.kept, ZERO, out.labels, begin, n, chosen, width)


def decode(tagger: Tagger, coded: Coded, wanted: Wanted, allowed: Allowed | None = None) -> Decoded:
    """Find out what is wanted of each sentence, among the labellings that are allowed."""
    labels, width = len(tagger.model.labels), tagger.width
    a = allowed or anything(labels)
    tokens, sentences = int(coded.offsets[-1]), len(coded.offsets) - 1
    k = wanted.nbest if wanted.nbest > 1 else 0
    out = Found(
        labels=np.empty(tokens, np.int32),
        feasible=np.empty(sentences, np.bool_),
        scores=np.zeros(sentences),
        log_z=np.zeros(sentences),
        marginals=np.empty(tokens if wanted.sums else 0, np.float32),
        distributions=np.empty((tokens if wanted.distributions else 0, labels), np.float32),
        paths=np.zeros((k, tokens), np.int32),
        path_counts=np.zeros(sentences, np.int64),
        totals=np.zeros((sentences, k)),
    )
    _decode(
        tagger.weights, tagger.rich, coded.codes, coded.extra, coded.offsets, a, wanted.sums, wanted.posterior,
        labels, width, _work(tagger, coded.longest, k, a, wanted.sums), out,
    )  # fmt: skip
    return Decoded(
        out.labels,
        out.feasible,
        np.minimum(np.exp(out.scores - out.log_z), 1.0) if wanted.sums else np.empty(0),
        out.marginals,
        out.distributions,
        out.paths,
        out.path_counts,
        np.minimum(np.exp(out.totals - out.log_z[:, None]), 1.0),
    )


def _work(tagger: Tagger, longest: int, k: int, a: Allowed, sums: bool) -> Work:
    labels = len(tagger.model.labels)
    rows = max(longest, 1) if sums else 1
    edges = ch.edges(labels, np.float64)
    transitions = tagger.weights.transitions + a.pairs
    edges.scores[:] = transitions
    shift = ch.set_edges(labels, tagger.width, edges)
    return Work(
        scratch=tagger.scratch(longest),
        kept=np.empty(longest * tagger.width, np.float32),
        transitions=transitions,
        edges=edges,
        chain=ch.chain(rows, labels, np.float64, rich=tagger.model.edges is not None),
        lists=lists(longest if k else 0, labels, k),
        shift=shift,
    )
