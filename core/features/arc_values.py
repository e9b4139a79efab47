"""The values of features over arcs: read where a feature occurs first, and turned into its key again.

A feature has one code per place of its template, in the order of the places. Codes of head, modifier and the tokens
between are entries of the vocabulary of a column; codes of the columns of an arc are indices of `ARC_VALUES`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places, offsets_of
from tagsmith.core.base.hash_table import Table, find
from tagsmith.core.base.jit import inlined, kernel, readonly
from tagsmith.core.features.arcs import ARC_VALUES, ArcSlots, Keys, arc_code, arc_term, arc_value, joined_key
from tagsmith.core.features.index import code_at, feature_key, finished, mixed, slots_of_values
from tagsmith.core.features.resolved import Features
from tagsmith.core.features.templates.template import ARC_ANCHORS

_HEAD, _MODIFIER, _BETWEEN = (ARC_ANCHORS.index(name) for name in ("head", "modifier", "between"))


class ArcPlaces(NamedTuple):
    """The places of templates over arcs. Template t joins the places `starts[t]:starts[t+1]`."""

    starts: Ids  # (templates + 1,)
    anchors: Ids  # (places,) index in ARC_ANCHORS
    columns: Ids  # (places,) the column whose vocabulary has the values; -1 for a column of the arc
    arc_columns: Ids  # (places,) the column of the arc, or -1


def arc_places_of(features: Features) -> ArcPlaces:
    """Pack the places of templates over arcs for kernels."""
    places = [place for of_template in features.slots for place in of_template]
    arc = [place.slot.anchor == "arc" for place in places]

    def ids(values: Sequence[int]) -> Ids:
        return readonly(np.array(values, np.int32), np.int32)

    return ArcPlaces(
        readonly(np.cumsum([0, *map(len, features.slots)]), np.int32),
        ids([ARC_ANCHORS.index(place.slot.anchor) for place in places]),
        ids([-1 if own else place.column for place, own in zip(places, arc, strict=True)]),
        ids([place.column if own else -1 for place, own in zip(places, arc, strict=True)]),
    )


class Sites(NamedTuple):
    """Where attributes occur: template, sentence `begins:ends`, head and modifier as numbers of words."""

    templates: Ids
    begins: Places
    ends: Places
    heads: Places
    modifiers: Places

    def of(self, kept: Places) -> "Sites":
        """Return the sites of these attributes."""
        of_words = (
            readonly(each[kept], np.int64) for each in (self.begins, self.ends, self.heads, self.modifiers)
        )
        return Sites(readonly(self.templates[kept], np.int32), *of_words)


def sites_of(seen_at: Places, templates: int, offsets: Places) -> Sites:
    """Return where attributes were seen first, as in `ArcIndex`. `offsets` are those of the tokens of sentences."""
    lengths = np.diff(offsets)
    arcs_before = offsets_of(lengths * lengths)
    arcs, template = np.divmod(seen_at, max(templates, 1))
    sentences = np.searchsorted(arcs_before, arcs, side="right") - 1
    modifiers, heads = np.divmod(arcs - arcs_before[sentences], lengths[sentences])
    return Sites(
        readonly(template, np.int32),
        readonly(offsets[sentences], np.int64),
        readonly(offsets[sentences + 1], np.int64),
        readonly(heads + (heads > modifiers), np.int64),
        readonly(modifiers + 1, np.int64),
    )


@kernel
def _read(
    slots: ArcSlots, places: ArcPlaces, codes: Ids, sites: Sites, between_at: Ids, starts: Places, values: Ids
) -> None:
    for i in range(sites.templates.shape[0]):
        t, begin, end = sites.templates[i], sites.begins[i], sites.ends[i]
        h, m, at = sites.heads[i], sites.modifiers[i], starts[i]
        # The places of a part are in the order of the template.
        of_head = slots.heads.starts[max(slots.head_parts[t], 0)]
        of_modifier = slots.modifiers.starts[max(slots.modifier_parts[t], 0)]
        for place in range(places.starts[t], places.starts[t + 1]):
            anchor = places.anchors[place]
            if anchor == _HEAD:
                values[at] = code_at(slots.heads, of_head, codes, begin, end, begin - 1 + h)
                of_head += 1
            elif anchor == _MODIFIER:
                values[at] = code_at(slots.modifiers, of_modifier, codes, begin, end, begin - 1 + m)
                of_modifier += 1
            elif anchor == _BETWEEN:
                values[at] = between_at[i]
            else:
                values[at] = arc_value(places.arc_columns[place], h, m)
            at += 1


def values_at(
    slots: ArcSlots, places: ArcPlaces, codes: Ids, sites: Sites, between_at: Ids
) -> tuple[Places, Ids]:
    """Return the value codes of attributes: where those of each begin, and all of them."""
    starts = offsets_of(np.diff(places.starts).astype(np.int64)[sites.templates])
    values = np.empty(starts[-1], np.int32)
    _read(slots, places, codes, sites, readonly(between_at, np.int32), starts, values)
    return starts, readonly(values, np.int32)


@kernel
def _mark_parents(
    slots: ArcSlots, cells: Keys, numbers: Ids, codes: Ids, sites: Sites, marked: NDArray[np.bool_]
) -> None:
    for i in range(sites.templates.shape[0]):
        if not marked[i]:
            continue
        begin, end, h, m = sites.begins[i], sites.ends[i], sites.heads[i], sites.modifiers[i]
        t = slots.parents[sites.templates[i]]
        while t >= 0:
            head = modifier = np.uint64(0)
            if slots.head_parts[t] >= 0:
                head = feature_key(slots.heads, slots.head_parts[t], codes, begin, end, begin - 1 + h)
            if slots.modifier_parts[t] >= 0:
                modifier = feature_key(
                    slots.modifiers, slots.modifier_parts[t], codes, begin, end, begin - 1 + m
                )
            key = joined_key(slots, t, head, modifier, arc_code(slots.arc_parts[t], h, m))
            row = find(cells, numbers, finished(key))
            if row >= 0:
                marked[row] = True
            t = slots.parents[t]


def with_parents(
    slots: ArcSlots, table: Table, codes: Ids, sites: Sites, marked: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Mark also the attributes that must be found for the marked ones to be found; `slots.parents` says which."""
    out = marked.copy()
    _mark_parents(slots, table.keys, table.rows, codes, sites, out)
    return out


