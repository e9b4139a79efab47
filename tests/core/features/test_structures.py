"""What a feature spec predicts: labels or trees, as it says or as the corpus has them."""

from typing import Any

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.features.resolve import only, restored
from tagsmith.core.features.spec import FeatureSpec

TREEBANK = ("form", "lemma", "upos", "feats")
ARCS = [["head.form", "modifier.form"], "distance"]


def refused(given: dict[str, Any], trees: bool | None = None) -> tuple[str | None, str]:
    """The place and the reason of the only fault of a spec, when it is read or resolved."""
    with pytest.raises(Invalid) as caught:
        FeatureSpec.model_validate(given).resolve(TREEBANK, trees=trees)
    (fault,) = caught.value.faults
    return fault.pointer, fault.reason


@pytest.mark.parametrize(
    ("given", "trees", "structure"),
    [
        ({}, True, "tree"),
        ({}, False, "chain"),
        ({}, None, "chain"),
        ({"structure": "chain"}, False, "chain"),
        ({"structure": "independent"}, False, "independent"),
        ({"structure": "tree"}, True, "tree"),
        ({"structure": "tree"}, None, "tree"),
        ({"preset": "parsing"}, None, "tree"),
        ({"preset": "generic"}, None, "chain"),
        ({"templates": ARCS}, True, "tree"),
        ({"templates": ARCS}, None, "tree"),
        ({"templates": ["form"]}, False, "chain"),
        ({"templates": "U:%x[0,form]"}, None, "chain"),
    ],
)
def test_the_structure_follows_the_corpus_unless_the_spec_decides_it(
    given: dict[str, Any], trees: bool | None, structure: str
) -> None:
    assert FeatureSpec.model_validate(given).resolve(TREEBANK, trees=trees).structure == structure


def test_a_column_called_like_one_of_arcs_is_read_as_the_corpus_needs_it() -> None:
    spec = FeatureSpec(templates=["distance"])
    of_labels, of_trees = (spec.resolve(["distance"], trees=trees) for trees in (False, True))
    assert [slot.anchor for ((slot, _),) in of_labels.slots] == ["token"]
    assert [slot.anchor for ((slot, _),) in of_trees.slots] == ["arc"]


@pytest.mark.parametrize("given", [{}, {"structure": "tree"}, {"preset": "parsing"}])
def test_the_preset_of_trees_is_parsing(given: dict[str, Any]) -> None:
    found = FeatureSpec.model_validate(given).resolve(TREEBANK, trees=True)
    assert found == FeatureSpec(preset="parsing").resolve(TREEBANK)


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"structure": "chain"}, "/features/structure"),
        ({"structure": "independent", "preset": "ner"}, "/features/structure"),
        ({"preset": "ner"}, "/features/preset"),
        ({"templates": "U:%x[0,form]"}, "/features/templates"),
        ({"templates": [["form", "upos"]]}, "/features/templates"),
    ],
)
def test_features_of_labels_are_refused_for_trees(given: dict[str, Any], pointer: str) -> None:
    place, reason = refused(given, trees=True)
    assert place == pointer
    assert "for labels, but the corpus has dependency trees. Use the preset 'parsing'" in reason


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"structure": "tree"}, "/features/structure"),
        ({"preset": "parsing"}, "/features/preset"),
        ({"templates": ARCS}, "/features/templates"),
    ],
)
def test_features_of_trees_are_refused_for_labels(given: dict[str, Any], pointer: str) -> None:
    place, reason = refused(given, trees=False)
    assert place == pointer
    assert "for dependency trees, but the corpus has none. Upload it again with `label=tree`" in reason


@pytest.mark.parametrize(
    ("given", "pointer", "expected"),
    [
        ({"structure": "tree", "templates": "U:%x[0,0]"}, "/features/templates", "Trees need a list of templates"),
        ({"structure": "tree", "preset": "ner"}, "/features/preset", "Trees have 'parsing' and 'parsing-wide'"),
        ({"structure": "chain", "preset": "parsing"}, "/features/preset", "'parsing' is for trees"),
        ({"structure": "chain", "templates": ARCS}, "/features/templates/0/0", "head.form is a place of an arc"),
        ({"templates": [*ARCS, ["form"]]}, "/features/templates/2/0", "Write head.form or modifier.form"),
        ({"templates": ["form[-1]", *ARCS]}, "/features/templates/0", "Write head.form[-1] or modifier.form[-1]"),
        ({"templates": [*ARCS, {"edge": True}]}, "/features/templates/2/edge", "no edge"),
        ({"templates": [*ARCS, {"grams": 2}]}, "/features/templates/2/grams", "no grams"),
        ({"templates": [{"join": ["head.form", 3]}]}, "/features/templates/0/join/1", "A place of an arc is"),
    ],
)  # fmt: skip
def test_arcs_and_tokens_cannot_be_mixed(given: dict[str, Any], pointer: str, expected: str) -> None:
    with pytest.raises(Invalid) as caught:
        FeatureSpec.model_validate(given)
    found = {fault.pointer: fault.reason for fault in caught.value.faults}
    assert expected in found[pointer]


@pytest.mark.parametrize(
    ("given", "pointer"),
    [({"relations": False}, "/features/relations"), ({"projective": False}, "/features/projective")],
)
def test_fields_of_trees_are_refused_for_labels(given: dict[str, Any], pointer: str) -> None:
    for features in ({"structure": "chain"}, {"preset": "ner"}, {"templates": ["form"]}):
        with pytest.raises(Invalid, match="do not fit together"):
            FeatureSpec.model_validate({**given, **features})
    place, reason = refused(given, trees=False)
    assert place == pointer
    assert (
        reason
        == f"Only trees have {pointer.rpartition('/')[2]}, and these features are for labels. Remove it."
    )


def test_pairs_of_labels_are_refused_for_trees() -> None:
    assert refused({"transitions": "seen"}, trees=True)[0] == "/features/transitions"
    assert FeatureSpec(transitions="seen").resolve(TREEBANK, trees=False).weights.seen_transitions


def test_trees_need_columns() -> None:
    with pytest.raises(Invalid, match="missing") as caught:
        FeatureSpec().resolve([], trees=True)
    assert "Trees need columns" in caught.value.faults[0].reason


def test_fields_of_trees_are_resolved_and_recorded() -> None:
    spec = FeatureSpec(templates=ARCS, relations=False, projective=True)
    features = spec.resolve(TREEBANK, trees=True)
    assert (features.relations, features.projective) == (False, True)
    assert restored(features.record()) == features
    fewer = only(features, features.templates[:1])
    assert (fewer.relations, fewer.projective) == (False, True)
    default = FeatureSpec(templates=ARCS).resolve(TREEBANK)
    assert (default.relations, default.projective) == (True, None)
    assert restored(default.record()) == default


@pytest.mark.parametrize("changed", [{"relations": 1}, {"projective": "no"}])
def test_recorded_fields_of_trees_are_checked(changed: dict[str, Any]) -> None:
    record = FeatureSpec(templates=ARCS).resolve(TREEBANK).record()
    with pytest.raises(ValueError, match="which trees are possible"):
        restored({**record, **changed})


def test_the_record_of_features_of_labels_says_nothing_of_trees() -> None:
    record = FeatureSpec().resolve(TREEBANK, trees=False).record()
    assert set(record) == {"names", "templates", "derived", "cutoff", "structure"}
    assert record["structure"] == "chain"
