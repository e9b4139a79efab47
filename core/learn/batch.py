"""The loss of a whole corpus and its gradient, over the parameters that exist.

    L(w) = sum_j -log p(y_j | x_j; w),   dL/dw_p = expected count of p - gold count of p

Two sweeps. Forward-backward over the sentences leaves the marginals of every token; then each attribute adds up the
marginals of the tokens it occurs at, each edge attribute those of the transitions into them. The second sweep writes
every entry of the gradient once: threads need no vectors of their own and no order of arrival, so the result is the
same, bit for bit, for any number of threads.

Sums over tokens are always in float64. The chains are in float32, half the memory traffic, with a relative error of the
loss near 1e-8; with `dtype` float64 the chains are too, for the last digits.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats
from core.jit import ZERO, inlined, inner, kernel, readonly
from core.learn.evaluation import Model, Weights, sequence_posterior
from core.learn.pairs import (
    Occurrences,
    Pairs,
    edge_occurrences_of,
    gold_counts,
    occurrences_of,
    pairs_of,
)
from core.learn.pieces import Pool
from core.learn.problem import Problem, Sequences, offsets_of
from core.learn.rows import EVERYTHING, PLAIN, Rows, load_edges
from core.learn.vectors import Vectors

#: Tokens of one piece of the first sweep, and cells (attribute at a token) of one piece of the second.
PIECE_TOKENS = 5_000
PIECE_CELLS = 100_000
#: Parameters of one piece of laying out the weights.
PIECE_PARAMETERS = 50_000
#: Occurrences between asking for marginals and adding them: about the latency of memory.
AHEAD = 16


@kernel
def _expand(pairs: Pairs, w: NDArray[np.float64], first: int, last: int, width: int, rows: Floats) -> None:
    """Rows `first:last` of weights, from the parameters; what has no parameter stays zero."""
    for row in range(first, last):
        for p in range(pairs.starts[row], pairs.starts[row + 1]):
            rows[row * width + pairs.labels[p]] = w[p]


@kernel
def _posteriors(
    data: Sequences, first: int, last: int, m: Model, edges: bool, e: Edges, c: Chain, marginals: Floats,
    matrices: Floats, pairs: NDArray[np.float64],
) -> float:  # fmt: skip
    """Marginals of the tokens of sentences `first:last`, expected transitions added to `pairs`; returns the loss.

    With rich edges, the marginals of the transitions into each token go to `matrices`.
    """
    size = m.labels * m.width
    denormals = v.flush_denormals()
    loss = 0.0
    for sentence in range(first, last):
        begin, end = data.offsets[sentence], data.offsets[sentence + 1]
        if end == begin:
            continue
        for k in range(size):
            c.pairs[k] = 0
        loss += sequence_posterior(data, sentence, m, edges, e, c, ZERO)
        for k in range(0, (end - begin) * m.width, v.LANES):
            v.store(marginals, begin * m.width + k, v.load(c.beta, k))
        if matrices.shape[0] > 0:
            for k in range(size, (end - begin) * size, v.LANES):
                v.store(matrices, begin * size + k, v.load(c.matrices, k))
        for k in range(size):
            pairs[k] += c.pairs[k]
    v.restore_denormals(denormals)
    return loss


@inlined
def _ask(o: Occurrences, k: Any, marginals: Floats, width: int) -> None:
    """Prefetch the marginals that occurrence k will add."""
    if k < o.tokens.shape[0]:
        at = np.int64(o.tokens[k]) * width
        v.prefetch(marginals, at)
        v.prefetch(marginals, at + width - 1)


@inlined
def _part(o: Occurrences, k: Any, marginals: Floats, at: Any, acc: Any) -> Any:
    """acc + value of occurrence k * eight of its marginals."""
    row = v.widened(v.load(marginals, at))
    if o.values.shape[0] > 0:
        return v.fma(row, v.splat(np.float64(o.values[k])), acc)
    return v.add(row, acc)


@inner
def _sum_rows(o: Occurrences, a: int, marginals: Floats, width: int, sums: NDArray[np.float64]) -> None:
    """sums = marginals of the tokens at which attribute a occurs, added up; three vectors at a time."""
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


@kernel
def _expectations(
    o: Occurrences, pairs: Pairs, marginals: Floats, gold: NDArray[np.float64], first: int, last: int, width: int,
    sums: NDArray[np.float64], gradient: NDArray[np.float64],
) -> None:  # fmt: skip
    """Entries of the gradient that belong to attributes `first:last`. `sums` is scratch of one row.

    A row of an edge attribute is a matrix, with a place in it for a label.

    Most attributes are rare and have been seen with one label: for those one number a token is read, not a row.
    """
    for a in range(first, last):
        begin, end = pairs.starts[a], pairs.starts[a + 1]
        if end - begin == 1:
            total, y = 0.0, np.int64(pairs.labels[begin])
            for k in range(o.starts[a], o.starts[a + 1]):
                if k + AHEAD < o.tokens.shape[0]:
                    v.prefetch(marginals, np.int64(o.tokens[k + AHEAD]) * width + y)
                value = np.float64(o.values[k]) if o.values.shape[0] > 0 else 1.0
                total += value * np.float64(marginals[np.int64(o.tokens[k]) * width + y])
            gradient[begin] = total - gold[begin]
            continue
        _sum_rows(o, a, marginals, width, sums)
        for p in range(begin, end):
            gradient[p] = sums[pairs.labels[p]] - gold[p]


class Parameters(NamedTuple):
    """The parameters of a batch, and how often the feature of each fires in the gold data."""

    pairs: Pairs
    gold: NDArray[np.float64]


class Scratch:
    """What one evaluation writes besides its result, and the threads that do it."""

    def __init__(self, problem: Problem, threads: int, dtype: type) -> None:
        labels, width = len(problem.labels), problem.width
        self.dtype = dtype
        self.pool = Pool(threads)
        self.sentences = _cuts(problem.data.offsets, PIECE_TOKENS)
        self.marginals = v.zeros(problem.tokens * width, dtype)
        self.matrices = v.zeros(problem.tokens * labels * width if problem.rich else 0, dtype)
        self.pair_sums = np.zeros((len(self.sentences), labels * width))
        self.chains = [ch.chain(problem.longest, labels, dtype, rich=problem.rich) for _ in range(threads)]
        self.sums = [v.zeros(labels * width, np.float64) for _ in range(threads)]


class Batch:
    """A problem's loss and gradient at any weights. Batches that share scratch are evaluated in turns."""

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
        """Over all parameters of a problem."""
        return cls(problem, Scratch(problem, threads, dtype))

    def restricted(self, kept: NDArray[np.bool_]) -> "Batch":
        """Hold the other parameters at zero, and leave out the attributes that have none. Shares scratch with this."""
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
        """The parameters as rows."""
        rows = v.zeros(len(self._rows), np.float32)
        _expand(self.pairs, w, 0, len(self.pairs.starts) - 1, self.problem.width, rows)
        return Weights(self.problem, rows)

    def parameters_of(self, weights: Weights) -> NDArray[np.float64]:
        """The rows as parameters: what `weights` undoes."""
        width = self.problem.width
        rows = np.repeat(np.arange(len(self.pairs.starts) - 1), np.diff(self.pairs.starts))
        return np.asarray(weights.values[rows * width + self.pairs.labels], np.float64)

    def evaluate(self, w: NDArray[np.float64]) -> Generator[None, None, tuple[float, NDArray[np.float64]]]:
        """Loss and gradient at `w`, yielding between slices of work so that the caller may stop."""
        loss = yield from self._chains(w)
        return loss, (yield from self._added_up(self._occurrences, self._gold))

    def bends(self) -> Generator[None, None, NDArray[np.float64]]:
        """How much each entry of the gradient changes with its parameter: the Hessian's diagonal, nearly.

        It is taken at the weights evaluated last, whose marginals are used up. Left out is that the labels of two
        tokens depend on each other. A transition is taken to be as uncertain, for its expected count, as labels are.
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
        """The first sweep: the loss at `w`; marginals and expected transitions are left in the scratch."""
        problem, labels, width = self.problem, len(self.problem.labels), self.problem.width
        scratch = self._scratch
        scratch.pool.sweep(
            lambda piece, _: _expand(self.pairs, w, *self._layout[piece], width, self._rows),
            len(self._layout),
        )
        rows = Rows(self._rows, np.zeros(problem.rows, scratch.dtype), EVERYTHING)
        e = ch.edges(labels, scratch.dtype)
        shift = load_edges(rows, problem.attributes, labels, PLAIN, width, e)
        model = Model(rows, PLAIN, shift, problem.blocks, labels, width)
        losses = np.zeros(len(scratch.sentences))
        scratch.pair_sums[:] = 0

        def posteriors(piece: int, thread: int) -> None:
            first, last = scratch.sentences[piece]
            losses[piece] = _posteriors(
                problem.data, first, last, model, problem.edges, e, scratch.chains[thread], scratch.marginals,
                scratch.matrices, scratch.pair_sums[piece],
            )  # fmt: skip

        yield from scratch.pool.slices(posteriors, len(scratch.sentences))
        return float(losses.sum())

    def _added_up(
        self, occurrences: Occurrences, gold: NDArray[np.float64]
    ) -> Generator[None, None, NDArray[np.float64]]:
        """The second sweep: for each parameter what the scratch has at its places, less `gold`."""
        scratch, first_edge, width = self._scratch, self._first_edge, self.problem.width
        block = len(self.problem.labels) * width
        out = np.empty(self.parameters)

        def expectations(piece: int, thread: int) -> None:
            first, last = self._attributes[piece]
            _expectations(
                occurrences, self.pairs, scratch.marginals, gold, first, last, width, scratch.sums[thread], out
            )  # fmt: skip

        def edge_expectations(piece: int, thread: int) -> None:
            first, last = self._edge_attributes[piece]
            _expectations(
                self._edge_occurrences, self._edge_pairs, scratch.matrices, gold[first_edge:], first, last, block,
                scratch.sums[thread], out[first_edge:],
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
    """The parameters of each edge attribute, counted from the first one, by their places in its matrix."""
    labels, first = len(problem.labels), int(pairs.starts[problem.blocks])
    counts = np.diff(pairs.starts[problem.blocks :])
    rows = np.arange(len(counts), dtype=np.int32) % labels * problem.width
    places = np.repeat(rows, counts)
    places += pairs.labels[first:]
    starts = pairs.starts[problem.blocks :: labels] - first
    return Pairs(readonly(starts, np.int64), readonly(places, np.int32))


def _cuts(offsets: NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Cut items, whose sizes are the steps of `offsets`, into runs of about `size`."""
    cuts, first, count = [], 0, len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1
        last = min(max(last, first + 1), count)
        cuts.append((first, last))
        first = last
    return cuts
