"""Warm start: take over the weights of an earlier model for features and labels that still exist.

Two features are the same if their templates and the strings of their values are equal; two labels, if their names are.
New features and labels start at zero.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.hash_table import find
from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.base.simd import zeros
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.arc_index import ArcIndex
from tagsmith.core.features.arc_values import arc_keys_of, columns_of_arc_values
from tagsmith.core.features.columns.bags import BagIndex
from tagsmith.core.features.columns.coder import Coder
from tagsmith.core.features.columns.codes import UNKNOWN
from tagsmith.core.features.index import FeatureIndex, Slots, columns_of_values, keys_of
from tagsmith.core.learn.problem.problem import Compiled
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.model import ModelAttributes, SparseModel


@kernel
def _find_all(
    cells: NDArray[np.uint64], rows: NDArray[np.int32], keys: NDArray[np.uint64], out: NDArray[np.int64]
) -> None:
    for i in range(keys.shape[0]):
        out[i] = find(cells, rows, keys[i])


def weights_of(model: SparseModel, compiled: Compiled) -> Weights:
    """Return the model's weights for the attributes and labels of another problem."""
    problem = compiled.problem
    names = {name: y for y, name in enumerate(problem.labels)}
    label_of = np.array([names.get(name, -1) for name in model.labels], np.int64)
    values = zeros(problem.rows * problem.width, np.float32)
    rows = values.reshape(-1, problem.width)

    a = model.attributes
    if isinstance(compiled.index, ArcIndex):
        found = _rows_of(a, _arc_keys(a, model, compiled), model.arc_slots.seeds, compiled.index)
    else:
        found = _rows_of(a, _keys(a, model.slots, model, compiled), model.slots.seeds, compiled.index)
    _rows_in_bags(model, compiled, found)
    row_of = np.repeat(found, np.diff(a.starts))
    label = label_of[a.labels]
    kept = (row_of >= 0) & (label >= 0)
    rows[row_of[kept], label[kept]] = a.weights[kept]

    if model.edges is not None and compiled.edge_index is not None:
        b, count = model.edges.attributes, len(model.labels)
        keys = _keys(b, model.edge_slots, model, compiled)
        found = _rows_of(b, keys, model.edge_slots.seeds, compiled.edge_index)
        block = np.repeat(found, np.diff(b.starts))
        before, label = label_of[b.labels // count], label_of[b.labels % count]
        kept = (block >= 0) & (before >= 0) & (label >= 0)
        row_of = problem.blocks + block * len(problem.labels) + before
        rows[row_of[kept], label[kept]] = b.weights[kept]

    if problem.edges:
        known = np.flatnonzero(label_of >= 0)
        mapped = label_of[known]
        rows[problem.attributes + mapped[:, None], mapped[None, :]] = model.transitions[np.ix_(known, known)]
    return Weights(problem, values)


class _Keys(NamedTuple):
    """The keys of a model's attributes in the codes of another coder, and the attributes with a value unknown there."""

    keys: NDArray[np.uint64]
    unknown: NDArray[np.int64]


def _keys(a: ModelAttributes, slots: Slots, model: SparseModel, compiled: Compiled) -> _Keys:
    columns = columns_of_values(slots, a.templates, a.value_starts)
    values = _recoded(a, columns, model, compiled.coder)
    return _Keys(keys_of(slots, a.templates, a.value_starts, values), _with_unknown(a, values))


def _arc_keys(a: ModelAttributes, model: SparseModel, compiled: Compiled) -> _Keys:
    places = model.arc_places
    columns = columns_of_arc_values(places, a.templates, a.value_starts)
    values = _recoded(a, columns, model, compiled.coder)
    keys = arc_keys_of(model.arc_slots, places, a.templates, a.value_starts, values)
    return _Keys(keys, _with_unknown(a, values))


def _with_unknown(a: ModelAttributes, values: NDArray[np.int32]) -> NDArray[np.int64]:
    unknown: NDArray[np.int64] = np.repeat(np.arange(a.singles), np.diff(a.value_starts))[values == UNKNOWN]
    return unknown


def _rows_of(
    a: ModelAttributes, recoded: _Keys, seeds: NDArray[np.uint64], index: FeatureIndex | ArcIndex
) -> NDArray[np.int64]:
    """Return the number of each of the model's attributes `a` in an index; -1 if it is not there.

    `seeds` are those of the model's templates.
    """
    # Keys contain the identity of the template, its text, so equal templates have equal keys in both.
    found = np.full(a.size, -1, np.int64)
    singles = found[: a.singles]
    _find_all(index.table.keys, index.table.rows, readonly(recoded.keys, np.uint64), singles)
    singles[recoded.unknown] = -1
    singles[~np.isin(seeds, index.slots.seeds)[a.templates]] = -1
    return found


def _rows_in_bags(model: SparseModel, compiled: Compiled, found: NDArray[np.int64]) -> None:
    """Fill in the rows of bag attributes, matched by the template and the name."""
    for bag in model.bags:
        for other in compiled.bags:
            if other.spec.same_features(bag.spec):
                found[bag.attributes] = _in_bag(bag.vocabulary, other)


def _in_bag(names: Vocabulary, bag: BagIndex) -> NDArray[np.int32]:
    """Return the attribute of each name in a bag; -1 if it is not there."""
    entries = bag.vocabulary.lookup(names.text, names.offsets[:-1], names.offsets[1:])
    known = entries != UNKNOWN
    entries[known] = bag.attributes[entries[known]]
    return entries


def _recoded(
    a: ModelAttributes, columns: NDArray[np.int32], model: SparseModel, coder: Coder
) -> NDArray[np.int32]:
    """Return the values of the model's attributes `a`, which are of these columns, in the codes of another coder.

    Boundary codes are the same, and so are the codes of columns of an arc.
    """
    values = a.values.copy()
    for column, vocabulary in enumerate(model.coder.vocabularies):
        here = (columns == column) & (a.values >= 0)
        target = _same_column(model, column, coder)
        if target is None:
            values[here] = UNKNOWN
        else:
            ids = target.lookup(vocabulary.text, vocabulary.offsets[:-1], vocabulary.offsets[1:])
            values[here] = ids[a.values[here]]
    return readonly(values, np.int32)


def _same_column(model: SparseModel, column: int, coder: Coder) -> Vocabulary | None:
    """Return the vocabulary of the same column: by number, or for computed columns by name and definition."""
    base = len(model.coder.base)
    if column < base:
        return coder.base[column] if column < len(coder.base) else None
    old = model.coder.computed[column - base]
    for derived in coder.computed:
        if (derived.name, derived.spec) == (old.name, old.spec):
            return derived.vocabulary
    return None