@inlined
def _value_key(slots: ArcSlots, places: ArcPlaces, t: int, values: Ids, first: int) -> np.uint64:
    """The key of a feature of template t, with the values from `first` on."""
    head = modifier = np.uint64(0)
    if slots.head_parts[t] >= 0:
        head = slots.heads.seeds[slots.head_parts[t]]
    if slots.modifier_parts[t] >= 0:
        modifier = slots.modifiers.seeds[slots.modifier_parts[t]]
    used, code, between = 0, 0, -1
    for place in range(places.starts[t], places.starts[t + 1]):
        value, anchor = np.int64(values[first + place - places.starts[t]]), places.anchors[place]
        if anchor == _HEAD:
            head = mixed(head, value)
        elif anchor == _MODIFIER:
            modifier = mixed(modifier, value)
        elif anchor == _BETWEEN:
            between = first + place - places.starts[t]
        elif not used & (1 << places.arc_columns[place]):
            used |= 1 << places.arc_columns[place]
            code += arc_term(int(places.arc_columns[place]), int(value))
    key = joined_key(slots, t, finished(head), finished(modifier), code)
    return finished(mixed(key, np.int64(values[between])) if between >= 0 else key)


@kernel
def _keys(
    slots: ArcSlots, places: ArcPlaces, templates: NDArray[np.int16], starts: Places, values: Ids, keys: Keys
) -> None:
    for i in range(templates.shape[0]):
        keys[i] = _value_key(slots, places, templates[i], values, starts[i])


def arc_keys_of(
    slots: ArcSlots, places: ArcPlaces, templates: NDArray[np.int16], starts: Places, values: Ids
) -> Keys:
    """The keys of attributes given by template and value codes, equal to those in text."""
    keys = np.empty(len(templates), np.uint64)
    _keys(slots, places, readonly(templates, np.int16), starts, readonly(values, np.int32), keys)
    return keys


def columns_of_arc_values(places: ArcPlaces, templates: NDArray[np.int16], starts: Places) -> Ids:
    """The column of each value of attributes, -1 for columns of the arc."""
    return np.asarray(places.columns[slots_of_values(places.starts, templates, starts)])


def arc_values_are_known(
    places: ArcPlaces, templates: NDArray[np.int16], starts: Places, values: Ids, sizes: Sequence[int]
) -> bool:
    """Whether every value has a name: an entry of the vocabulary, a position outside, or a value of the arc's column.

    `sizes` are those of the vocabularies of all columns.
    """
    place = slots_of_values(places.starts, templates, starts)
    of_arc, between = places.arc_columns[place], places.anchors[place] == _BETWEEN
    # The last entry is for -1.
    of_column = np.array([*sizes, 0], np.int64)[places.columns[place]]
    most = np.where(of_arc >= 0, np.array([*map(len, ARC_VALUES), 0])[of_arc], of_column)
    return bool((values < most).all() and (values[(of_arc >= 0) | between] >= 0).all())
