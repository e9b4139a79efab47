"""Generators of templates: which n-grams they stand for, what is refused and where, and the sets of a paper."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import martins_templates
from tagsmith.core.base.errors import Invalid
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.features.templates.printing import print_crfpp, print_short
from tagsmith.core.features.templates.short import parse_short
from tagsmith.core.features.templates.template import MAX_TEMPLATES


def names(*entries: Any) -> list[str]:
    return [template.name for template in parse_short(list(entries))]


def test_an_entry_stands_for_the_n_grams_inside_a_window() -> None:
    assert names({"grams": 2, "columns": ["1"], "window": 1}) == [
        "1[-1]", "1[0]", "1[1]", "1[-1]|1[0]", "1[0]|1[1]",
    ]  # fmt: skip


def test_lengths_and_windows_have_two_ends_and_defaults() -> None:
    assert names({"grams": [2, 2], "window": [0, 2]}) == ["word[0]|word[1]", "word[1]|word[2]"]
    assert names({"grams": 1}) == [f"word[{row}]" for row in range(-2, 3)]


def test_n_grams_may_only_touch_the_window() -> None:
    assert names({"grams": [2, 2], "columns": ["a"], "window": 0, "fit": "touch"}) == [
        "a[-1]|a[0]", "a[0]|a[1]",
    ]  # fmt: skip


def test_columns_follow_each_other_and_may_be_joined_at_each_place() -> None:
    assert names({"grams": [2, 2], "columns": ["word", ["word", "1"]], "window": [0, 1]}) == [
        "word[0]|word[1]",
        "word[0]|1[0]|word[1]|1[1]",
    ]


def test_mixed_n_grams_have_any_of_the_columns_at_each_place() -> None:
    assert names({"grams": [2, 2], "columns": ["w", "p"], "window": [0, 1], "mix": True}) == [
        "w[0]|w[1]", "w[0]|p[1]", "p[0]|w[1]", "p[0]|p[1]",
    ]  # fmt: skip


def test_every_n_gram_is_joined_with_the_places_given_and_takes_name_and_edge() -> None:
    made = parse_short(
        [{"grams": 1, "columns": ["1"], "window": 1, "join": ["word"], "edge": "both", "name": "near"}]
    )
    assert [(t.kind, t.joined(["a", "b"])) for t in made] == [("U", "near=a|b"), ("B", "near=a|b")] * 3
    assert names({"grams": 1, "columns": ["1"], "window": [1, 1], "join": ["word[@1]"]}) == ["1[1]|word[@1]"]


def test_templates_that_two_entries_stand_for_are_there_once() -> None:
    assert names({"grams": 1, "window": 1}, "word[0]", {"grams": 1, "window": 2}) == [
        "word[-1]", "word[0]", "word[1]", "word[-2]", "word[2]",
    ]  # fmt: skip


@settings(deadline=None)  # a busy machine is no fault of the generators
@given(
    st.integers(1, 4), st.integers(0, 3), st.integers(-4, 2), st.integers(0, 3), st.booleans(), st.booleans()
)
def test_generators_make_what_a_plain_loop_makes_and_come_back_from_print(
    shortest: int, more: int, first: int, wide: int, touch: bool, mix: bool
) -> None:
    last, longest = first + wide, min(shortest + more, 4)
    if not touch and longest > wide + 1:
        return
    columns = ["w", "1"]
    entry = {"grams": [shortest, longest], "columns": columns, "window": [first, last], "mix": mix}
    made = parse_short([entry | {"fit": "touch" if touch else "inside"}])
    expected = set()
    for length in range(shortest, longest + 1):
        for kinds in itertools.product(columns, repeat=length):
            for start in range(-20, 20):
                rows = range(start, start + length)
                inside = [first <= row <= last for row in rows]
                if (any if touch else all)(inside) and (mix or len(set(kinds)) == 1):
                    expected.add("|".join(f"{c}[{row}]" for c, row in zip(kinds, rows, strict=True)))
    assert {template.name for template in made} == expected
    assert len(made) == len(expected)
    assert parse_short(print_short(made)) == made
    assert print_crfpp(made).count("\n") == len(made) - 1


@pytest.mark.parametrize(
    ("entry", "pointer", "reason"),
    [
        ({"grams": 0}, "/0/grams", "1 to 64 places"),
        ({"grams": [3, 2]}, "/0/grams", "shortest length first"),
        ({"grams": [1, 2, 3]}, "/0/grams", "the shortest and the longest"),
        ({"grams": "2"}, "/0/grams", "the shortest and the longest"),
        ({"grams": True}, "/0/grams", "the shortest and the longest"),
        ({"grams": None}, "/0/grams", "the shortest and the longest"),
        ({"grams": 6}, "/0/grams", "A window of 5 tokens has no 6-grams"),
        ({"grams": 1, "window": -1}, "/0/window", "must not be greater than the last"),
        ({"grams": 1, "window": [1, 0]}, "/0/window", "must not be greater than the last"),
        ({"grams": 1, "window": [1.5, 2]}, "/0/window", "the first and the last offset"),
        ({"grams": 1, "window": True}, "/0/window", "the first and the last offset"),
        ({"grams": 1, "window": 65}, "/0/window", "farther than 64"),
        ({"grams": 3, "window": 63, "fit": "touch"}, "/0/window", "farther than 64"),
        ({"grams": 1, "columns": "word"}, "/0/columns", "a list of columns"),
        ({"grams": 1, "columns": []}, "/0/columns", "a list of columns"),
        ({"grams": 1, "columns": ["word", []]}, "/0/columns/1", "1 to 64 columns"),
        ({"grams": 1, "columns": ["word", ["w[0]"]]}, "/0/columns/1/0", "A column is a name"),
        ({"grams": 1, "columns": [3]}, "/0/columns/0", "A column is a name"),
        ({"grams": 1, "fit": "near"}, "/0/fit", '"inside" or "touch"'),
        ({"grams": 1, "mix": 1}, "/0/mix", "true or false"),
        ({"grams": 1, "size": 1}, "/0/size", "only grams, columns, window, fit, mix, join, edge and name"),
        ({"window": 1, "join": ["word"]}, "/0/window", "unless it has grams"),
        ({"grams": 1, "join": ["word["]}, "/0/join/0", "A place is a column and an offset"),
        ({"grams": 64, "window": 40, "columns": [["a", "b"]]}, "/0", "at most 64 values"),
        ({"grams": 64, "window": [0, 63], "columns": ["a", "b"], "mix": True}, "/0", "more than 4096"),
    ],
)
def test_a_generator_that_does_not_parse_is_pointed_at(
    entry: dict[str, Any], pointer: str, reason: str
) -> None:
    with pytest.raises(Invalid) as raised:
        parse_short([entry])
    assert raised.value.code == "invalid_template"
    assert raised.value.faults[0].pointer == pointer
    assert reason in raised.value.faults[0].reason


def test_repetitions_without_end_are_not_read() -> None:
    entry = {"grams": 2, "columns": [f"c{i}" for i in range(200)], "window": 5}
    with pytest.raises(Invalid) as raised:
        parse_short([entry] * MAX_TEMPLATES)
    # 4,200 of one entry are too many already; so many of them would be 17 million.
    assert "more than 4096" in raised.value.faults[0].reason
    with pytest.raises(Invalid) as raised:
        parse_short([entry | {"columns": entry["columns"][:190]}] * MAX_TEMPLATES)
    assert raised.value.faults[0].pointer == "/4"


def test_the_sets_of_martins_have_the_templates_that_the_paper_counts() -> None:
    for spec, count in ((martins_templates.CHUNKING, 96), (martins_templates.NAMES, 452)):
        features = spec.resolve(2)
        assert (len(features.unigrams), features.edges) == (count, True)
        again = FeatureSpec.model_validate(spec.model_dump()).resolve(2)
        assert again.templates == features.templates


def test_a_set_is_spread_over_its_columns_as_the_paper_says() -> None:
    def by_column(spec: FeatureSpec) -> dict[str, int]:
        columns = [str(template.slots[0].column) for template in spec.resolve(2).unigrams]
        return {column: columns.count(column) for column in dict.fromkeys(columns)}

    assert by_column(martins_templates.CHUNKING) == {"1": 65, "word": 24, "shape": 7}
    affixes = [f"{kind}{n}" for kind in ("pre", "suf") for n in (1, 2, 3)]
    assert by_column(martins_templates.NAMES) == {
        **dict.fromkeys(["1", "case", "punctuation", "digit"], 65),
        **dict.fromkeys(["word", "shape", *affixes], 24),
    }
