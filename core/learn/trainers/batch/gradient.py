"""The loss of a whole corpus and its gradient, over the existing parameters.

    L(w) = sum_j -log p(y_j | x_j; w),   dL/dw_p = expected count of p - gold count of p

There are two sweeps. First, forward-backward over the sentences computes the marginals of every token. Then each
attribute sums the marginals of its tokens, and each edge attribute sums those of the transitions into its tokens. The
second sweep writes every entry of the gradient once. So threads need no private vectors and no fixed order, and the
result is the same, bit for bit, for any number of threads.

Sums over tokens always use float64. The chains use float32, which halves the memory traffic, with a relative error of
the loss near 1e-8. With `dtype` float64 the chains use float64 too, for full precision.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.arrays import offsets_of
from tagsmith.core.base.jit import ZERO, inlined, inner, kernel, readonly
from tagsmith.core.base.thread_pool import ThreadPool
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference.chain import Chain, Edges, Floats
from tagsmith.core.learn.problem.occurrences import Occurrences, edge_occurrences_of, occurrences_of
from tagsmith.core.learn.problem.problem import Problem, Sequences
from tagsmith.core.learn.trainers.batch.vectors import Vectors
from tagsmith.core.learn.weights.pairs import Pairs, gold_counts, pairs_of
from tagsmith.core.learn.weights.posterior import sequence_posterior
from tagsmith.core.learn.weights.rows import PLAIN, Scorer, load_edges, rows_of
from tagsmith.core.learn.weights.scoring import Weights

#: Tokens per piece of the first sweep, and cells (one attribute at one token) per piece of the second.
PIECE_TOKENS = 5_000
PIECE_CELLS = 100_000
#: Parameters per piece when weights are expanded to rows.
PIECE_PARAMETERS = 50_000
#: Distance in occurrences between prefetching marginals and adding them: about the memory latency.
AHEAD = 16


@kernel
def _expand(pairs: Pairs, w: NDArray[np.float64], first: int, last: int, width: int, rows: Floats) -> None:
    """Write rows `first:last` of the weights from the parameters. Entries without a parameter stay zero."""
    for row in range(first, last):
        for p in range(pairs.starts[row], pairs.starts[row + 1]):
            rows[row * width + pairs.labels[p]] = w[p]


class Marginals(NamedTuple):
    """The output of the first sweep."""

    tokens: Floats  # (tokens * width,) marginals of every token
    matrices: Floats  # (tokens * Y * width,) with rich edges, marginals of the transitions into every token
    pairs: NDArray[np.float64]  # (Y * width,) expected transitions


@kernel
def _posteriors(
    data: Sequences, first: int, last: int, m: Scorer, e: Edges, c: Chain, out: Marginals
) -> float:
    """Fill the marginals of sentences `first:last` and sum their expected transitions; return the loss."""
    size, width = m.layout.labels * m.layout.width, m.layout.width
    denormals = v.flush_denormals()
    loss = 0.0
    for sentence in range(first, last):
        begin, end = data.offsets[sentence], data.offsets[sentence + 1]
        if end == begin:
            continue
        for k in range(size):
            c.pairs[k] = 0
        loss += sequence_posterior(data, sentence, m, e, c, ZERO)
        for k in range(0, (end - begin) * width, v.LANES):
            v.store(out.tokens, begin * width + k, v.load(c.beta, k))
        if c.rich:
            for k in range(size, (end - begin) * size, v.LANES):
                v.store(out.matrices, begin * size + k, v.load(c.matrices, k))
        for k in range(size):
            out.pairs[k] += c.pairs[k]
    v.restore_denormals(denormals)
    return loss


@inlined
def _ask(o: Occurrences, k: Any, marginals: Floats, width: int) -> None:
    """Prefetch the marginals of occurrence k."""
    if k < o.tokens.shape[0]:
        at = np.int64(o.tokens[k]) * width
        v.prefetch(marginals, at)
        v.prefetch(marginals, at + width - 1)


@inlined
def _part(o: Occurrences, k: Any, marginals: Floats, at: Any, acc: Any) -> Any:
    """Return acc + value of occurrence k * eight of its marginals."""
    row = v.widened(v.load(marginals, at))
    if o.valued:
        return v.fma(row, v.splat(np.float64(o.values[k])), acc)
    return v.add(row, acc)


@inner
def _sum_rows(o: Occurrences, a: int, marginals: Floats, width: int, sums: NDArray[np.float64]) -> None:
    """sums = the sum of the marginals over the tokens of attribute a; three vectors at a time."""
    first, last = o.starts[a], o.starts[a + 1]
    j = 0
    while width - j >= 3 * v.LANES:
        x, y, z = v.zero(sums), v.zero(sums), v.zero(sums)
        for k in range(first, last):
            _ask(o, k + AHEAD, marginals, width)
            at = np.int64(o.tokens[k]) * width + j
            x = _part(o, k, marginals, at, x)
            y = _part(o, k, marginals, at + v.LANES, y)
            z = _part(o, k, marginals, at + 2 * v.LANES, z)
        v.store(sums, j, x)
        v.store(sums, j + v.LANES, y)
        v.store(sums, j + 2 * v.LANES, z)
        j += 3 * v.LANES
    while j < width:
        x = v.zero(sums)
        for k in range(first, last):
            _ask(o, k + AHEAD, marginals, width)
            x = _part(o, k, marginals, np.int64(o.tokens[k]) * width + j, x)
        v.store(sums, j, x)
        j += v.LANES


class Parameters(NamedTuple):
    """The parameters of a batch, and how often the feature of each fires in the gold data."""

    pairs: Pairs
    gold: NDArray[np.float64]


@kernel
def _expectations(
    o: Occurrences, parameters: Parameters, marginals: Floats, first: int, last: int, width: int,
    sums: NDArray[np.float64], gradient: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write the gradient entries of attributes `first:last`. `sums` is scratch of one row.

    The row of an edge attribute is a matrix, and its labels are indices into it.

    Most attributes are rare and occur with only one label. For these, one number per token is read instead of a row.
    """
    pairs, gold = parameters.pairs, parameters.gold
    for a in range(first, last):
        begin, end = pairs.starts[a], pairs.starts[a + 1]
        if end - begin == 1:
            total, y = 0.0, np.int64(pairs.labels[begin])
            for k in range(o.starts[a], o.starts[a + 1]):
                if k + AHEAD < o.tokens.shape[0]:
                    v.prefetch(marginals, np.int64(o.tokens[k + AHEAD]) * width + y)
                value = np.float64(o.values[k]) if o.valued else 1.0
                total += value * np.float64(marginals[np.int64(o.tokens[k]) * width + y])
            gradient[begin] = total - gold[begin]
            continue
        _sum_rows(o, a, marginals, width, sums)
        for p in range(begin, end):
            gradient[p] = sums[pairs.labels[p]] - gold[p]


