"""From trained weights to the sparse model: drop what is zero, and the vocabulary entries nothing refers to."""

import numpy as np
from numpy.typing import NDArray

from core.corpus.vocabulary import Vocabulary
from core.features.columns import Coder, DerivedColumn
from core.features.index import Slots, Table, code_at, keys_of
from core.features.matching import restricted
from core.jit import kernel, readonly
from core.learn.evaluation import Weights
from core.learn.problem import Compiled
from core.model.model import Attributes, Model


def build_model(compiled: Compiled, weights: Weights) -> Model:
    """Keep the attributes that have a weight, renumber what they refer to, and index them anew."""
    dense = weights.attribute_rows
    live = np.flatnonzero(dense.any(axis=1))
    rows, labels = np.nonzero(dense[live])
    seen_at = compiled.index.seen_at[live]
    templates = (seen_at % len(compiled.index.slots.seeds)).astype(np.int16)
    value_starts, values = _values(compiled, seen_at)
    coder, values = _pruned(compiled, templates, value_starts, values)
    keys = keys_of(compiled.index.slots, templates, value_starts, values)
    return Model(
        labels=compiled.problem.labels,
        features=compiled.features,
        coder=coder,
        table=Table.of(keys),
        attributes=Attributes(
            starts=readonly(np.searchsorted(rows, np.arange(len(live) + 1)), np.int64),
            labels=readonly(labels, np.int16),
            weights=readonly(dense[live[rows], labels], np.float32),
            templates=readonly(templates, np.int16),
            value_starts=value_starts,
            values=values,
        ),
        transitions=readonly(weights.transitions, np.float32),
    )


@kernel
def _read_values(
    slots: Slots, codes: NDArray[np.int32], offsets: NDArray[np.int64], seen_at: NDArray[np.int64],
    sentences: NDArray[np.int64], value_starts: NDArray[np.int64], values: NDArray[np.int32],
) -> None:  # fmt: skip
    templates = slots.seeds.shape[0]
    for i in range(seen_at.shape[0]):
        token, template = seen_at[i] // templates, seen_at[i] % templates
        begin, end = offsets[sentences[i]], offsets[sentences[i] + 1]
        at = value_starts[i]
        for s in range(slots.starts[template], slots.starts[template + 1]):
            values[at] = code_at(slots, s, codes, begin, end, token)
            at += 1


def _values(compiled: Compiled, seen_at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The value codes of attributes, read back from where each was first seen."""
    slots, offsets = compiled.index.slots, compiled.problem.data.offsets
    arity = np.diff(slots.starts).astype(np.int64)[seen_at % len(slots.seeds)]
    value_starts = readonly(np.concatenate([[0], np.cumsum(arity)]), np.int64)
    values = np.empty(value_starts[-1], np.int32)
    sentences = readonly(np.searchsorted(offsets, seen_at // len(slots.seeds), side="right") - 1, np.int64)
    _read_values(slots, compiled.codes, offsets, readonly(seen_at, np.int64), sentences, value_starts, values)
    return value_starts, values


def _pruned(
    compiled: Compiled,
    templates: NDArray[np.int16],
    value_starts: NDArray[np.int64],
    values: NDArray[np.int32],
) -> tuple[Coder, NDArray[np.int32]]:
    """Drop vocabulary entries that no attribute uses, and renumber the values.

    A base column that others derive from stays whole: an entry missing there would send its word down the slow path
    of words never seen, where derived values are computed from the string.
    """
    slots, coder = compiled.index.slots, compiled.coder
    column_of = _columns_of_values(slots, templates, value_starts)
    base_count = len(coder.base)
    whole = {column.spec.of for column in coder.made}
    kept: list[NDArray[np.int64]] = []
    renumbered = values.copy()
    for column, vocabulary in enumerate(coder.vocabularies):
        here = (column_of == column) & (values >= 0)
        used = np.arange(len(vocabulary)) if column in whole else np.unique(values[here])
        renumbered[here] = np.searchsorted(used, values[here])
        kept.append(used.astype(np.int64))
    base = tuple(_restricted(v, kept[i]) for i, v in enumerate(coder.base))
    derived = tuple(
        DerivedColumn(
            d.name,
            d.spec,
            _restricted(d.vocabulary, kept[base_count + i]),
            _remapped(d.of_base, kept[base_count + i]),
        )
        for i, d in enumerate(coder.derived)
    )
    later = kept[base_count + len(derived) :]
    matched = tuple(
        restricted(m, _restricted(m.vocabulary, used), _remapped(m.value_of, used))
        for m, used in zip(coder.matched, later, strict=True)
    )
    return Coder(base, derived, matched), readonly(renumbered, np.int32)


def _columns_of_values(
    slots: Slots, templates: NDArray[np.int16], value_starts: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The column that each value belongs to."""
    first_slot = slots.starts[templates].astype(np.int64)
    arity = np.diff(value_starts)
    within = np.arange(value_starts[-1]) - np.repeat(value_starts[:-1], arity)
    return np.asarray(slots.columns[np.repeat(first_slot, arity) + within])


def _restricted(vocabulary: Vocabulary, kept: NDArray[np.int64]) -> Vocabulary:
    if len(kept) == len(vocabulary):
        return vocabulary
    return Vocabulary.from_spans(vocabulary.text, vocabulary.offsets[kept], vocabulary.offsets[kept + 1])


def _remapped(of_base: NDArray[np.int32], kept: NDArray[np.int64]) -> NDArray[np.int32]:
    """Renumber derived ids; those dropped become unknown, which makes no feature."""
    size = int(of_base.max(initial=-1)) + 1
    new = np.full(size + 1, -1, np.int32)  # the last cell serves id -1
    new[kept] = np.arange(len(kept), dtype=np.int32)
    return readonly(new[of_base], np.int32)
