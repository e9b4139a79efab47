"""Weights that exist only where a gradient has been: rows stored side by side, each template's at a scale of its own.

A row is stored when a gradient touches it first, and goes when its template is dropped or its last weight becomes zero.
With v what is stored of template m, the weights are c_m v (Martins et al. 2011, section 4, after Shalev-Shwartz et al.
2007): a proximal step that shrinks the whole template changes c_m and nothing else. |v|^2 is kept up to date with each
weight that changes, by new^2 - old^2 in float64, so that no step has to look for the norms.

Kernels do not allocate: they stop before a sentence whose rows might not find room, and the caller makes some.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats
from core.jit import ZERO, inlined, inner, kernel, readonly
from core.learn.evaluation import Model, sequence_posterior
from core.learn.margin import ASCENT, Direction, Rule, add_expected, add_wrong, direction, violation
from core.learn.problem import Problem, Sequences
from core.learn.rows import (
    EVERYTHING,
    PLAIN,
    Rows,
    edge_row,
    load_edges,
    read_edges,
    subtract_gold,
    value_of,
)
from core.learn.trainer import State

#: Rows there is room for at first, and that stay when others are freed.
LEAST_ROWS = 1024
#: How much room is made at a time, as a factor.
GROWTH = 1.5

# What `counts` counts.
ROWS, WEIGHTS, PEAK = range(3)


class Store(NamedTuple):
    """The rows that exist."""

    places: NDArray[np.int32]  # (rows,) where a row is stored, or -1
    owners: NDArray[np.int32]  # (capacity,) which row is stored here
    values: Floats  # (capacity * width,) v
    scales: NDArray[np.float64]  # (templates,) c
    squares: NDArray[np.float64]  # (templates,) |v|^2
    counts: NDArray[
        np.int64
    ]  # (3,) rows stored, weights that are not zero, the most of these in the present pass


class Bench(NamedTuple):
    """One sentence as a problem of its own, where each token has one attribute: what its rows add up to.

    That is all the other kernels need to know of it; they score it like any other.
    """

    data: Sequences
    offsets: NDArray[np.int64]  # (2,) what `data` shows read-only
    gold: NDArray[np.int32]
    rows: Rows
    tokens: int  # room


class Task(NamedTuple):
    """What stays the same over a run, and scratch."""

    rule: Rule
    templates: NDArray[np.int16]  # (rows,)
    mask: NDArray[np.uint8]  # as in `Rows`
    attributes: int
    labels: int
    width: int
    edges: bool
    bench: Bench
    e: Edges
    c: Chain
    decoded: NDArray[np.int32]
    d: Direction
    nothing: Floats


def start(problem: Problem, templates: int, dtype: Any) -> State:
    """An empty store."""
    return {
        "places": np.full(problem.rows, -1, np.int32),
        "owners": np.zeros(0, np.int32),
        "values": v.zeros(0, dtype),
        "scales": np.ones(templates),
        "squares": np.zeros(templates),
        "counts": np.zeros(3, np.int64),
    }


def store_of(state: State) -> Store:
    """The store in a state."""
    return Store(*(state[name] for name in Store._fields))


def fill(state: State, values: NDArray[Any], templates: NDArray[np.int16], width: int) -> None:
    """Store weights given as rows."""
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
    """Make room for so many more rows, unless all there could be have theirs."""
    wanted = int(state["counts"][ROWS]) + more
    grown = max(wanted, int(GROWTH * len(state["owners"])), LEAST_ROWS)
    _resize(state, min(grown, len(state["places"])), width)


def give_back(state: State, width: int) -> None:
    """Free room that has come to stand empty."""
    wanted = max(int(GROWTH * state["counts"][ROWS]), LEAST_ROWS)
    if len(state["owners"]) > GROWTH * wanted:
        _resize(state, wanted, width)


def task_of(
    problem: Problem, rule: Rule, templates: NDArray[np.int16], mask: NDArray[np.uint8], dtype: Any
) -> Task:
    """Set up the work on a problem."""
    labels, longest = len(problem.labels), max(problem.longest, 1)
    return Task(
        rule=rule,
        templates=templates,
        mask=mask,
        attributes=problem.attributes,
        labels=labels,
        width=problem.width,
        edges=problem.edges,
        bench=_bench(problem, longest, dtype),
        e=ch.edges(labels, dtype),
        c=ch.chain(longest, labels, dtype, rich=problem.rich),
        decoded=np.zeros(longest, np.int32),
        d=direction(problem, 1, dtype),
        nothing=np.empty(0, dtype),
    )


def _bench(problem: Problem, tokens: int, dtype: Any) -> Bench:
    labels = len(problem.labels)
    offsets, gold = np.zeros(2, np.int64), np.zeros(tokens, np.int32)
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
    )
    blocks = tokens * labels if problem.rich else 0
    weights = v.zeros((tokens + labels + blocks) * problem.width, dtype)
    return Bench(data, offsets, gold, Rows(weights, np.empty(0, dtype), EVERYTHING), tokens)


@inlined
def _add_row(s: Store, k: Task, row: Any, value: Any, at: Any) -> None:
    """weights[at:] of the bench += value * the row, if it exists."""
    place = s.places[row]
    if place >= 0:
        weights = k.bench.rows.weights
        factor = v.splat(weights.dtype.type(s.scales[k.templates[row]] * value))
        first = np.int64(place) * k.width
        for j in range(0, k.width, v.LANES):
            v.store(weights, at + j, v.fma(factor, v.load(s.values, first + j), v.load(weights, at + j)))


@inlined
def _clear(weights: Floats, first: Any, last: Any) -> None:
    for j in range(first, last, v.LANES):
        v.store(weights, j, v.zero(weights))


@inner
def _lay_out(data: Sequences, sentence: int, s: Store, k: Task) -> None:
    """Put a sentence on the bench."""
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    k.bench.offsets[1] = end - begin
    weights, block = k.bench.rows.weights, k.labels * k.width
    for token in range(begin, end):
        at = (token - begin) * k.width
        k.bench.gold[token - begin] = data.gold[token]
        if token + 2 < end:
            for cell in range(data.starts[token + 2], data.starts[token + 3]):
                v.prefetch(s.places, np.int64(data.rows[cell]))
        _clear(weights, at, at + k.width)
        for cell in range(data.starts[token], data.starts[token + 1]):
            _add_row(s, k, np.int64(data.rows[cell]), np.float64(value_of(data, cell)), at)
        if k.c.matrices.shape[0] > 0 and token > begin:
            first = (k.bench.tokens + k.labels) * k.width + (token - begin - 1) * block
            _clear(weights, first, first + block)
            for cell in range(data.edge_starts[token], data.edge_starts[token + 1]):
                for y in range(k.labels):
                    row = edge_row(data, cell, k.attributes + k.labels, k.labels) + y
                    _add_row(s, k, row, 1.0, first + y * k.width)


@inner
def _lay_out_transitions(s: Store, k: Task) -> float:
    """Put the transitions on the bench; returns the shift of those that are exponentiated."""
    first = k.bench.tokens * k.width
    _clear(k.bench.rows.weights, first, first + k.labels * k.width)
    for y in range(k.labels):
        _add_row(s, k, k.attributes + y, 1.0, first + y * k.width)
    if k.rule.kind == ASCENT:
        return load_edges(k.bench.rows, k.bench.tokens, k.labels, PLAIN, k.width, k.e)
    read_edges(k.bench.rows, k.bench.tokens, k.labels, PLAIN, k.width, k.e)
    return 0.0


@kernel
def _direction(data: Sequences, sentence: int, m: Model, k: Task) -> tuple[int, float]:
    """The direction of descent of the sentence on the bench, by row; (rows, loss)."""
    own = k.bench.data
    if k.rule.kind != ASCENT:
        loss = violation(own, ZERO, m, k.rule, k.e, k.c, k.decoded)
        count = add_wrong(
            data, sentence, k.decoded, ZERO, k.d, k.nothing, k.attributes, k.labels, k.edges, k.width
        )
        return count, loss
    k.c.pairs[:] = 0
    loss = sequence_posterior(own, ZERO, m, k.edges, k.e, k.c, ZERO)
    subtract_gold(k.c, ZERO, own.gold, ZERO, own.offsets[1], k.width)
    return add_expected(data, sentence, ZERO, k.d, k.c, k.attributes, k.labels, k.edges, k.width), loss


@inlined
def _exists(k: Task, weight: Any) -> bool:
    if k.mask.shape[0] == 0:
        return True
    return bool((k.mask[weight // v.LANES] >> np.uint8(weight % v.LANES)) & np.uint8(1))


@inner
def _move(count: int, rate: float, s: Store, k: Task) -> bool:
    """w += rate * direction; rows that it touches come to exist. Returns whether anything moved."""
    moved, kind = False, s.values.dtype.type
    for i in range(count):
        row = k.d.unique[i]
        template = k.templates[row]
        step = rate / s.scales[template]
        for y in range(k.labels):
            x = k.d.sums[i * k.width + y]
            if x != 0 and _exists(k, row * k.width + y):
                moved = True
                if s.places[row] < 0:
                    first = s.counts[ROWS] * k.width
                    _clear(s.values, first, first + k.width)
                    s.places[row] = s.counts[ROWS]
                    s.owners[s.counts[ROWS]] = row
                    s.counts[ROWS] += 1
                at = np.int64(s.places[row]) * k.width + y
                old = float(s.values[at])
                s.values[at] = kind(old + step * x)
                new = float(s.values[at])
                s.squares[template] += new * new - old * old
                s.counts[WEIGHTS] += int(new != 0.0) - int(old != 0.0)
    return moved


@inlined
def _most_rows(data: Sequences, sentence: int, k: Task) -> int:
    """Rows that a sentence may touch."""
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    rows = data.starts[end] - data.starts[begin] + k.labels
    if k.c.matrices.shape[0] > 0:
        rows += (data.edge_starts[end] - data.edge_starts[begin]) * k.labels
    return int(rows)


@kernel
def run_steps(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, rates: NDArray[np.float64], s: Store, k: Task
) -> tuple[int, int, float]:  # fmt: skip
    """Gradient steps on sentences `first` to `last` of a pass, until the store might not have room for the next.

    Returns the sentence to go on with, the rows it may need, and the loss met. At a rate of 0 losses are summed only.
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
        m = Model(k.bench.rows, PLAIN, shift, k.bench.tokens + k.labels, k.labels, k.width)
        count, loss = _direction(data, order[i], m, k)
        total += loss
        moved = rates[i] != 0.0 and _move(count, rates[i], s, k)
        s.counts[PEAK] = max(s.counts[PEAK], s.counts[WEIGHTS])
    v.restore_denormals(denormals)
    return stop, needed, total


