"""Building the sparse model: drop zero weights, and unused templates, columns and vocabulary entries."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import offsets_of
from tagsmith.core.base.hash_table import Table
from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.arc_index import ArcIndex
from tagsmith.core.features.arc_values import (
    arc_keys_of,
    arc_places_of,
    columns_of_arc_values,
    sites_of,
    values_at,
    with_parents,
)
from tagsmith.core.features.arcs import arc_slots_of, parents_among
from tagsmith.core.features.columns.bags import BagIndex
from tagsmith.core.features.columns.coder import Coder, DerivedColumn
from tagsmith.core.features.index import (
    FeatureIndex,
    Slots,
    code_at,
    columns_of_values,
    edge_slots_of,
    keys_of,
    slots_of,
)
from tagsmith.core.features.resolve import only
from tagsmith.core.features.resolved import Features
from tagsmith.core.features.templates.template import Template
from tagsmith.core.learn.problem.problem import Compiled
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.model import EdgeAttributes, ModelAttributes, SparseModel


def build_model(compiled: Compiled, weights: Weights) -> SparseModel:
    """Keep the attributes with a non-zero weight, renumber what they refer to, and rebuild the index.

    Templates without such an attribute are dropped, and so are the columns that only they use. Tagging then computes
    neither.
    """
    if isinstance(compiled.index, ArcIndex):
        return _parser(compiled, compiled.index, weights)
    labels, width = len(compiled.problem.labels), compiled.problem.width
    index, edge_index = compiled.index, compiled.edge_index
    kept = [_kept(compiled, index, weights.attribute_rows, lambda label: label.astype(np.int16))]
    if edge_index is not None:

        def pair(place: NDArray[np.int64]) -> NDArray[np.int32]:
            return (place // width * labels + place % width).astype(np.int32)

        kept.append(_kept(compiled, edge_index, weights.edge_matrices, pair))
    live = np.flatnonzero(weights.attribute_rows.any(axis=1))
    bags = tuple(bag.restricted(live) for bag in compiled.bags)
    features = _used_features(compiled.features, kept, bags)
    bags = tuple(bag for bag in bags if bag.spec in features.bags)
    coder = _of_features(compiled.coder, features)
    slots = (slots_of(features, coder.vocabularies), edge_slots_of(features, coder.vocabularies))
    numbered = [
        _of_templates(a, old, new)
        for a, old, new in zip(kept, _kinds(compiled.features), _kinds(features), strict=False)
    ]
    columns = [
        columns_of_values(of_kind, a.templates, a.value_starts)
        for of_kind, a in zip(slots, numbered, strict=False)
    ]
    entries = _used_entries(coder, bags, list(zip(columns, numbered, strict=True)))
    numbered = [_renumbered(of_values, a, entries) for of_values, a in zip(columns, numbered, strict=True)]
    tables = [
        Table.of(keys_of(of_kind, a.templates, a.value_starts, a.values))
        for of_kind, a in zip(slots, numbered, strict=False)
    ]
    return SparseModel(
        labels=compiled.problem.labels,
        features=features,
        coder=_restricted_to(coder, entries),
        table=tables[0],
        attributes=numbered[0],
        transitions=readonly(weights.transitions, np.float32),
        edges=EdgeAttributes(tables[1], numbered[1]) if features.rich else None,
        bags=bags,
    )


def _parser(compiled: Compiled, index: ArcIndex, weights: Weights) -> SparseModel:
    """Build the model of a parser.

    It also keeps the attributes that must be found for others to be looked up.
    """
    labels, rules = compiled.problem.labels, compiled.problem.data.trees
    kept = _kept_arcs(compiled, index, weights)
    old = compiled.features
    features = only(old, {old.unigrams[number] for number in np.unique(kept.templates).tolist()})
    coder = _of_features(compiled.coder, features)
    slots, places = arc_slots_of(features, coder.vocabularies), arc_places_of(features)
    a = _of_templates(kept, old.unigrams, features.unigrams)
    columns = columns_of_arc_values(places, a.templates, a.value_starts)
    entries = _used_entries(coder, (), [(columns, a)])
    a = _renumbered(columns, a, entries)
    return SparseModel(
        labels=labels,
        features=features,
        coder=_restricted_to(coder, entries),
        table=Table.of(arc_keys_of(slots, places, a.templates, a.value_starts, a.values)),
        attributes=a,
        transitions=readonly(np.zeros((len(labels), len(labels))), np.float32),
        trees=rules,
    )


def _kinds(features: Features) -> tuple[tuple[Template, ...], ...]:
    """Return the templates of single labels, and those of label pairs."""
    return features.unigrams, features.rich


def _used_features(features: Features, kept: Sequence[ModelAttributes], bags: Sequence[BagIndex]) -> Features:
    """Return the features with only the templates that have an attribute, and the label pair itself."""
    # Templates that make the same features share their attributes.
    used = {
        templates[number].feature_group
        for templates, a in zip(_kinds(features), kept, strict=False)
        for number in np.unique(a.templates).tolist()
    }
    bag_templates = dict.fromkeys(template.feature_group for template in features.bag_templates)
    used |= {each for each, bag in zip(bag_templates, bags, strict=False) if len(bag.vocabulary)}
    every = (*features.templates, *features.bag_templates)
    return only(
        features, {template for template in every if not template.slots or template.feature_group in used}
    )


def _of_features(coder: Coder, features: Features) -> Coder:
    """Return the coder with only the columns of the features."""
    derived = {column.name: column for column in coder.derived}
    matched = {column.name: column for column in coder.matched}
    return Coder(
        coder.base[: features.columns],
        tuple(derived[name] for name, _ in features.derived),
        tuple(matched[name] for name, _ in features.matched),
    )


def _of_templates(a: ModelAttributes, old: Sequence[Template], new: Sequence[Template]) -> ModelAttributes:
    """Return the attributes with their templates renumbered."""
    numbers = {template: i for i, template in enumerate(new)}
    places = np.array([numbers.get(template, -1) for template in old], np.int16)
    return replace(a, templates=readonly(places[a.templates], np.int16))


def _kept(
    compiled: Compiled,
    index: FeatureIndex,
    dense: NDArray[Any],
    label_of: Callable[[NDArray[np.int64]], NDArray[Any]],
) -> ModelAttributes:
    """Return the attributes with a non-zero weight in `dense`, one row per attribute. Values are corpus codes."""
    live = np.flatnonzero(dense.any(axis=1))
    # Bag attributes follow those of the index; the bags name them.
    seen_at = index.seen_at[live[live < index.size]]
    value_starts, values = _values(compiled, index.slots, seen_at)
    templates = readonly(seen_at % len(index.slots.seeds), np.int16)
    return _weighed(dense[live], label_of, templates, value_starts, readonly(values, np.int32))


def _kept_arcs(compiled: Compiled, index: ArcIndex, weights: Weights) -> ModelAttributes:
    """Return the attributes of arcs with a non-zero weight, and those on which their look-up depends."""
    live = np.asarray(weights.attribute_rows.any(axis=1))
    assert compiled.problem.gold_trees is not None
    sites = sites_of(index.seen_at, len(index.slots.seeds), compiled.problem.gold_trees.offsets)
    used = np.unique(sites.templates[live]).tolist()
    slots = index.slots._replace(parents=parents_among(compiled.features, used))
    kept = np.flatnonzero(with_parents(slots, index.table, compiled.codes, sites, live))
    sites = sites.of(kept)
    starts, values = values_at(
        slots, arc_places_of(compiled.features), compiled.codes, sites, index.between_at[kept]
    )
    return _weighed(
        weights.attribute_rows[kept],
        lambda label: label.astype(np.int16),
        readonly(sites.templates, np.int16),
        starts,
        values,
    )


def _weighed(
    rows: NDArray[Any],
    label_of: Callable[[NDArray[np.int64]], NDArray[Any]],
    templates: NDArray[np.int16],
    value_starts: NDArray[np.int64],
    values: NDArray[np.int32],
) -> ModelAttributes:
    """Return attributes with the weights of dense rows that are not zero."""
    weighed = rows != 0
    labels = label_of(np.arange(rows.shape[1]))
    return ModelAttributes(
        starts=offsets_of(np.count_nonzero(weighed, axis=1)),
        # Selected by a mask: an array of indices would take four times the memory of the model.
        labels=readonly(np.broadcast_to(labels, rows.shape)[weighed], labels.dtype.type),
        weights=readonly(rows[weighed], np.float32),
        templates=templates,
        value_starts=value_starts,
        values=values,
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
    """Return the value codes of attributes, read at the token where each was first seen."""
    offsets = compiled.problem.data.offsets
    arity = np.diff(slots.starts).astype(np.int64)[seen_at % len(slots.seeds)]
    value_starts = readonly(np.concatenate([[0], np.cumsum(arity)]), np.int64)
    values = np.empty(value_starts[-1], np.int32)
    sentences = readonly(np.searchsorted(offsets, seen_at // len(slots.seeds), side="right") - 1, np.int64)
    _read_values(slots, compiled.codes, offsets, readonly(seen_at, np.int64), sentences, value_starts, values)
    return value_starts, values


def _used_entries(
    coder: Coder, bags: Sequence[BagIndex], kept: Sequence[tuple[NDArray[np.int32], ModelAttributes]]
) -> list[NDArray[np.int64]]:
    """Return the vocabulary entries of each column that attributes use, given with the column of each value.

    A base column that other columns derive from keeps all entries. Without its entry, a word would take the slow path
    of unknown words, which computes derived values from the string.
    """
    whole = {column.spec.of for column in coder.computed}
    whole |= {bag.spec.derivation.of for bag in bags if bag.spec.derivation is not None}
    entries = []
    for column, vocabulary in enumerate(coder.vocabularies):
        used = np.zeros(len(vocabulary), np.bool_)
        for column_of, a in kept:
            used[a.values[(column_of == column) & (a.values >= 0)]] = True
        entries.append(np.arange(len(vocabulary)) if column in whole else np.flatnonzero(used))
    return entries


def _renumbered(
    column_of: NDArray[np.int32], a: ModelAttributes, entries: list[NDArray[np.int64]]
) -> ModelAttributes:
    """Return the attributes with values renumbered among the used entries."""
    values = a.values.copy()
    for column, used in enumerate(entries):
        here = (column_of == column) & (a.values >= 0)
        values[here] = np.searchsorted(used, a.values[here])
    return replace(a, values=readonly(values, np.int32))


def _restricted_to(coder: Coder, entries: list[NDArray[np.int64]]) -> Coder:
    """Return the coder with only the used vocabulary entries."""
    base_count = len(coder.base)
    derived = tuple(
        DerivedColumn(d.name, d.spec, _restricted(d.vocabulary, used), _remapped(d.of_base, used))
        for d, used in zip(coder.derived, entries[base_count:], strict=False)
    )
    matched = tuple(
        m.restricted(_restricted(m.vocabulary, used), _remapped(m.value_of, used))
        for m, used in zip(coder.matched, entries[base_count + len(derived) :], strict=True)
    )
    base = tuple(_restricted(v, used) for v, used in zip(coder.base, entries, strict=False))
    return Coder(base, derived, matched)


def _restricted(vocabulary: Vocabulary, kept: NDArray[np.int64]) -> Vocabulary:
    if len(kept) == len(vocabulary):
        return vocabulary
    return Vocabulary.from_spans(vocabulary.text, vocabulary.offsets[kept], vocabulary.offsets[kept + 1])


def _remapped(of_base: NDArray[np.int32], kept: NDArray[np.int64]) -> NDArray[np.int32]:
    """Renumber derived ids. Dropped ids become unknown, which makes no feature."""
    size = int(of_base.max(initial=-1)) + 1
    new = np.full(size + 1, -1, np.int32)  # the last cell is for id -1
    new[kept] = np.arange(len(kept), dtype=np.int32)
    return readonly(new[of_base], np.int32)
