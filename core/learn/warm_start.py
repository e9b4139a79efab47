"""Starting from an earlier model: its weights, wherever the feature and the label still exist.

A feature is the same when its template reads the same and its values are the same strings; a label, when it has the
same name. What is new starts at zero; what is gone is left behind.
"""

import numpy as np
from numpy.typing import NDArray

from core.corpus.vocabulary import Vocabulary
from core.features.columns import Coder
from core.features.index import UNKNOWN, FeatureIndex, Slots, columns_of_values, find, keys_of
from core.features.several import Family
from core.inference.vector import zeros
from core.jit import kernel, readonly
from core.learn.evaluation import Weights
from core.learn.problem import Compiled
from core.model.model import Attributes, Model


@kernel
def _find_all(
    cells: NDArray[np.uint64], rows: NDArray[np.int32], keys: NDArray[np.uint64], out: NDArray[np.int64]
) -> None:
    for i in range(keys.shape[0]):
        out[i] = find(cells, rows, keys[i])


def weights_of(model: Model, compiled: Compiled) -> Weights:
    """The model's weights on the attributes and labels of another problem."""
    problem = compiled.problem
    names = {name: y for y, name in enumerate(problem.labels)}
    label_of = np.array([names.get(name, -1) for name in model.labels], np.int64)
    values = zeros(problem.rows * problem.width, np.float32)
    rows = values.reshape(-1, problem.width)

    a = model.attributes
    found = _rows_of(a, model.slots, model, compiled.coder, compiled.index)
    _rows_in_families(model, compiled, found)
    row_of = np.repeat(found, np.diff(a.starts))
    label = label_of[a.labels]
    kept = (row_of >= 0) & (label >= 0)
    rows[row_of[kept], label[kept]] = a.weights[kept]

    if model.edges is not None and compiled.edge_index is not None:
        b, count = model.edges.attributes, len(model.labels)
        found = _rows_of(b, model.edge_slots, model, compiled.coder, compiled.edge_index)
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


def _rows_of(a: Attributes, old: Slots, model: Model, coder: Coder, index: FeatureIndex) -> NDArray[np.int64]:
    """The number of each of the model's attributes `a` in an index, -1 where it has none."""
    values = _recoded(a, old, model, coder)
    # Keys mix the template's identity, which is its text: equal in both wherever the template is.
    keys = keys_of(old, a.templates, a.value_starts, values)
    found = np.full(a.size, -1, np.int64)
    singles = found[: a.singles]
    _find_all(index.table.keys, index.table.rows, readonly(keys, np.uint64), singles)
    arity = np.diff(a.value_starts)
    unknown = np.repeat(np.arange(a.singles), arity)[values == UNKNOWN]
    singles[unknown] = -1
    singles[~np.isin(old.seeds, index.slots.seeds)[a.templates]] = -1
    return found


def _rows_in_families(model: Model, compiled: Compiled, found: NDArray[np.int64]) -> None:
    """Put in the rows of attributes of several values, where a template makes the same of the same names."""
    for family in model.families:
        for other in compiled.families:
            if other.spec.same_features(family.spec):
                found[family.attributes] = _in_family(family.vocabulary, other)


def _in_family(names: Vocabulary, family: Family) -> NDArray[np.int32]:
    """The attribute of each name in a family, -1 where it has none."""
    entries = family.vocabulary.lookup(names.text, names.offsets[:-1], names.offsets[1:])
    known = entries != UNKNOWN
    entries[known] = family.attributes[entries[known]]
    return entries


def _recoded(a: Attributes, slots: Slots, model: Model, coder: Coder) -> NDArray[np.int32]:
    """The values of the model's attributes `a` in the codes of another coder; boundaries stay as they are."""
    columns = columns_of_values(slots, a.templates, a.value_starts)
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


def _same_column(model: Model, column: int, coder: Coder) -> Vocabulary | None:
    """The vocabulary of the same column: by number, or for a derived one by name and definition."""
    base = len(model.coder.base)
    if column < base:
        return coder.base[column] if column < len(coder.base) else None
    old = model.coder.made[column - base]
    for derived in coder.made:
        if (derived.name, derived.spec) == (old.name, old.spec):
            return derived.vocabulary
    return None
