import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.features.presets import PRESETS
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.features.templates.crfpp import parse_crfpp
from tagsmith.core.features.templates.template import Slot

CRFPP = """\
# Unigram
U00:%x[-2,0]
U05:%x[-1,0]/%x[0,0]

U10:%x[0,1]suffix
# Bigram
B
"""


def test_a_crfpp_file_parses_to_slots_and_literals():
    first, joined, suffixed, edge = parse_crfpp(CRFPP)
    assert (first.kind, first.slots, first.literals) == ("U", (Slot(-2, 0),), ("U00:", ""))
    assert joined.slots == (Slot(-1, 0), Slot(0, 0))
    assert joined.literals == ("U05:", "/", "")
    assert suffixed.literals == ("U10:", "suffix")
    assert edge.kind == "B"
    assert edge.slots == ()


def test_templates_print_back_as_written():
    assert (
        "\n".join(map(str, parse_crfpp(CRFPP))) == "U00:%x[-2,0]\nU05:%x[-1,0]/%x[0,0]\nU10:%x[0,1]suffix\nB"
    )


def test_windows_line_ends_and_trailing_blanks_are_no_part_of_a_template():
    assert parse_crfpp("U00:%x[0,0] \r\nB\r\n") == parse_crfpp("U00:%x[0,0]\nB")


def test_the_same_line_twice_is_one_template():
    assert len(parse_crfpp("U:%x[0,0]\nU:%x[0,0]")) == 1


def test_names_are_what_stands_before_the_colon():
    assert [t.name for t in parse_crfpp("U00:%x[0,0]\nU%x[0,0]\nB")] == ["U00", "U%x[0,0]", "B"]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("U00:%x[0,0]\nX:%x[0,0]", 2, "starts with U or B"),
        ("U00:%x[0]", 1, "%x[row,column]"),
        ("U00:%x[a,0]", 1, "%x[row,column]"),
        ("\n\nU00:%y[0,0]", 3, "%x[row,column]"),
        ("U00:100%", 1, "%x[row,column]"),
        ("U00:%x[999,0]", 1, "out of range"),
        ("U00:\x00%x[0,0]", 1, "NUL"),
    ],
)
def test_a_line_that_does_not_parse_is_named_with_its_reason(text, line, reason):
    with pytest.raises(Invalid) as raised:
        parse_crfpp(text)
    assert raised.value.code == "invalid_template"
    assert raised.value.faults[0].line == line
    assert reason in raised.value.faults[0].reason


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment"])
def test_a_file_without_templates_is_refused(text):
    with pytest.raises(Invalid, match="do not parse"):
        parse_crfpp(text)


def test_every_wrong_line_is_reported_up_to_a_hundred():
    with pytest.raises(Invalid) as raised:
        parse_crfpp("\n".join(["Z"] * 150))
    assert [fault.line for fault in raised.value.faults] == list(range(1, 101))


def test_the_chunking_preset_has_the_nineteen_templates_of_crfpp():
    text, _ = PRESETS["chunking"](2)
    templates = parse_crfpp(text)
    assert len([t for t in templates if t.kind == "U"]) == 19
    assert templates[-1].kind == "B"
    assert sum(len(t.slots) == 3 for t in templates) == 3


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_fit_corpora_of_any_width(preset, columns):
    features = FeatureSpec(preset=preset).resolve(columns)
    assert features.edges
    assert features.columns <= columns


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"templates": "U00:%x[0,2]"}, "no column 2"),
        ({"templates": "U00:%x[0,nose]"}, "no column nose. The corpus has"),
        ({"templates": "U0:%x[0,low]", "derived": {"low": {"kind": "lower", "of": 7}}}, "no column 7"),
    ],
)
def test_a_column_that_is_not_there_is_named(spec, reason):
    with pytest.raises(Invalid) as raised:
        FeatureSpec.model_validate(spec).resolve(2)
    assert raised.value.code == "missing_column"
    assert reason in raised.value.faults[0].reason


def test_columns_behind_the_last_one_used_are_not_needed():
    assert FeatureSpec(templates="U0:%x[0,0]").resolve(5).columns == 1


@pytest.mark.parametrize(
    "derived", [{"kind": "prefix"}, {"kind": "lower", "n": 3}, {"kind": "prefix", "n": 0}]
)
def test_a_length_is_given_exactly_where_it_means_something(derived):
    with pytest.raises(ValueError, match=r"length n|greater than or equal to 1"):
        FeatureSpec.model_validate({"templates": "U0:%x[0,x]", "derived": {"x": derived}})
