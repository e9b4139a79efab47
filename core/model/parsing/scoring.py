"""Scores of arcs and relations: kernels over one sentence.

The score of an arc is the sum of the weights of its features. Most features of most arcs are unknown, and finding that
out takes a cache miss. So a template is looked up only at the heads at which its parent was found (`features.arcs`),
and the cells of all these heads are prefetched before the first is read.

What does not depend on the modifier is computed once per head: the parts of the head, and the hash of each template up
to there. The values of the tokens between are numbered once per sentence; those between a modifier and all heads are
collected once, in the order in which they come up going away from the modifier.
"""

from typing import Any

import numpy as np

from tagsmith.core.base import simd as v
from tagsmith.core.base.arrays import Ids
from tagsmith.core.base.hash_table import find
from tagsmith.core.base.jit import inlined, inner, kernel
from tagsmith.core.features.arcs import Keys, arc_code
from tagsmith.core.features.columns.codes import UNKNOWN
from tagsmith.core.features.index import feature_key, finished, mixed_in, stirred
from tagsmith.core.inference.tree.rules import TreeRules
from tagsmith.core.inference.tree.solver import Task, solve
from tagsmith.core.model.parsing.weights import ArcWeights, ParsingScratch

_EMPTY = np.uint64(0)
#: Sets of columns of the arc: none, direction, distance, both.
_ARC_SETS = 4


@inner
def start(w: ArcWeights, codes: Ids, begin: int, end: int, s: ParsingScratch) -> None:
    """Prepare the buffers for a sentence."""
    size, slots = end - begin + 1, w.slots
    parts, templates = slots.heads.seeds.shape[0], slots.seeds.shape[0]
    for h in range(size):
        for part in range(parts):
            s.heads[h * parts + part] = feature_key(slots.heads, part, codes, begin, end, begin - 1 + h)
    for t in range(templates):
        part = slots.head_parts[t]
        for h in range(size):
            key = slots.seeds[t]
            s.begun[t * size + h] = mixed_in(key, stirred(s.heads[h * parts + part])) if part >= 0 else key
    for c in range(w.columns.shape[0]):
        _number(w.columns[c], codes, begin, end, c * size, s)


@inlined
def _number(column: int, codes: Ids, begin: int, end: int, at: int, s: ParsingScratch) -> None:
    """Number the values of a column in a sentence. `stamps` holds them."""
    count = 0
    for token in range(begin, end):
        code, number = codes[column, token], -1
        if code != UNKNOWN:
            number = 0
            while number < count and s.stamps[number] != code:
                number += 1
            if number == count:
                s.stamps[count], s.codes[at + count] = code, stirred(code)
                count += 1
        s.numbers[at + token - begin] = number


@inner
def start_modifier(w: ArcWeights, codes: Ids, begin: int, end: int, m: int, s: ParsingScratch) -> None:
    """Prepare the buffers for the arcs into a modifier."""
    size, slots = end - begin + 1, w.slots
    for part in range(slots.modifiers.seeds.shape[0]):
        s.modifiers[part] = feature_key(slots.modifiers, part, codes, begin, end, begin - 1 + m)
        s.stirred[part] = stirred(s.modifiers[part])
    for used in range(1, _ARC_SETS):
        for h in range(size):
            s.arcs[used * size + h] = stirred(arc_code(used, h, m))
    count, every = 0, slots.seeds.shape[0]
    for h in range(size):
        s.scores[h] = 0.0
        if h != m:
            s.hits[every * size + count] = h
            count += 1
    s.counts[every] = count
    for c in range(w.columns.shape[0]):
        _collect(c, size, m, s)


@inlined
def _collect(c: int, size: int, m: int, s: ParsingScratch) -> None:
    """Collect the distinct values between a modifier and each head."""
    for side in range(2):
        at, count, step, h = (2 * c + side) * size, 0, 2 * side - 1, m
        for number in range(size):
            s.stamps[number] = 0
        while 0 <= h + step < size:
            if h != m:
                number = s.numbers[c * size + h - 1]
                if number >= 0 and s.stamps[number] == 0:
                    s.stamps[number] = 1
                    s.between[at + count] = number
                    count += 1
            h += step
            s.until[c * size + h] = count


@inlined
def _key(w: ArcWeights, t: int, h: int, size: int, s: ParsingScratch) -> np.uint64:
    """The hash of a template at an arc into the current modifier before `finished`, or 0 if it makes no feature."""
    slots = w.slots
    part, key = slots.head_parts[t], s.begun[t * size + h]
    if part >= 0 and s.heads[h * slots.heads.seeds.shape[0] + part] == _EMPTY:
        return _EMPTY
    part = slots.modifier_parts[t]
    if part >= 0:
        if s.modifiers[part] == _EMPTY:
            return _EMPTY
        key = mixed_in(key, s.stirred[part])
    used = slots.arc_parts[t]
    return mixed_in(key, s.arcs[used * size + h]) if used else key


@inlined
def _prefetch(w: ArcWeights, key: np.uint64) -> None:
    cell = np.int64(key & np.uint64(w.cells.shape[0] - 1))
    v.prefetch(w.cells, cell)
    v.prefetch(w.arcs, cell)


