"""Features of arcs against a dictionary of their names."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.features import arc_index
from tagsmith.core.features.arc_index import build_arcs
from tagsmith.core.features.arcs import ARC_VALUES, DISTANCES, arc_slots_of
from tagsmith.core.features.columns.coder import Coder
from tagsmith.core.features.index import slots_of
from tagsmith.core.features.resolve import restored
from tagsmith.core.features.spec import FeatureSpec

TEMPLATES: list[Any] = [
    ["head.0", "modifier.0"],
    ["head.1"],
    ["modifier.1"],
    ["head.1", "modifier.1"],
    ["head.1", "modifier.1", "direction", "distance"],
    ["head.1[-1]", "head.1", "modifier.1", "modifier.1[1]"],
    ["head.1[1]", "modifier.1[-1]", "direction"],
    ["head.1", "between.1", "modifier.1"],
    ["between.0", "distance"],
    ["distance"],
]


def sentences(seed: int, count: int) -> list[list[tuple[str, str]]]:
    rng = np.random.default_rng(seed)
    return [
        [(f"w{rng.integers(6)}", f"p{rng.integers(3)}") for _ in range(rng.integers(1, 9))]
        for _ in range(count)
    ]


def trees(rows: list[list[tuple[str, str]]], seed: int) -> list[list[int]]:
    """Heads without cycles: each word after the first of a random order depends on an earlier one, or on the root."""
    rng = np.random.default_rng(seed)
    out = []
    for row in rows:
        heads, order = [0] * len(row), rng.permutation(len(row)) + 1
        for i, word in enumerate(order):
            heads[word - 1] = int(rng.choice([0, *order[:i]]))
        out.append(heads)
    return out


def value(row: list[tuple[str, str]], position: int, column: int) -> str:
    """The value at a position counted from 1; 0 is the root, which is the first position outside."""
    if position < 1:
        return f"<{position - 1}"
    return f">{position - len(row)}" if position > len(row) else row[position - 1][column]


def names(row: list[tuple[str, str]], head: int, modifier: int) -> list[str]:
    """The names of the features of an arc."""
    found = []
    for template in TEMPLATES:
        joined: list[list[str]] = [[]]
        for place in template:
            if place == "direction":
                options = ["left" if head < modifier else "right"]
            elif place == "distance":
                options = [str(max(d for d in DISTANCES if d <= abs(head - modifier)))]
            else:
                side, _, rest = place.partition(".")
                column, _, offset = rest.rstrip("]").partition("[")
                if side == "between":
                    low, high = sorted((head, modifier))
                    options = list(dict.fromkeys(value(row, k, int(column)) for k in range(low + 1, high)))
                else:
                    base = head if side == "head" else modifier
                    options = [value(row, base + int(offset or 0), int(column))]
            joined = [[*each, option] for each in joined for option in options]
        found += [f"{template}={each}" for each in joined]
    return found


@pytest.mark.parametrize(("cutoff", "block"), [(1, 1), (3, 1 << 22)])
def test_the_features_of_arcs_are_those_of_their_names(
    cutoff: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arc_index, "_BLOCK", block)
    train = sentences(1, 60)
    heads = trees(train, 2)
    text = "".join("".join(f"{w} {p} X\n" for w, p in row) + "\n" for row in train)
    corpus = read_conll([text.encode()], max_line_bytes=100)
    features = FeatureSpec(templates=TEMPLATES, structure="tree").resolve(2)
    coder, codes = Coder.trained(features, corpus)
    slots = arc_slots_of(features, coder.vocabularies)
    index = build_arcs(slots, codes, corpus.offsets, np.concatenate(heads).astype(np.int32), cutoff)
    counts = Counter(
        name
        for row, tree in zip(train, heads, strict=True)
        for m, h in enumerate(tree, 1)
        for name in names(row, h, m)
    )
    kept = {name: count for name, count in counts.items() if count >= cutoff}
    assert index.size == len(kept)
    assert sorted(index.counts.tolist()) == sorted(kept.values())
    found = index.look_up(codes, corpus.offsets)
    arc, numbers = 0, dict[int, str]()
    for row in train:
        for m in range(1, len(row) + 1):
            for h in (k for k in range(len(row) + 1) if k != m):
                rows = found.rows[found.starts[arc] : found.starts[arc + 1]].tolist()
                expected = [name for name in names(row, h, m) if name in kept]
                assert len(rows) == len(set(rows)) == len(expected)
                if len(rows) == 1:
                    assert numbers.setdefault(rows[0], expected[0]) == expected[0]
                assert sorted(index.counts[rows].tolist()) == sorted(kept[name] for name in expected)
                arc += 1
    assert arc == len(found.starts) - 1


def test_a_template_is_looked_up_only_where_its_parent_is() -> None:
    features = FeatureSpec(templates=TEMPLATES, structure="tree").resolve(2)
    slots = arc_slots_of(
        features, Coder.of(features, read_conll([b"a b X\n\n"], max_line_bytes=100)).vocabularies
    )
    assert slots.parents.tolist() == [-1, -1, -1, 1, 3, 3, -1, 3, 9, -1]
    place = {t: i for i, t in enumerate(slots.order.tolist())}
    assert all(p < 0 or place[p] < place[t] for t, p in enumerate(slots.parents.tolist()))


@pytest.mark.parametrize(
    "template", ["word", "head", "between.0[1]", "head.0[@1]", "left.0", {"edge": True}, {"grams": 2}, 3]
)
def test_places_that_are_not_of_an_arc_are_refused(template: Any) -> None:
    with pytest.raises(Invalid) as caught:
        FeatureSpec(templates=[template], structure="tree")
    assert caught.value.faults[0].pointer.startswith("/features/templates/0")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (["between.0", "between.1"], "at most one place between"),
        ("between.0[1]", "Only places of the head and of the modifier have an offset"),
        ("head.0[-64]", "at most 63"),
    ],
)
def test_templates_that_kernels_cannot_read_are_refused(template: Any, reason: str) -> None:
    with pytest.raises(Invalid, match="templates") as caught:
        FeatureSpec(templates=[template], structure="tree")
    assert reason in caught.value.faults[0].reason


@pytest.mark.parametrize(
    ("structure", "anchor", "reason"),
    [
        ("chain", "head", "Only the features of trees"),
        ("tree", "token", "need templates over arcs"),
        ("tree", "arc", "An arc has no column"),
        ("graph", "head", "structure of the features is unknown"),
    ],
)
def test_recorded_features_are_checked(structure: str, anchor: str, reason: str) -> None:
    features = FeatureSpec(templates=[["head.0", "modifier.0[1]"], ["distance"]], structure="tree").resolve(1)
    record = features.record()
    assert restored(record) == features
    kind, literals, slots, syntax = record["templates"][0]
    other = [kind, literals[:-1], [[slots[0][0], slots[0][1], anchor, *slots[0][3:]]], syntax]
    with pytest.raises(ValueError, match=reason):
        restored({**record, "structure": structure, "templates": [other]})


def test_places_that_are_given_twice_do_not_change_what_is_found() -> None:
    """Shared look-ups go from few distinct places to many, whatever the number of places is."""
    templates: list[Any] = [
        ["head.1", "modifier.1", "direction"],
        ["head.1", "head.1", "modifier.1"],
        ["direction", "direction"],
    ]
    features = FeatureSpec(templates=templates, structure="tree").resolve(2)
    coder = Coder.of(features, read_conll([b"a b X\n\n"], max_line_bytes=100))
    slots = arc_slots_of(features, coder.vocabularies)
    assert slots.parents.tolist() == [1, -1, -1]
    assert slots.order.tolist() == [2, 1, 0]
    assert slots.arc_parts.tolist() == [1, 0, 1]


def test_features_of_arcs_are_not_used_for_labels() -> None:
    features = FeatureSpec(templates=["head.0"], structure="tree").resolve(1)
    with pytest.raises(Invalid, match="apply to trees") as caught:
        slots_of(features, [])
    assert caught.value.code == "invalid_spec"


def test_bins_of_distances_have_names() -> None:
    assert ARC_VALUES[1] == ("1", "2", "3", "4", "5-6", "7-10", "11-20", "21+")


def test_templates_of_one_name_make_features_of_their_own_at_each_place() -> None:
    """Head and modifier are not a bag of words, and offsets count."""
    places = [["head.0"], ["modifier.0"], ["head.0[1]"], ["head.0", "modifier.0"], ["modifier.0", "head.0"]]
    templates: list[Any] = [{"join": join, "name": "x"} for join in places]
    features = FeatureSpec(templates=templates, structure="tree").resolve(1)
    groups = {template.feature_group for template in features.unigrams}
    slots = arc_slots_of(
        features, Coder.of(features, read_conll([b"a X\n\n"], max_line_bytes=100)).vocabularies
    )
    assert len(set(slots.seeds.tolist())) == len(groups) == 5