@inlined
def _unit(k: Task, row: Any) -> int:
    """The attribute or, behind these, the edge attribute that a row belongs to; -1 for transitions."""
    if row < k.attributes:
        return int(row)
    blocks = k.attributes + k.labels
    return -1 if row < blocks else int(k.attributes + (row - blocks) // k.labels)


@kernel
def unit_squares(s: Store, k: Task, squares: NDArray[np.float64]) -> None:
    """Add up the squares of the weights of each attribute and edge attribute."""
    for place in range(s.counts[ROWS]):
        row = np.int64(s.owners[place])
        unit, scale = _unit(k, row), s.scales[k.templates[row]]
        if unit >= 0:
            for y in range(k.labels):
                w = scale * s.values[place * k.width + y]
                squares[unit] += w * w


@kernel
def sweep(
    s: Store, thresholds: NDArray[np.float64], factors: NDArray[np.float64], by_unit: NDArray[np.float64], k: Task
) -> None:  # fmt: skip
    """v <- factor * soft(v, threshold), both by template, times a factor by attribute if there are any.

    Rows that become zero make room; squares and counts are taken anew.
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
        for y in range(k.labels):
            old = float(s.values[place * k.width + y])
            s.values[to * k.width + y] = kind(factor * (old - min(max(old, -threshold), threshold)))
            new = float(s.values[to * k.width + y])
            s.squares[template] += new * new
            weights += int(new != 0.0)
        s.places[row] = to if weights > 0 else -1
        if weights > 0:
            s.owners[to] = row
            s.counts[ROWS] += 1
            s.counts[WEIGHTS] += weights


@kernel
def read_out(s: Store, templates: NDArray[np.int16], labels: int, width: int, out: Floats) -> None:
    """Put the weights into rows."""
    kind = out.dtype.type
    for place in range(s.counts[ROWS]):
        row = np.int64(s.owners[place])
        scale = s.scales[templates[row]]
        for y in range(labels):
            out[row * width + y] = kind(scale * s.values[place * width + y])
