"""The presets for dependency trees: which templates they make of the columns of a corpus."""

from collections import Counter
from collections.abc import Sequence

import pytest

from tagsmith.core.features.arc_presets import ARC_PRESETS
from tagsmith.core.features.resolve import restored
from tagsmith.core.features.resolved import Features
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.features.templates.printing import print_short
from tagsmith.core.features.templates.short import parse_short

UD = ("form", "lemma", "upos", "xpos", "feats")
UD_WITHOUT_XPOS = ("form", "lemma", "upos", "feats")
CONLLX = ("form", "lemma", "cpostag", "postag", "feats")
COLUMNS = [UD, UD_WITHOUT_XPOS, CONLLX, ("upos", "form"), ("form",), ("lemma",), ("upos",), ("0", "1")]

#: The templates of `parsing-wide` of each kind.
KINDS = {
    "attachment": 4,
    "lex": 48,
    "context-lex": 64,
    "pos": 24,
    "bilexical": 64,
    "lex-pos": 64,
    "pos-lex": 64,
    "pos-pos": 36,
    "context-pos": 168,
    "middle-pos": 64,
    "shape": 84,
}


def resolved(preset: str, columns: Sequence[str]) -> Features:
    return FeatureSpec.model_validate({"preset": preset}).resolve(columns, trees=True)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("preset", ARC_PRESETS)
def test_presets_of_trees_fit_any_columns(preset: str, columns: Sequence[str]) -> None:
    features = resolved(preset, columns)
    assert features.structure == "tree"
    assert features.unigrams == features.templates
    assert restored(features.record()) == features
    joins = [frozenset(places) for places in features.slots]
    assert len(set(joins)) == len(joins) > 0


@pytest.mark.parametrize("columns", [UD, UD_WITHOUT_XPOS, CONLLX])
def test_parsing_wide_has_684_templates_of_eleven_kinds(columns: Sequence[str]) -> None:
    names = [template.name for template in resolved("parsing-wide", columns).templates]
    assert len(set(names)) == 684
    assert Counter(name.partition(":")[0] for name in names) == KINDS


def test_parsing_wide_joins_each_pattern_with_direction_and_distance() -> None:
    names = [template.name for template in resolved("parsing-wide", UD).templates]
    assert names[:4] == [
        "attachment:all",
        "attachment:direction",
        "attachment:distance",
        "attachment:direction|distance",
    ]
    assert names[4:8] == [
        "lex:head.form",
        "lex:head.form|direction",
        "lex:head.form|distance",
        "lex:head.form|direction|distance",
    ]
    assert "context-pos:head.upos[-1]|head.upos|modifier.upos|modifier.upos[1]|distance" in names
    assert "middle-pos:head.lemma|between.xpos|modifier.xpos" in names
    assert sum(name.endswith("direction") for name in names) == 171


@pytest.mark.parametrize(
    ("columns", "count"),
    [
        (("form", "upos", "feats"), 504),
        (("form", "lemma", "upos"), 388),
        (("form", "upos"), 268),
        (("form", "lemma"), 96),
        (("form",), 52),
        (("upos",), 116),
    ],
)
def test_parsing_wide_is_smaller_without_a_lemma_or_parts_of_speech(
    columns: Sequence[str], count: int
) -> None:
    assert len(resolved("parsing-wide", columns).templates) == count


def test_templates_of_presets_can_be_edited_as_a_list() -> None:
    for preset in ARC_PRESETS:
        templates = resolved(preset, CONLLX).templates
        assert parse_short(print_short(templates), arcs=True) == templates
