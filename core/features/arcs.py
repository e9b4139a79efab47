"""Features of arcs between words, for dependency trees: an index like that of `index`, over pairs of tokens.

A template joins values of the head, of the modifier, of the arc itself (direction, distance), and of the tokens between
the two. It is split into these parts. The part of the head is hashed once per head and the part of the modifier once
per modifier; only their combination is computed for every arc:

    key = finish(mix(mix(mix(seed, head part), modifier part), arc part))

A template over a token between makes one feature for each distinct value that occurs there.

Look-ups dominate the cost, so a look-up is shared: if template u joins some of the values that t joins, then a feature
of t can exist only if that of u does, because an occurrence of one is an occurrence of the other. Templates are looked
up from short to long, and t only where its longest such u, its `parent`, was found.

A sentence of n words has n * n possible arcs: word m = 1..n has the heads 0..n except itself, and 0 is the root. They
are numbered by modifier, then by head.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.hash_table import find
from tagsmith.core.base.hashing import fnv1a
from tagsmith.core.base.jit import inlined, inner, kernel, readonly
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.columns.codes import UNKNOWN
from tagsmith.core.features.index import Slots, feature_key, finished, mixed, packed
from tagsmith.core.features.resolved import Features, ResolvedSlot
from tagsmith.core.features.templates.template import ARC_COLUMNS, Template

Keys = NDArray[np.uint64]

_DIRECTION, _DISTANCE = (ARC_COLUMNS.index(name) for name in ("direction", "distance"))
#: The first distance of each bin.
DISTANCES = (1, 2, 3, 4, 5, 7, 11, 21)
#: The values of the columns of an arc, in the order of their codes.
ARC_VALUES = (
    ("left", "right"),
    tuple(
        str(a) if b == a + 1 else f"{a}-{b - 1}" if b else f"{a}+"
        for a, b in zip(DISTANCES, (*DISTANCES[1:], 0), strict=True)
    ),
)
_BINS = readonly(
    np.searchsorted(np.array(DISTANCES), np.arange(DISTANCES[-1] + 1), side="right") - 1, np.int32
)


class ArcSlots(NamedTuple):
    """The templates over arcs as arrays."""

    seeds: Keys  # (templates,) the hash of the template's identity
    heads: Slots  # the distinct parts of heads, each as a template
    modifiers: Slots
    head_parts: Ids  # (templates,) the part of the head, or -1
    modifier_parts: Ids  # (templates,)
    arc_parts: Ids  # (templates,) a bit for each column of the arc that the template joins
    between: Ids  # (templates,) the column of the tokens between, or -1
    parents: Ids  # (templates,) the template that must be found for this one to be found, or -1
    order: Ids  # (templates,) parents before children


@inlined
def arc_of(h: int, m: int, n: int) -> int:
    """Return the number of the arc from head h to modifier m of a sentence of n words."""
    return (m - 1) * n + (h if h < m else h - 1)


@inlined
def arc_value(column: int, h: int, m: int) -> int:
    """Return the value of a column of the arc, an index of its values in `ARC_VALUES`."""
    return int(h > m) if column == _DIRECTION else int(_BINS[min(abs(h - m), _BINS.shape[0] - 1)])


@inlined
def arc_term(column: int, value: int) -> int:
    """Return what a column of the arc adds to the joined code of the arc."""
    return 1 + value if column == _DIRECTION else 3 * (1 + value)


@inlined
def arc_code(used: int, h: int, m: int) -> int:
    """Return the joined code of the columns of the arc in `used`, a bit for each column; 0 if there are none."""
    code = 0
    if used & (1 << _DIRECTION):
        code += arc_term(_DIRECTION, arc_value(_DIRECTION, h, m))
    if used & (1 << _DISTANCE):
        code += arc_term(_DISTANCE, arc_value(_DISTANCE, h, m))
    return code


@kernel
def most_rows(slots: ArcSlots, n: int) -> int:
    """Return the most features that one arc of a sentence of n words can have."""
    most = 0
    for t in range(slots.between.shape[0]):
        most += 1 if slots.between[t] < 0 else n
    return most


class ArcScratch(NamedTuple):
    """Buffers for one sentence of up to `longest` words; N = longest + 1."""

    heads: Keys  # (N * head parts,)
    modifiers: Keys  # (modifier parts,) of the current modifier
    keys: Keys  # (N,)
    found: Ids  # (templates * N,) the row of each template at each head, or -1
    between: Ids  # (N,) distinct codes between the head and the modifier
    starts: Places  # (N + 1,) where the rows of each head begin
    rows: Ids  # the rows of all arcs into the current modifier


def arc_scratch(slots: ArcSlots, longest: int) -> ArcScratch:
    """Allocate buffers."""
    size, templates = longest + 1, len(slots.seeds)
    return ArcScratch(
        np.zeros(size * max(1, len(slots.heads.seeds)), np.uint64),
        np.zeros(max(1, len(slots.modifiers.seeds)), np.uint64),
        np.zeros(size, np.uint64),
        np.zeros(templates * size, np.int32),
        np.zeros(size, np.int32),
        np.zeros(size + 1, np.int64),
        np.zeros(size * most_rows(slots, size), np.int32),
    )


@inner
def hash_heads(slots: ArcSlots, codes: Ids, begin: int, end: int, s: ArcScratch) -> None:
    """Hash the parts of all heads of a sentence. The root is the position before the first token."""
    parts = slots.heads.seeds.shape[0]
    for h in range(end - begin + 1):
        for part in range(parts):
            s.heads[h * parts + part] = feature_key(slots.heads, part, codes, begin, end, begin - 1 + h)


@inner
def hash_modifier(slots: ArcSlots, codes: Ids, begin: int, end: int, m: int, s: ArcScratch) -> None:
    """Hash the parts of a modifier."""
    for part in range(slots.modifiers.seeds.shape[0]):
        s.modifiers[part] = feature_key(slots.modifiers, part, codes, begin, end, begin - 1 + m)


@inlined
def joined_key(slots: ArcSlots, template: int, head: np.uint64, modifier: np.uint64, code: int) -> np.uint64:
    """The hash of a template before `finished`, or 0 if it makes no feature.

    `head` and `modifier` are the hashes of its parts, 0 if a value is unknown; `code` is that of the arc.
    """
    key = slots.seeds[template]
    if slots.head_parts[template] >= 0:
        if head == np.uint64(0):
            return np.uint64(0)
        key = mixed(key, head)
    if slots.modifier_parts[template] >= 0:
        if modifier == np.uint64(0):
            return np.uint64(0)
        key = mixed(key, modifier)
    return mixed(key, code) if code else key


@inlined
def arc_key(slots: ArcSlots, template: int, h: int, m: int, s: ArcScratch) -> np.uint64:
    """The hash of a template at an arc before `finished`, or 0 if it makes no feature there."""
    parts, part = slots.heads.seeds.shape[0], slots.head_parts[template]
    head = s.heads[h * parts + part] if part >= 0 else np.uint64(0)
    part = slots.modifier_parts[template]
    modifier = s.modifiers[part] if part >= 0 else np.uint64(0)
    return joined_key(slots, template, head, modifier, arc_code(slots.arc_parts[template], h, m))


@inlined
def codes_between(codes: Ids, column: int, begin: int, h: int, m: int, out: Ids) -> int:
    """Write the distinct known codes of the tokens between head and modifier; return their number."""
    count = 0
    for token in range(begin + min(h, m), begin + max(h, m) - 1):
        code, new = codes[column, token], codes[column, token] != UNKNOWN
        for k in range(count):
            new &= out[k] != code
        if new:
            out[count] = code
            count += 1
    return count


@inner
def find_rows(
    slots: ArcSlots, cells: Keys, numbers: Ids, codes: Ids, begin: int, end: int, m: int, s: ArcScratch
) -> None:
    """Find the features of all arcs into a modifier. Those of head h are `s.rows[s.starts[h]:s.starts[h + 1]]`.

    `cells` and `numbers` are the table. The parts of the heads are hashed already.
    """
    size, mask = end - begin + 1, np.uint64(cells.shape[0] - 1)
    hash_modifier(slots, codes, begin, end, m, s)
    for i in range(slots.order.shape[0]):
        t = slots.order[i]
        if slots.between[t] >= 0:
            continue
        parent = slots.parents[t]
        for h in range(size):
            key = np.uint64(0)
            if h != m and (parent < 0 or s.found[parent * size + h] >= 0):
                key = arc_key(slots, t, h, m, s)
                key = finished(key) if key else key
                v.prefetch(cells, np.int64(key & mask))
            s.keys[h] = key
        for h in range(size):
            s.found[t * size + h] = find(cells, numbers, s.keys[h]) if s.keys[h] else -1
    _emit(slots, cells, numbers, codes, begin, size, m, s)


@inlined
def _emit(
    slots: ArcSlots, cells: Keys, numbers: Ids, codes: Ids, begin: int, size: int, m: int, s: ArcScratch
) -> None:
    """Write the rows of all arcs into a modifier: those of each template, then those of tokens between."""
    count = 0
    for h in range(size):
        s.starts[h] = count
        if h == m:
            continue
        for t in range(slots.seeds.shape[0]):
            if slots.between[t] < 0 and s.found[t * size + h] >= 0:
                s.rows[count] = s.found[t * size + h]
                count += 1
        column, between = -1, 0
        for t in range(slots.seeds.shape[0]):
            parent = slots.parents[t]
            if slots.between[t] < 0 or (parent >= 0 and s.found[parent * size + h] < 0):
                continue
            key = arc_key(slots, t, h, m, s)
            if key:
                if slots.between[t] != column:
                    column = slots.between[t]
                    between = codes_between(codes, column, begin, h, m, s.between)
                for k in range(between):
                    row = find(cells, numbers, finished(mixed(key, s.between[k])))
                    if row >= 0:
                        s.rows[count] = row
                        count += 1
    s.starts[size] = count


def arc_slots_of(features: Features, vocabularies: Sequence[Vocabulary]) -> ArcSlots:
    """Pack the templates over arcs for kernels."""
    templates = features.unigrams
    parts = [_parts(places) for places in features.slots]
    heads, modifiers = (_numbered([each[side] for each in parts]) for side in ("head", "modifier"))
    joins = [frozenset(places) for places in features.slots]
    return ArcSlots(
        seeds=readonly(np.array([fnv1a(t.identity) for t in templates], np.uint64), np.uint64),
        heads=_packed_parts(features, heads, vocabularies),
        modifiers=_packed_parts(features, modifiers, vocabularies),
        head_parts=_ids([heads.get(each["head"], -1) for each in parts]),
        modifier_parts=_ids([modifiers.get(each["modifier"], -1) for each in parts]),
        arc_parts=_ids([sum(1 << place.column for place in set(each["arc"])) for each in parts]),
        between=_ids([each["between"][0].column if each["between"] else -1 for each in parts]),
        parents=parents_among(features, range(len(templates))),
        order=_ids(sorted(range(len(templates)), key=lambda t: (len(joins[t]), t))),
    )


_Part = tuple[ResolvedSlot, ...]


def _parts(places: Sequence[ResolvedSlot]) -> dict[str, _Part]:
    """Split the places of a template by their anchors."""
    found: dict[str, _Part] = {"head": (), "modifier": (), "between": (), "arc": ()}
    for place in places:
        found[place.slot.anchor] += (place,)
    return found


def _numbered(parts: Sequence[_Part]) -> dict[_Part, int]:
    """Number the distinct parts that are not empty."""
    return {part: i for i, part in enumerate(dict.fromkeys(part for part in parts if part))}


def _packed_parts(features: Features, parts: dict[_Part, int], vocabularies: Sequence[Vocabulary]) -> Slots:
    """Pack parts as templates of one token."""
    templates, slots = [], []
    for part in parts:
        own = tuple(ResolvedSlot(replace(place.slot, anchor="token"), place.column) for place in part)
        literals = ("",) * (len(own) + 1)
        templates.append(Template("U", literals, tuple(place.slot for place in part), "short"))
        slots.append(own)
    # The root has features too. It is the position before the first token.
    return packed(features, tuple(templates), tuple(slots), vocabularies, -1)


def parents_among(features: Features, used: Collection[int]) -> Ids:
    """For each template, find the longest other one among `used` that joins only some of its places, or -1."""
    joins = [frozenset(places) for places in features.slots]
    count, sizes = len(joins), np.array([*map(len, joins)], np.int64)
    possible = np.zeros(count, np.bool_)
    possible[[u for u in used if all(place.slot.anchor != "between" for place in joins[u])]] = True
    holders = dict[ResolvedSlot, list[int]]()
    for t, join in enumerate(joins):
        for place in join:
            holders.setdefault(place, []).append(t)
    lists = {place: np.array(own, np.int64) for place, own in holders.items()}
    # The longest first; among them, the first.
    rank, found = sizes * count - np.arange(count), []
    for join in joins:
        shared = np.bincount(
            np.concatenate([np.empty(0, np.int64), *map(lists.__getitem__, join)]), minlength=count
        )
        inside = possible & (shared == sizes) & (sizes < len(join))
        found.append(int(np.argmax(np.where(inside, rank, -count))) if inside.any() else -1)
    return _ids(found)


def _ids(values: Sequence[int]) -> Ids:
    return readonly(np.array(values, np.int32), np.int32)
