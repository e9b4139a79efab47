"""Decoding beyond the best labels: probabilities of labels and spans, entropies, n-best lists, constraints.

Scores are float32, the same as in tagging. Sums over labellings are float64, so that the probabilities of a list of
labellings add up to at most 1. Models that were not trained as probabilistic models (margin trainers, perceptrons) use
the same softmax over scores: it ranks labellings well, but its values are not calibrated.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import ZERO, inlined, inner, kernel
from tagsmith.core.corpus.labels.chunks import ChunkRules
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference.chain import Chain, Edges, Floats
from tagsmith.core.inference.constraints import IMPOSSIBLE, Allowed, anything, restrict, restrict_edges
from tagsmith.core.inference.entropy import entropy
from tagsmith.core.inference.nbest import Lists, lists, nbest
from tagsmith.core.inference.posterior import Sums, by_logarithms, by_scaling
from tagsmith.core.inference.span_posterior import ChunkTables, Walk, span_probabilities
from tagsmith.core.model.tagger import (
    Coded,
    EdgeWeights,
    Tagger,
    TaggingScratch,
    TaggingWeights,
    score,
    score_edges,
)


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """What to compute besides the best labels."""

    #: Number of labellings to list.
    nbest: int = 1
    #: Choose the labels with the lowest expected number of errors instead of the most probable labelling.
    posterior: bool = False
    probabilities: bool = False
    #: Compute the probability of every label at every token.
    distributions: bool = False
    #: Compute the probability of each span of the chosen labels.
    spans: bool = False
    #: Compute the entropy of the labelling of each sentence.
    entropies: bool = False

    @property
    def sums(self) -> bool:
        """Whether the options need a sum over all labellings."""
        marginal = self.posterior or self.probabilities or self.distributions
        return self.nbest > 1 or marginal or self.spans or self.entropies


@dataclass(frozen=True, eq=False, slots=True)
class Decoded:
    """The results of decoding. Arrays that the options do not include are empty."""

    labels: NDArray[np.int32]  # (tokens,)
    feasible: NDArray[np.bool_]  # (sentences,) whether any labelling satisfies the constraints
    log_probabilities: NDArray[np.float64]  # (sentences,) of the chosen labels
    probabilities: NDArray[np.float64]  # (sentences,) of the chosen labels; 0 if too small for a float64
    marginals: NDArray[np.float32]  # (tokens,) of the chosen label of each token
    distributions: NDArray[np.float32]  # (tokens, labels)
    paths: NDArray[np.int32]  # (nbest, tokens)
    path_counts: NDArray[np.int64]  # (sentences,) number of paths of each sentence
    path_scores: NDArray[np.float64]  # (sentences, nbest) log probabilities up to a constant of the sentence
    path_probabilities: NDArray[np.float64]  # (sentences, nbest)
    span_probabilities: NDArray[np.float64]  # (tokens,) at the first token of each span, 0 elsewhere
    entropies: NDArray[np.float64]  # (sentences,) in nats


class DecodingScratch(NamedTuple):
    """Buffers of one call of the decoding kernel."""

    scratch: TaggingScratch
    kept: Floats  # (longest * width,) scores under the constraints
    transitions: Floats  # (Y * width,) transitions shared by all tokens, under the constraints
    edges: Edges
    chain: Chain
    lists: Lists
    shift: float
    chunks: ChunkTables
    mass: Floats  # (3 * width,) for the probabilities of spans, and for entropies
    logs: NDArray[np.bool_]  # (1,) whether the sums of the sentence were computed in log space


class DecodingOutput(NamedTuple):
    """Arrays that the decoding kernel fills; see `Decoded`."""

    labels: NDArray[np.int32]
    feasible: NDArray[np.bool_]
    scores: NDArray[np.float64]  # (sentences,) of the chosen labels
    log_z: NDArray[np.float64]  # (sentences,)
    marginals: NDArray[np.float32]
    distributions: NDArray[np.float32]
    paths: NDArray[np.int32]
    path_counts: NDArray[np.int64]
    totals: NDArray[np.float64]  # (sentences, nbest) scores of the paths
    spans: NDArray[np.float64]  # (tokens,) or empty
    entropies: NDArray[np.float64]  # (sentences,) or empty


@inlined
def _put_scores(n: int, edges: bool, work: DecodingScratch, size: int, width: int) -> None:
    """Put the scores of the sentence into the chain; `size` is that of a matrix of transitions."""
    c = work.chain
    for k in range(n * width):
        c.psi[k] = work.kept[k]
    if edges:
        for k in range(size, n * size):
            c.matrices[k] = work.scratch.matrices[k]


@kernel
def _posterior(w: TaggingWeights, n: int, edges: bool, work: DecodingScratch) -> float:
    """Fill `chain.beta` with the marginals of the chain whose scores are in `kept`; return log Z."""
    c, labels, width = work.chain, w.label_count, w.width
    size = labels * width
    e = ch.edges_of_tokens(work.edges, c, labels, width) if edges else work.edges
    _put_scores(n, edges, work, size, width)
    log_z = by_scaling(c, ZERO, n, e, work.shift, Sums.MARGINALS, labels, width)
    work.logs[0] = isnan(log_z)
    if work.logs[0]:
        # The scores are too far apart for sums of exponentials, as under constraints.
        _put_scores(n, edges, work, size, width)
        log_z = by_logarithms(c, ZERO, n, e, Sums.MARGINALS, labels, width)
    return log_z


@inlined
def _scored(
    w: TaggingWeights, edges: EdgeWeights, x: Coded, begin: int, n: int, a: Allowed, work: DecodingScratch
) -> Any:
    """Score a sentence under the constraints; return its transitions and the step from one token's to the next."""
    s, labels, width = work.scratch, w.label_count, w.width
    score(w, x, begin, begin + n, s)
    restrict(s.scores, n, a, begin, labels, width)
    for k in range(n * width):
        work.kept[k] = s.scores[k]
    if s.matrices.shape[0] == 0:
        return work.transitions, 0
    score_edges(w, edges, x, begin, begin + n, s)
    restrict_edges(s.matrices, n, a)
    return s.matrices, labels * width