@inlined
def _find_cell(cells: Keys, key: np.uint64) -> Any:
    """Return the cell of a key, or -1."""
    mask = np.uint64(cells.shape[0] - 1)
    cell = key & mask
    while cells[cell] != _EMPTY:
        if cells[cell] == key:
            return np.int64(cell)
        cell = (cell + np.uint64(1)) & mask
    return np.int64(-1)


@inner
def score_heads(w: ArcWeights, size: int, m: int, s: ParsingScratch) -> None:
    """Write the scores of the arcs into a modifier to `s.scores`, for a sentence of size - 1 words."""
    slots = w.slots
    templates = slots.seeds.shape[0]
    for i in range(templates):
        t = slots.order[i]
        parent = slots.parents[t] if slots.parents[t] >= 0 else templates
        if slots.between[t] >= 0:
            for k in range(s.counts[parent]):
                _score_between(w, t, s.hits[parent * size + k], size, m, s)
            continue
        count, hits = 0, 0
        for k in range(s.counts[parent]):
            h = s.hits[parent * size + k]
            key = _key(w, t, h, size, s)
            if key != _EMPTY:
                s.keys[count], s.near[count] = finished(key), h
                _prefetch(w, s.keys[count])
                count += 1
        for k in range(count):
            cell = _find_cell(w.cells, s.keys[k])
            if cell >= 0:
                s.scores[s.near[k]] += w.arcs[cell]
                s.hits[t * size + hits] = s.near[k]
                hits += 1
        s.counts[t] = hits


@inlined
def _score_between(w: ArcWeights, t: int, h: int, size: int, m: int, s: ParsingScratch) -> None:
    """Add the features of a template over the tokens between to the score of an arc."""
    c, key = w.between[t], _key(w, t, h, size, s)
    if key == _EMPTY:
        return
    at, count = (2 * c + (h > m)) * size, s.until[c * size + h]
    for k in range(count):
        s.keys[k] = finished(mixed_in(key, s.codes[c * size + s.between[at + k]]))
        _prefetch(w, s.keys[k])
    for k in range(count):
        cell = _find_cell(w.cells, s.keys[k])
        if cell >= 0:
            s.scores[h] += w.arcs[cell]


@inner
def find_rows(w: ArcWeights, h: int, m: int, size: int, s: ParsingScratch) -> int:
    """Write the attributes of an arc into the current modifier to `s.rows`; return their number."""
    slots, count = w.slots, 0
    for i in range(slots.order.shape[0]):
        t = slots.order[i]
        s.found[t] = -1
        if slots.parents[t] >= 0 and s.found[slots.parents[t]] < 0:
            continue
        key, c = _key(w, t, h, size, s), w.between[t]
        if key == _EMPTY:
            continue
        if c < 0:
            s.found[t] = row = find(w.cells, w.numbers, finished(key))
            if row >= 0:
                s.rows[count] = row
                count += 1
            continue
        at = (2 * c + (h > m)) * size
        for k in range(s.until[c * size + h]):
            row = find(w.cells, w.numbers, finished(mixed_in(key, s.codes[c * size + s.between[at + k]])))
            if row >= 0:
                s.rows[count] = row
                count += 1
    return count


@inner
def score_relations(w: ArcWeights, count: int, s: ParsingScratch) -> int:
    """Add up the weights of `count` attributes to `s.lanes`; return the best relation, 0 if there are none."""
    for lane in range(s.lanes.shape[0]):
        s.lanes[lane] = 0.0
    for i in range(count):
        v.prefetch(w.labels, w.starts[s.rows[i]])
        v.prefetch(w.weights, w.starts[s.rows[i]])
    for i in range(count):
        for k in range(w.starts[s.rows[i]], w.starts[s.rows[i] + 1]):
            s.lanes[w.labels[k]] += w.weights[k]
    best = 1 if w.relations > 0 else 0
    for relation in range(2, w.relations + 1):
        if s.lanes[relation] > s.lanes[best]:
            best = relation
    return best


@inner
def score_sentence(w: ArcWeights, codes: Ids, begin: int, end: int, s: ParsingScratch) -> None:
    """Write the scores of all arcs of a sentence to the solver."""
    size: Any = end - begin + 1
    start(w, codes, begin, end, s)
    for m in range(1, size):
        start_modifier(w, codes, begin, end, m, s)
        score_heads(w, size, m, s)
        for h in range(size):
            s.solver.scores[h * size + m] = s.scores[h]


@kernel
def marginals_of(
    w: ArcWeights, rules: TreeRules, codes: Ids, begin: int, end: int, s: ParsingScratch
) -> None:
    """Compute the probability of each arc of a sentence, in the solver."""
    score_sentence(w, codes, begin, end, s)
    solve(Task.MARGINALS, rules, end - begin, s.solver)


@kernel
def rows_of(w: ArcWeights, codes: Ids, begin: int, end: int, h: int, m: int, s: ParsingScratch) -> int:
    """Write the attributes of one arc of a sentence to `s.rows`; return their number."""
    start(w, codes, begin, end, s)
    start_modifier(w, codes, begin, end, m, s)
    return find_rows(w, h, m, end - begin + 1, s)
