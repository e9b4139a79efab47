"""From trained weights to the sparse model: drop what is zero, and templates, columns and entries nothing refers to."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.corpus.vocabulary import Vocabulary
from core.features.columns import Coder, DerivedColumn
from core.features.index import (
    FeatureIndex,
    Slots,
    Table,
    code_at,
    columns_of_values,
    edge_slots_of,
    keys_of,
    slots_of,
)
from core.features.matching import restricted
from core.features.settled import Features, only
from core.features.several import Family
from core.features.template import Template
from core.jit import kernel, readonly
from core.learn.evaluation import Weights
from core.learn.problem import Compiled, offsets_of
from core.model.model import Attributes, Model, RichEdges


def build_model(compiled: Compiled, weights: Weights) -> Model:
    """Keep the attributes that have a weight, renumber what they refer to, and index them anew.

    Templates without such an attribute go too, and with them the columns that only they look at: tagging computes
    neither.
    """
    labels, width = len(compiled.problem.labels), compiled.problem.width
    index, edge_index = compiled.index, compiled.edge_index
    kept = [_kept(compiled, index, weights.attribute_rows, lambda label: label.astype(np.int16))]
    if edge_index is not None:

        def pair(place: NDArray[np.int64]) -> NDArray[np.int32]:
            return (place // width * labels + place % width).astype(np.int32)

        kept.append(_kept(compiled, edge_index, weights.edge_matrices, pair))
    live = np.flatnonzero(weights.attribute_rows.any(axis=1))
    families = tuple(family.restricted(live) for family in compiled.families)
    features = _used_features(compiled.features, kept, families)
    families = tuple(family for family in families if family.spec in features.several)
    coder = _of_features(compiled.coder, features)
    slots = (slots_of(features, coder.vocabularies), edge_slots_of(features, coder.vocabularies))
    numbered = [
        (of_kind, _of_templates(a, old, new))
        for of_kind, a, old, new in zip(
            slots, kept, _kinds(compiled.features), _kinds(features), strict=False
        )
    ]
    entries = _used_entries(coder, families, numbered)
    numbered = [(of_kind, _renumbered(of_kind, a, entries)) for of_kind, a in numbered]
    tables = [Table.of(keys_of(of_kind, a.templates, a.value_starts, a.values)) for of_kind, a in numbered]
    return Model(
        labels=compiled.problem.labels,
        features=features,
        coder=_restricted_to(coder, entries),
        table=tables[0],
        attributes=numbered[0][1],
        transitions=readonly(weights.transitions, np.float32),
        edges=RichEdges(tables[1], numbered[1][1]) if features.rich else None,
        families=families,
    )


def _kinds(features: Features) -> tuple[tuple[Template, ...], ...]:
    """Templates of single labels, and of label pairs."""
    return features.unigrams, features.rich


def _used_features(features: Features, kept: Sequence[Attributes], families: Sequence[Family]) -> Features:
    """The features with the templates that some attribute is of, and the pair of labels by itself."""
    # Templates that make the same features share them, whichever of them met a feature first.
    used = {
        templates[number].made
        for templates, a in zip(_kinds(features), kept, strict=False)
        for number in np.unique(a.templates).tolist()
    }
    over_several = dict.fromkeys(template.made for template in features.over_several)
    used |= {each for each, family in zip(over_several, families, strict=False) if len(family.vocabulary)}
    every = (*features.templates, *features.over_several)
    return only(features, {template for template in every if not template.slots or template.made in used})


def _of_features(coder: Coder, features: Features) -> Coder:
    """The coder with only the columns that the features have."""
    derived = {column.name: column for column in coder.derived}
    matched = {column.name: column for column in coder.matched}
    return Coder(
        coder.base[: features.columns],
        tuple(derived[name] for name, _ in features.derived),
        tuple(matched[name] for name, _ in features.matched),
    )


def _of_templates(a: Attributes, old: Sequence[Template], new: Sequence[Template]) -> Attributes:
    """The attributes, with their templates numbered anew."""
    numbers = {template: i for i, template in enumerate(new)}
    places = np.array([numbers.get(template, -1) for template in old], np.int16)
    return replace(a, templates=readonly(places[a.templates], np.int16))


def _kept(
    compiled: Compiled,
    index: FeatureIndex,
    dense: NDArray[Any],
    label_of: Callable[[NDArray[np.int64]], NDArray[Any]],
) -> Attributes:
    """The attributes that have a weight in `dense`, a row each, with values in the codes of the corpus."""
    live = np.flatnonzero(dense.any(axis=1))
    rows = dense[live]
    weighed = rows != 0
    labels = label_of(np.arange(rows.shape[1]))
    # Behind the attributes of the index are those of several values, which their families tell.
    seen_at = index.seen_at[live[live < index.size]]
    value_starts, values = _values(compiled, index.slots, seen_at)
    return Attributes(
        starts=offsets_of(np.count_nonzero(weighed, axis=1)),
        # Picked by what is weighed: places of weights, as numbers, would take four times what the model does.
        labels=readonly(np.broadcast_to(labels, rows.shape)[weighed], labels.dtype.type),
        weights=readonly(rows[weighed], np.float32),
        templates=readonly(seen_at % len(index.slots.seeds), np.int16),
        value_starts=value_starts,
        values=readonly(values, np.int32),
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


def _values(
    compiled: Compiled, slots: Slots, seen_at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The value codes of attributes, read back from where each was first seen."""
    offsets = compiled.problem.data.offsets
    arity = np.diff(slots.starts).astype(np.int64)[seen_at % len(slots.seeds)]
    value_starts = readonly(np.concatenate([[0], np.cumsum(arity)]), np.int64)
    values = np.empty(value_starts[-1], np.int32)
    sentences = readonly(np.searchsorted(offsets, seen_at // len(slots.seeds), side="right") - 1, np.int64)
    _read_values(slots, compiled.codes, offsets, readonly(seen_at, np.int64), sentences, value_starts, values)
    return value_starts, values


def _used_entries(
    coder: Coder, families: Sequence[Family], kept: Sequence[tuple[Slots, Attributes]]
) -> list[NDArray[np.int64]]:
    """The vocabulary entries that attributes use, of each column.

    A base column that others derive from stays whole: an entry missing there would send its word down the slow path
    of words never seen, where derived values are computed from the string.
    """
    columns = [columns_of_values(slots, a.templates, a.value_starts) for slots, a in kept]
    whole = {column.spec.of for column in coder.made}
    whole |= {family.spec.chain.of for family in families if family.spec.chain is not None}
    entries = []
    for column, vocabulary in enumerate(coder.vocabularies):
        used = np.zeros(len(vocabulary), np.bool_)
        for (_, a), column_of in zip(kept, columns, strict=True):
            used[a.values[(column_of == column) & (a.values >= 0)]] = True
        entries.append(np.arange(len(vocabulary)) if column in whole else np.flatnonzero(used))
    return entries


def _renumbered(slots: Slots, a: Attributes, entries: list[NDArray[np.int64]]) -> Attributes:
    """The attributes, with values numbered among the entries that are used."""
    column_of = columns_of_values(slots, a.templates, a.value_starts)
    values = a.values.copy()
    for column, used in enumerate(entries):
        here = (column_of == column) & (a.values >= 0)
        values[here] = np.searchsorted(used, a.values[here])
    return replace(a, values=readonly(values, np.int32))


def _restricted_to(coder: Coder, entries: list[NDArray[np.int64]]) -> Coder:
    """Drop the vocabulary entries that no attribute uses."""
    base_count = len(coder.base)
    derived = tuple(
        DerivedColumn(d.name, d.spec, _restricted(d.vocabulary, used), _remapped(d.of_base, used))
        for d, used in zip(coder.derived, entries[base_count:], strict=False)
    )
    matched = tuple(
        restricted(m, _restricted(m.vocabulary, used), _remapped(m.value_of, used))
        for m, used in zip(coder.matched, entries[base_count + len(derived) :], strict=True)
    )
    base = tuple(_restricted(v, used) for v, used in zip(coder.base, entries, strict=False))
    return Coder(base, derived, matched)


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