class Scratch:
    """The buffers that an evaluation writes besides its result, and its threads."""

    def __init__(self, problem: Problem, threads: int, dtype: type) -> None:
        labels, width = len(problem.labels), problem.width
        self.dtype = dtype
        self.pool = ThreadPool(threads)
        self.sentences = _cuts(problem.data.offsets, PIECE_TOKENS)
        self.marginals = v.zeros(problem.tokens * width, dtype)
        self.matrices = v.zeros(problem.tokens * labels * width if problem.rich else 0, dtype)
        self.pair_sums = np.zeros((len(self.sentences), labels * width))
        self.chains = [problem.chain(problem.longest, dtype) for _ in range(threads)]
        self.sums = [v.zeros(labels * width, np.float64) for _ in range(threads)]


class Batch:
    """The loss and gradient of a problem at any weights. Batches that share scratch must not run concurrently."""

    def __init__(self, problem: Problem, scratch: Scratch, parameters: Parameters | None = None) -> None:
        if parameters is None:
            pairs = pairs_of(problem)
            parameters = Parameters(pairs, gold_counts(problem, pairs))
        self.problem = problem
        self.pairs, self._gold = parameters
        self._scratch = scratch
        self.vectors = Vectors(self.parameters, scratch.pool)
        self._occurrences = occurrences_of(problem)
        self._rows = v.zeros(problem.rows * problem.width, scratch.dtype)
        self._attributes = _cuts(self._occurrences.starts, PIECE_CELLS)
        self._layout = _cuts(self.pairs.starts, PIECE_PARAMETERS)
        self._first_edge = int(self.pairs.starts[problem.blocks])
        self._edge_occurrences = edge_occurrences_of(problem)
        self._edge_pairs = _by_attribute(self.pairs, problem)
        self._edge_attributes = _cuts(self._edge_occurrences.starts, PIECE_CELLS // len(problem.labels))

    @classmethod
    def of(cls, problem: Problem, threads: int, dtype: type = np.float32) -> "Batch":
        """Create a batch over all parameters of a problem."""
        return cls(problem, Scratch(problem, threads, dtype))

    def restricted(self, kept: NDArray[np.bool_]) -> "Batch":
        """Fix all other parameters at zero and drop the attributes that have no parameter left. Shares the scratch."""
        attributes, blocks = self.problem.attributes, self.problem.blocks
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        counts = np.diff(before[self.pairs.starts])
        by_block = counts[blocks:].reshape(-1, len(self.problem.labels))
        used, used_edges = counts[:attributes] > 0, by_block.sum(axis=1) > 0
        counts = np.concatenate(
            [counts[:attributes][used], counts[attributes:blocks], by_block[used_edges].reshape(-1)]
        )
        pairs = Pairs(offsets_of(counts), readonly(self.pairs.labels[kept], np.int32))
        parameters = Parameters(pairs, readonly(self._gold[kept], np.float64))
        return Batch(self.problem.with_attributes(used, used_edges), self._scratch, parameters)

    @property
    def parameters(self) -> int:
        return len(self.pairs.labels)

    def weights(self, w: NDArray[np.float64]) -> Weights:
        """Convert parameters to rows."""
        rows = v.zeros(len(self._rows), np.float32)
        _expand(self.pairs, w, 0, len(self.pairs.starts) - 1, self.problem.width, rows)
        return Weights(self.problem, rows)

    def parameters_of(self, weights: Weights) -> NDArray[np.float64]:
        """Convert rows to parameters; the inverse of `weights`."""
        width = self.problem.width
        rows = np.repeat(np.arange(len(self.pairs.starts) - 1), np.diff(self.pairs.starts))
        return np.asarray(weights.values[rows * width + self.pairs.labels], np.float64)

    def evaluate(self, w: NDArray[np.float64]) -> Generator[None, None, tuple[float, NDArray[np.float64]]]:
        """Compute loss and gradient at `w`; yield between slices of work so that the caller can stop."""
        loss = yield from self._chains(w)
        return loss, (yield from self._added_up(self._occurrences, self._gold))

    def bends(self) -> Generator[None, None, NDArray[np.float64]]:
        """Approximate the diagonal of the Hessian: the change of each gradient entry with its parameter.

        It is computed at the weights of the last evaluation, and overwrites their marginals. It ignores that the labels
        of two tokens depend on each other. For its expected count, a transition is assumed to be as uncertain as labels
        are on average.
        """
        scratch, values = self._scratch, self._occurrences.values
        for kept in (scratch.marginals, scratch.matrices):
            for part in np.array_split(kept, len(scratch.sentences) or 1):
                np.multiply(part, 1 - part, out=part)
        uncertain = float(scratch.marginals.sum(dtype=np.float64)) / max(1, self.problem.tokens)
        scratch.pair_sums *= uncertain
        squared = self._occurrences._replace(values=readonly(values * values, np.float32))
        return self._added_up(squared, readonly(np.zeros(self.parameters), np.float64))

    def _chains(self, w: NDArray[np.float64]) -> Generator[None, None, float]:
        """First sweep: return the loss at `w`; leave marginals and expected transitions in the scratch."""
        problem, layout, scratch = self.problem, self.problem.layout, self._scratch
        scratch.pool.sweep(
            lambda piece, _: _expand(self.pairs, w, *self._layout[piece], layout.width, self._rows),
            len(self._layout),
        )
        rows = rows_of(self._rows, np.zeros(problem.rows, scratch.dtype))
        e = ch.edges(layout.labels, scratch.dtype)
        scorer = Scorer(rows, PLAIN, load_edges(rows, PLAIN, layout, e), layout)
        losses = np.zeros(len(scratch.sentences))
        scratch.pair_sums[:] = 0

        def posteriors(piece: int, thread: int) -> None:
            first, last = scratch.sentences[piece]
            out = Marginals(scratch.marginals, scratch.matrices, scratch.pair_sums[piece])
            losses[piece] = _posteriors(problem.data, first, last, scorer, e, scratch.chains[thread], out)

        yield from scratch.pool.slices(posteriors, len(scratch.sentences))
        return float(losses.sum())

    def _added_up(
        self, occurrences: Occurrences, gold: NDArray[np.float64]
    ) -> Generator[None, None, NDArray[np.float64]]:
        """Second sweep: for each parameter, sum the scratch over its occurrences and subtract `gold`."""
        scratch, first_edge, width = self._scratch, self._first_edge, self.problem.width
        block = len(self.problem.labels) * width
        out = np.empty(self.parameters)
        of_attributes = Parameters(self.pairs, gold)
        of_edges = Parameters(self._edge_pairs, gold[first_edge:])

        def expectations(piece: int, thread: int) -> None:
            first, last = self._attributes[piece]
            _expectations(
                occurrences, of_attributes, scratch.marginals, first, last, width, scratch.sums[thread], out
            )

        def edge_expectations(piece: int, thread: int) -> None:
            first, last = self._edge_attributes[piece]
            _expectations(
                self._edge_occurrences, of_edges, scratch.matrices, first, last, block, scratch.sums[thread],
                out[first_edge:],
            )  # fmt: skip

        yield from scratch.pool.slices(expectations, len(self._attributes))
        yield from scratch.pool.slices(edge_expectations, len(self._edge_attributes))
        self._add_up_transitions(gold, out)
        return out

    def _add_up_transitions(self, gold: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        attributes, width = self.problem.attributes, self.problem.width
        expected = self._scratch.pair_sums.sum(axis=0)
        here = slice(int(self.pairs.starts[attributes]), self._first_edge)
        counts = np.diff(self.pairs.starts[attributes : self.problem.blocks + 1])
        rows = np.repeat(np.arange(len(counts)), counts)
        out[here] = expected[rows * width + self.pairs.labels[here]] - gold[here]


def _by_attribute(pairs: Pairs, problem: Problem) -> Pairs:
    """Return the parameters of each edge attribute as indices into its matrix, with starts relative to the first."""
    labels, first = len(problem.labels), int(pairs.starts[problem.blocks])
    counts = np.diff(pairs.starts[problem.blocks :])
    rows = np.arange(len(counts), dtype=np.int32) % labels * problem.width
    places = np.repeat(rows, counts)
    places += pairs.labels[first:]
    starts = pairs.starts[problem.blocks :: labels] - first
    return Pairs(readonly(starts, np.int64), readonly(places, np.int32))


def _cuts(offsets: NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Split items into runs of about `size`. The size of item i is offsets[i + 1] - offsets[i]."""
    cuts, first, count = [], 0, len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1
        last = min(max(last, first + 1), count)
        cuts.append((first, last))
        first = last
    return cuts
