"""Sparse weight storage: a row exists only after its first gradient. Rows are packed, with one scale per template.

A row is stored at its first gradient. It is removed when its template is dropped or its last weight becomes zero. With
v the stored rows of template m, the weights are c_m v (Martins et al. 2011, section 4, after Shalev-Shwartz et al.
2007). So a proximal step that shrinks a whole template changes only c_m. Every change of a weight updates |v|^2 by
new^2 - old^2 in float64, so no step has to compute norms.

Kernels do not allocate: they stop before a sentence whose rows may not fit, and the caller allocates more capacity.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inlined, inner, kernel, readonly
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference.chain import Chain, Edges, Floats
from tagsmith.core.learn.problem.layout import Layout
from tagsmith.core.learn.problem.problem import Problem, Sequences
from tagsmith.core.learn.trainers.base import State
from tagsmith.core.learn.trainers.margin.margin import (
    Direction,
    Labellings,
    Rule,
    add_expected,
    add_wrong,
    direction,
    expected_direction,
    labellings,
    uses_marginals,
    violation,
)
from tagsmith.core.learn.weights.posterior import Sample
from tagsmith.core.learn.weights.rows import (
    PLAIN,
    Rows,
    Scorer,
    edge_row,
    load_edges,
    read_edges,
    rows_of,
    value_of,
)

#: The initial capacity in rows, and the minimum after memory is freed.
LEAST_ROWS = 1024
#: The growth factor of the capacity.
GROWTH = 1.5

# Indices into `counts`.
ROWS, WEIGHTS, PEAK = range(3)


class Store(NamedTuple):
    """The stored rows."""

    places: NDArray[np.int32]  # (rows,) the slot of each row, or -1
    owners: NDArray[np.int32]  # (capacity,) the row in each slot
    values: Floats  # (capacity * width,) v
    scales: NDArray[np.float64]  # (templates,) c
    squares: NDArray[np.float64]  # (templates,) |v|^2
    counts: NDArray[np.int64]  # (3,) rows stored, nonzero weights, peak of nonzero weights in this pass


class Bench(NamedTuple):
    """One sentence as a separate problem: each token has one attribute, whose row is the sum of the token's rows.

    The other kernels score it like any sentence.
    """

    data: Sequences
    order: NDArray[np.int64]  # (1,) the single sentence
    offsets: NDArray[np.int64]  # (2,) writable; `data` has a read-only view of it
    gold: NDArray[np.int32]  # (tokens,)
    weights: NDArray[np.float32]  # (1,) the weight of the sentence, as the others writable
    allowed: NDArray[np.uint8]
    complete: NDArray[np.bool_]  # (1,)
    rows: Rows
    layout: Layout  # layout of `rows`; the number of attributes is the token capacity


class ProximalPlan(NamedTuple):
    """Values that are constant during a run, and scratch."""

    rule: Rule
    templates: NDArray[np.int16]  # (rows,)
    mask: NDArray[np.uint8]  # as in `Rows`
    masked: bool
    layout: Layout
    bench: Bench
    e: Edges
    c: Chain
    y: Labellings
    d: Direction
    nothing: Floats


def start(problem: Problem, templates: int, dtype: Any) -> State:
    """Create an empty store."""
    return {
        "places": np.full(problem.rows, -1, np.int32),
        "owners": np.zeros(0, np.int32),
        "values": v.zeros(0, dtype),
        "scales": np.ones(templates),
        "squares": np.zeros(templates),
        "counts": np.zeros(3, np.int64),
    }


def store_of(state: State) -> Store:
    """Return the store in a state."""
    return Store(*(state[name] for name in Store._fields))


def fill(state: State, values: NDArray[Any], templates: NDArray[np.int16], width: int) -> None:
    """Store the given rows of weights."""
    rows = values.reshape(-1, width)
    live = np.flatnonzero(rows.any(axis=1))
    _resize(state, len(live), width)
    state["places"][live] = np.arange(len(live))
    state["owners"][: len(live)] = live
    state["values"].reshape(-1, width)[: len(live)] = rows[live]
    squares = np.square(rows[live], dtype=np.float64).sum(axis=1)
    state["squares"][:] = np.bincount(templates[live], squares, minlength=len(state["squares"]))
    state["counts"][:] = len(live), np.count_nonzero(rows), np.count_nonzero(rows)


def _resize(state: State, capacity: int, width: int) -> None:
    used = int(state["counts"][ROWS])
    owners = np.zeros(capacity, np.int32)
    values = v.zeros(capacity * width, state["values"].dtype)
    owners[:used] = state["owners"][:used]
    values[: used * width] = state["values"][: used * width]
    state["owners"], state["values"] = owners, values


def make_room(state: State, more: int, width: int) -> None:
    """Grow the capacity by at least `more` rows, up to one slot for every row."""
    wanted = int(state["counts"][ROWS]) + more
    grown = max(wanted, int(GROWTH * len(state["owners"])), LEAST_ROWS)
    _resize(state, min(grown, len(state["places"])), width)


def give_back(state: State, width: int) -> None:
    """Free unused capacity."""
    wanted = max(int(GROWTH * state["counts"][ROWS]), LEAST_ROWS)
    if len(state["owners"]) > GROWTH * wanted:
        _resize(state, wanted, width)


def task_of(
    problem: Problem, rule: Rule, templates: NDArray[np.int16], mask: NDArray[np.uint8], dtype: Any
) -> ProximalPlan:
    """Create the plan for a problem."""
    labels, longest = len(problem.labels), max(problem.longest, 1)
    return ProximalPlan(
        rule=rule,
        templates=templates,
        mask=mask,
        masked=len(mask) > 0,
        layout=problem.layout,
        bench=_bench(problem, longest, dtype),
        e=ch.edges(labels, dtype),
        c=problem.chain(longest, dtype),
        y=labellings(longest),
        d=direction(problem, 1, dtype),
        nothing=np.empty(0, dtype),
    )


def _bench(problem: Problem, tokens: int, dtype: Any) -> Bench:
    labels = len(problem.labels)
    offsets, gold = np.zeros(2, np.int64), np.zeros(tokens, np.int32)
    weighted, partial = problem.data.weighted, problem.data.partial
    weights, complete = np.ones(int(weighted), np.float32), np.zeros(int(partial), np.bool_)
    allowed = np.zeros(tokens * problem.width // v.LANES if partial else 0, np.uint8)
    numbers = np.arange(tokens + 1)
    data = Sequences(
        offsets=readonly(offsets, np.int64),
        starts=readonly(numbers, np.int64),
        rows=readonly(numbers[:tokens], np.int32),
        values=readonly(np.empty(0), np.float32),
        gold=readonly(gold, np.int32),
        # The first token has no edge attribute.
        edge_starts=readonly(np.maximum(numbers - 1, 0) if problem.rich else np.empty(0), np.int64),
        edge_rows=readonly(numbers[:tokens] if problem.rich else np.empty(0), np.int32),
        weights=readonly(weights, np.float32),
        allowed=readonly(allowed, np.uint8),
        complete=readonly(complete, np.bool_),
        valued=False,
        rich=problem.rich,
        weighted=weighted,
        partial=partial,
        trees=problem.data.trees,
    )
    blocks = tokens * labels if problem.rich else 0
    rows = v.zeros((tokens + labels + blocks) * problem.width, dtype)
    layout = problem.layout._replace(attributes=tokens, blocks=tokens + labels)
    order = readonly(np.zeros(1), np.int64)
    made = rows_of(rows, np.empty(0, dtype))
    return Bench(data, order, offsets, gold, weights, allowed, complete, made, layout)


@inlined
def _add_row(s: Store, k: ProximalPlan, row: Any, value: Any, at: Any) -> None:
    """weights[at:] of the bench += value * the row, if it exists."""
    place = s.places[row]
    if place >= 0:
        weights = k.bench.rows.weights
        factor = v.splat(weights.dtype.type(s.scales[k.templates[row]] * value))
        first = np.int64(place) * k.layout.width
        for j in range(0, k.layout.width, v.LANES):
            v.store(weights, at + j, v.fma(factor, v.load(s.values, first + j), v.load(weights, at + j)))


@inlined
def _clear(weights: Floats, first: Any, last: Any) -> None:
    for j in range(first, last, v.LANES):
        v.store(weights, j, v.zero(weights))


@inner
def _lay_out(data: Sequences, sentence: int, s: Store, k: ProximalPlan) -> None:
    """Load a sentence onto the bench."""
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    k.bench.offsets[1] = end - begin
    if data.weighted:
        k.bench.weights[0] = data.weights[sentence]
    if data.partial:
        k.bench.complete[0] = data.complete[sentence]
        size = k.layout.width // v.LANES
        for i in range((end - begin) * size):
            k.bench.allowed[i] = data.allowed[begin * size + i]
    weights, block = k.bench.rows.weights, k.layout.labels * k.layout.width
    for token in range(begin, end):
        at = (token - begin) * k.layout.width
        k.bench.gold[token - begin] = data.gold[token]
        if token + 2 < end:
            for cell in range(data.starts[token + 2], data.starts[token + 3]):
                v.prefetch(s.places, np.int64(data.rows[cell]))
        _clear(weights, at, at + k.layout.width)
        for cell in range(data.starts[token], data.starts[token + 1]):
            _add_row(s, k, np.int64(data.rows[cell]), np.float64(value_of(data, cell)), at)
        if k.c.rich and token > begin:
            first = k.bench.layout.blocks * k.layout.width + (token - begin - 1) * block
            _clear(weights, first, first + block)
            for cell in range(data.edge_starts[token], data.edge_starts[token + 1]):
                for y in range(k.layout.labels):
                    row = edge_row(data, cell, k.layout) + y
                    _add_row(s, k, row, 1.0, first + y * k.layout.width)


@inner
def _lay_out_transitions(s: Store, k: ProximalPlan) -> float:
    """Load the transitions onto the bench; return the shift if they are exponentiated."""
    first = k.bench.layout.attributes * k.layout.width
    _clear(k.bench.rows.weights, first, first + k.layout.labels * k.layout.width)
    for y in range(k.layout.labels):
        _add_row(s, k, k.layout.attributes + y, 1.0, first + y * k.layout.width)
    if uses_marginals(k.rule.margin):
        return load_edges(k.bench.rows, PLAIN, k.bench.layout, k.e)
    read_edges(k.bench.rows, PLAIN, k.bench.layout, k.e)
    return 0.0


@kernel
def _direction(data: Sequences, sentence: int, m: Scorer, k: ProximalPlan) -> tuple[int, float]:
    """Compute the descent direction of the sentence on the bench, by row; return (rows, loss)."""
    own = k.bench.data
    if uses_marginals(k.rule.margin):
        loss = expected_direction(own, Sample(k.bench.order, ZERO, ZERO + 1), m, k.e, k.c)
        return add_expected(data, sentence, ZERO, k.d, k.c, k.layout), loss
    loss = violation(own, ZERO, m, k.rule, k.e, k.c, k.y)
    return add_wrong(data, sentence, k.y, ZERO, k.d, k.nothing, k.layout), loss


@inlined
def _exists(k: ProximalPlan, weight: Any) -> bool:
    if not k.masked:
        return True
    return bool((k.mask[weight // v.LANES] >> np.uint8(weight % v.LANES)) & np.uint8(1))


@inner
def _move(count: int, rate: float, s: Store, k: ProximalPlan) -> bool:
    """w += rate * direction; creates the rows that it touches. Return whether any weight moved."""
    moved, kind = False, s.values.dtype.type
    for i in range(count):
        row = k.d.unique[i]
        template = k.templates[row]
        step = rate / s.scales[template]
        for y in range(k.layout.labels):
            x = k.d.sums[i * k.layout.width + y]
            if x != 0 and _exists(k, row * k.layout.width + y):
                moved = True
                if s.places[row] < 0:
                    first = s.counts[ROWS] * k.layout.width
                    _clear(s.values, first, first + k.layout.width)
                    s.places[row] = s.counts[ROWS]
                    s.owners[s.counts[ROWS]] = row
                    s.counts[ROWS] += 1
                at = np.int64(s.places[row]) * k.layout.width + y
                old = float(s.values[at])
                s.values[at] = kind(old + step * x)
                new = float(s.values[at])
                s.squares[template] += new * new - old * old
                s.counts[WEIGHTS] += int(new != 0.0) - int(old != 0.0)
    return moved


@inlined
def _most_rows(data: Sequences, sentence: int, k: ProximalPlan) -> int:
    """Return the maximum number of rows that a sentence can touch."""
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    rows = data.starts[end] - data.starts[begin] + k.layout.labels
    if k.c.rich:
        rows += (data.edge_starts[end] - data.edge_starts[begin]) * k.layout.labels
    return int(rows)


@kernel
def run_steps(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, rates: NDArray[np.float64], s: Store,
    k: ProximalPlan,
) -> tuple[int, int, float]:  # fmt: skip
    """Take gradient steps on sentences `first` to `last` of a pass, until the next one may not fit into the store.

    Returns the next sentence, the rows it may need, and the total loss. At a rate of 0, only the losses are summed.
    """
    total, shift, moved = 0.0, 0.0, True
    denormals = v.flush_denormals()
    stop, needed = last, 0
    for i in range(first, last):
        if data.offsets[order[i] + 1] == data.offsets[order[i]]:
            continue
        needed = _most_rows(data, order[i], k)
        room = s.owners.shape[0]
        if room < s.places.shape[0] and s.counts[ROWS] + needed > room:
            stop = i
            break
        if moved:
            shift = _lay_out_transitions(s, k)
        _lay_out(data, order[i], s, k)
        m = Scorer(k.bench.rows, PLAIN, shift, k.bench.layout)
        count, loss = _direction(data, order[i], m, k)
        total += loss
        moved = rates[i] != 0.0 and _move(count, rates[i], s, k)
        s.counts[PEAK] = max(s.counts[PEAK], s.counts[WEIGHTS])
    v.restore_denormals(denormals)
    return stop, needed, total


@inlined
def _unit(k: ProximalPlan, row: Any) -> int:
    """Return the attribute of a row or, numbered after these, its edge attribute; -1 for transitions."""
    if row < k.layout.attributes:
        return int(row)
    first = k.layout.blocks
    return -1 if row < first else int(k.layout.attributes + (row - first) // k.layout.labels)


@kernel
def unit_squares(s: Store, k: ProximalPlan, squares: NDArray[np.float64]) -> None:
    """Sum the squared weights of each attribute and edge attribute."""
    for place in range(s.counts[ROWS]):
        row = np.int64(s.owners[place])
        unit, scale = _unit(k, row), s.scales[k.templates[row]]
        if unit >= 0:
            for y in range(k.layout.labels):
                w = scale * s.values[place * k.layout.width + y]
                squares[unit] += w * w


@kernel
def sweep(
    s: Store, thresholds: NDArray[np.float64], factors: NDArray[np.float64], by_unit: NDArray[np.float64],
    k: ProximalPlan,
) -> None:  # fmt: skip
    """v <- factor * soft(v, threshold), both per template, times a factor per attribute if given.

    Rows that become zero are removed. Squares and counts are recomputed.
    """
    used, kind = s.counts[ROWS], s.values.dtype.type
    s.squares[:] = 0.0
    s.counts[ROWS] = s.counts[WEIGHTS] = 0
    for place in range(used):
        row = np.int64(s.owners[place])
        template, unit = k.templates[row], _unit(k, row)
        threshold, factor = thresholds[template], factors[template]
        if by_unit.shape[0] > 0 and unit >= 0:
            factor *= by_unit[unit]
        to, weights = s.counts[ROWS], 0
        for y in range(k.layout.labels):
            old = float(s.values[place * k.layout.width + y])
            s.values[to * k.layout.width + y] = kind(factor * (old - min(max(old, -threshold), threshold)))
            new = float(s.values[to * k.layout.width + y])
            s.squares[template] += new * new
            weights += int(new != 0.0)
        s.places[row] = to if weights > 0 else -1
        if weights > 0:
            s.owners[to] = row
            s.counts[ROWS] += 1
            s.counts[WEIGHTS] += weights


@kernel
def read_out(s: Store, templates: NDArray[np.int16], layout: Layout, out: Floats) -> None:
    """Write the weights to rows."""
    labels, width = layout.labels, layout.width
    kind = out.dtype.type
    for place in range(s.counts[ROWS]):
        row = np.int64(s.owners[place])
        scale = s.scales[templates[row]]
        for y in range(labels):
            out[row * width + y] = kind(scale * s.values[place * width + y])