@inner
def _sum_up(
    w: TaggingWeights,
    sentence: int,
    begin: int,
    n: int,
    a: Allowed,
    posterior: bool,
    work: DecodingScratch,
    out: DecodingOutput,
) -> None:
    """Compute what needs a sum over all labellings of the scored sentence."""
    s, beta, labels, width = work.scratch, work.chain.beta, w.label_count, w.width
    out.log_z[sentence] = _posterior(w, n, s.matrices.shape[0] > 0, work)
    if posterior:
        # The best path through the marginals has the highest expected number of correct labels.
        for k in range(n * width):
            s.scores[k] = beta[k]
        restrict(s.scores, n, a, begin, labels, width)
        ch.viterbi(s.scores, n, a.pairs, 0, labels, width, out.labels, begin)
    for t in range(n):
        out.marginals[begin + t] = beta[t * width + out.labels[begin + t]]
    if out.spans.shape[0] > 0 or out.entropies.shape[0] > 0:
        c = work.chain
        e = ch.edges_of_tokens(work.edges, c, labels, width) if s.matrices.shape[0] > 0 else work.edges
        walk = Walk(c, e, work.chunks, work.mass, n, work.logs[0], labels, width)
        if out.spans.shape[0] > 0:
            span_probabilities(walk, out.labels, begin, out.spans)
        if out.entropies.shape[0] > 0:
            out.entropies[sentence] = entropy(walk)
    if out.distributions.shape[0] > 0:
        for t in range(n):
            for y in range(labels):
                out.distributions[begin + t, y] = beta[t * width + y]


@kernel
def _decode(
    w: TaggingWeights,
    edges: EdgeWeights,
    x: Coded,
    a: Allowed,
    sums: bool,
    posterior: bool,
    work: DecodingScratch,
    out: DecodingOutput,
) -> None:
    s, labels, width = work.scratch, w.label_count, w.width
    for sentence in range(x.offsets.shape[0] - 1):
        begin, n = x.offsets[sentence], x.offsets[sentence + 1] - x.offsets[sentence]
        out.feasible[sentence] = True
        if n == 0:
            out.path_counts[sentence] = 1
            continue
        transitions, step = _scored(w, edges, x, begin, n, a, work)
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
            _sum_up(w, sentence, begin, n, a, posterior, work, out)
        chosen = Edges(transitions, transitions, transitions, transitions, step)
        out.scores[sentence] = ch.gold_score(work.kept, ZERO, out.labels, begin, n, chosen, width)


def decode(tagger: Tagger, coded: Coded, options: DecodingOptions, allowed: Allowed | None = None) -> Decoded:
    """Decode each sentence, among the labellings that are allowed."""
    labels = len(tagger.model.labels)
    a = allowed or anything(labels)
    tokens, sentences = int(coded.offsets[-1]), len(coded.offsets) - 1
    k = options.nbest if options.nbest > 1 else 0
    out = DecodingOutput(
        labels=np.empty(tokens, np.int32),
        feasible=np.empty(sentences, np.bool_),
        scores=np.zeros(sentences),
        log_z=np.zeros(sentences),
        marginals=np.empty(tokens if options.sums else 0, np.float32),
        distributions=np.empty((tokens if options.distributions else 0, labels), np.float32),
        paths=np.zeros((k, tokens), np.int32),
        path_counts=np.zeros(sentences, np.int64),
        totals=np.zeros((sentences, k)),
        spans=np.empty(tokens if options.spans else 0),
        entropies=np.zeros(sentences if options.entropies else 0),
    )
    work = _scratch(tagger, coded.longest, k, a, options.sums)
    _decode(tagger.weights, tagger.edge_weights, coded, a, options.sums, options.posterior, work, out)
    log_probabilities = np.minimum(out.scores - out.log_z, 0.0) if options.sums else np.empty(0)
    return Decoded(
        out.labels,
        out.feasible,
        log_probabilities,
        np.exp(log_probabilities),
        out.marginals,
        out.distributions,
        out.paths,
        out.path_counts,
        out.totals,
        np.minimum(np.exp(out.totals - out.log_z[:, None]), 1.0),
        out.spans,
        out.entropies,
    )


def _scratch(tagger: Tagger, longest: int, k: int, a: Allowed, sums: bool) -> DecodingScratch:
    labels = len(tagger.model.labels)
    rows = max(longest, 1) if sums else 1
    edges = ch.edges(labels, np.float64)
    transitions = tagger.weights.transitions + a.pairs
    edges.scores[:] = transitions
    shift = ch.set_edges(labels, tagger.width, edges)
    return DecodingScratch(
        scratch=tagger.scratch(longest),
        kept=np.empty(longest * tagger.width, np.float32),
        transitions=transitions,
        edges=edges,
        chain=ch.chain(rows, labels, np.float64, rich=tagger.model.edges is not None),
        lists=lists(longest if k else 0, labels, k),
        shift=shift,
        chunks=_chunk_tables(tagger.model.labels),
        mass=np.empty(3 * tagger.width),
        logs=np.zeros(1, np.bool_),
    )


@lru_cache(maxsize=64)
def _chunk_tables(labels: tuple[str, ...]) -> ChunkTables:
    """Return where chunks of these labels start and end, as `spans_of` reads them."""
    rules = ChunkRules.of(labels)
    ids = np.arange(len(labels) + 1)
    before, here = (each.reshape(-1) for each in np.meshgrid(ids, ids, indexing="ij"))
    shape = (ids.size, ids.size)
    starts, ends = rules.starts(before, here).reshape(shape), rules.ends(before, here).reshape(shape)
    return ChunkTables(starts, starts | ends, rules.types)
