"""The syntaxes of templates: what each line means, what is refused and where, and printing in one another."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.features.templates.crfpp import parse_crfpp
from tagsmith.core.features.templates.printing import print_crfpp, print_short, print_wapiti
from tagsmith.core.features.templates.short import parse_short
from tagsmith.core.features.templates.template import MAX_ROW, MAX_TEMPLATES, Slot, Template
from tagsmith.core.features.templates.wapiti import parse_wapiti

PARSERS: dict[str, Any] = {"crf++": parse_crfpp, "wapiti": parse_wapiti, "short": parse_short}
PRINTERS: dict[str, Any] = {"crf++": print_crfpp, "wapiti": print_wapiti, "short": print_short}


def test_a_pattern_parses_to_the_structure_of_a_template() -> None:
    text = 'u:%x[-1,0]/%X[ 0, 1]\nU2:%t[0,0,"^\\u"]%m[+1,0,"a\\"b"]'
    joined, regexes = parse_wapiti(text)
    assert (joined.kind, joined.literals) == ("U", ("u:", "/", ""))
    assert joined.slots == (Slot(-1, 0), Slot(0, 1, fold=True))
    assert regexes.literals == ("u2:", "", "")  # the letter of the kind in lower case, as Wapiti writes it
    assert regexes.slots == (Slot(0, 0, take="test", regex="^\\u"), Slot(1, 0, take="match", regex='a\\"b'))


def test_absolute_offsets_count_from_one_at_the_start_and_from_minus_one_at_the_end() -> None:
    slots = [
        template.slots[0]
        for template in parse_wapiti("u:%x[@1,0]\nv:".replace("v:", "u:%x[@-1,0]") + "\nu:%x[@0,0]")
    ]
    assert [(slot.anchor, slot.row) for slot in slots] == [("start", 0), ("end", -1), ("start", -1)]


@pytest.mark.parametrize(("letter", "kinds"), [("u", "U"), ("B", "B"), ("b", "B"), ("*", "UB")])
def test_the_letter_says_which_labels_a_pattern_is_joined_with(letter: str, kinds: str) -> None:
    assert [template.kind for template in parse_wapiti(f"{letter}:%x[0,0]")] == list(kinds)


def test_a_number_sign_starts_a_comment_anywhere_in_a_pattern() -> None:
    assert parse_wapiti("# all\nu:%x[0,0] # the word\n  \nb") == parse_wapiti("u:%x[0,0]\nb")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("u:%x[0,0]\nx:%x[0,0]", 2, "starts with u, b or *. This line starts with 'x'"),
        (" u:%x[0,0]", 1, "starts with ' '"),
        ("u:%y[0,0]", 1, "not '%y[0,0]'"),
        ("u:%x[0,0", 1, "Write a command as"),
        ("u:%x[0 ,0]", 1, "Write a command as"),
        ("u:%t[0,0]", 1, "%t takes a regular expression"),
        ('u:%x[0,0,"a"]', 1, "%x takes no regular expression"),
        ('u:%m[0,0,"a]', 1, "Write a command as"),
        ('u:%t[0,0,"*a"]', 1, "No character is before '*'"),
        ("u:%x[99,0]", 1, "out of range"),
        ("u:%x[*1,0]", 1, "Offsets read from a column"),
        ("u:" + "%x[0,0]" * 65, 1, "at most 64 values"),
    ],
)
def test_a_pattern_that_does_not_parse_is_named_with_its_reason(text: str, line: int, reason: str) -> None:
    with pytest.raises(Invalid) as raised:
        parse_wapiti(text)
    assert raised.value.code == "invalid_template"
    assert raised.value.faults[0].line == line
    assert reason in raised.value.faults[0].reason


def test_a_join_parses_to_the_structure_of_a_template() -> None:
    joined, one, edge, both_u, both_b, bag = parse_short(
        [
            ["word[-1]", "1"],
            "word[@-1]",
            {"edge": True},
            {"join": ["word[@1]"], "edge": "both"},
            {"join": ["word[+2]"], "name": "bag"},
        ]
    )
    assert joined.slots == (Slot(-1, "word"), Slot(0, 1))
    assert joined.joined(["a", "b"]) == "word[-1]|1[0]=a|b"
    assert one.slots == (Slot(-1, "word", "end"),)
    assert (edge.kind, edge.slots) == ("B", ())
    assert (both_u.kind, both_b.kind, both_u.slots) == ("U", "B", (Slot(0, "word", "start"),))
    assert (bag.joined(["a"]), bag.name) == ("bag=a", "bag")


@pytest.mark.parametrize(
    ("entries", "pointer", "reason"),
    [
        ([["word[0]"], 3], "/1", "a place, a list of places, or an object"),
        ([["word[0]", "word["]], "/0/1", "A place is a column and an offset"),
        ([["word[0]", None]], "/0/1", "A place is a column and an offset"),
        (["word[99]"], "/0", "out of range"),
        (["word[@0]"], "/0", "count from @1"),
        ([[]], "/0", "The join is empty"),
        ([{"join": "word"}], "/0/join", "a list of places"),
        ([{"join": ["word"], "edge": "yes"}], "/0/edge", 'false, true or "both"'),
        ([{"join": ["word"], "edge": 1}], "/0/edge", 'false, true or "both"'),
        ([{"join": ["word"], "name": ""}], "/0/name", "1 to 200 characters"),
        ([{"join": ["word"], "name": "a\nb"}], "/0/name", "control character"),
        ([{"joint/s": ["word"]}], "/0/joint~1s", "only join, edge and name"),
        ([{"edge": False}], "/0/join", "needs a name"),
        ([{"join": ["word"] * 65}], "/0", "at most 64"),
        ([], None, "No template found"),
    ],
)
def test_a_join_that_does_not_parse_is_pointed_at(
    entries: list[Any], pointer: str | None, reason: str
) -> None:
    with pytest.raises(Invalid) as raised:
        parse_short(entries)
    assert raised.value.code == "invalid_template"
    assert raised.value.faults[0].pointer == pointer
    assert reason in raised.value.faults[0].reason


def test_templates_have_a_greatest_number() -> None:
    with pytest.raises(Invalid) as raised:
        parse_crfpp("\n".join(f"U{i}:%x[0,0]" for i in range(MAX_TEMPLATES + 1)))
    assert f"at most {MAX_TEMPLATES}" in raised.value.faults[0].reason


# Printing

NAMES = st.sampled_from([0, 1, 300, "a", "word", "_x", "suffix3", "A-b_"])
TEXT = st.text("Uub0:/_-+ =é\u6f22", max_size=4)


@st.composite
def crfpp_lines(draw: st.DrawFn) -> str:
    parts = [draw(st.sampled_from("UB")), draw(TEXT)]
    for _ in range(draw(st.integers(0, 3))):
        parts += [f"%x[{draw(st.integers(-MAX_ROW, MAX_ROW))},{draw(NAMES)}]", draw(TEXT)]
    return "".join(parts)


REGEX = st.sampled_from(["", "^\\u", "\\d*$", 'a\\"b', ".?.?", "100%", "[x]"])


@st.composite
def wapiti_lines(draw: st.DrawFn) -> str:
    parts = [draw(st.sampled_from("ubUB*")), draw(TEXT)]
    for _ in range(draw(st.integers(0, 3))):
        letter = draw(st.sampled_from("xXtTmM"))
        place = f"{draw(st.sampled_from(['', '@']))}{draw(st.integers(-MAX_ROW, MAX_ROW))},{draw(NAMES)}"
        regex = "" if letter in "xX" else f',"{draw(REGEX)}"'
        parts += [f"%{letter}[{place}{regex}]", draw(TEXT)]
    return "".join(parts)


@st.composite
def joins(draw: st.DrawFn) -> Any:
    offset = st.one_of(
        st.integers(-MAX_ROW, MAX_ROW).map(lambda n: f"[{n}]"),
        st.integers(1, MAX_ROW).map(lambda n: f"[@{n}]"),
        st.integers(-MAX_ROW, -1).map(lambda n: f"[@{n}]"),
        st.just(""),
    )
    places = st.tuples(NAMES.map(str), offset).map("".join)
    join = draw(st.lists(places, min_size=1, max_size=3))
    name = {"name": draw(st.text("Uub0:/_-+ =é%#", min_size=1, max_size=4))}
    edge = draw(st.sampled_from([False, True, "both"]))
    return draw(
        st.sampled_from([join, join[0], {"join": join, "edge": edge}, {"join": join, **name}, {"edge": True}])
    )


def _sources() -> st.SearchStrategy[tuple[str, Any]]:
    crfpp = st.lists(crfpp_lines(), min_size=1, max_size=5).map("\n".join)
    wapiti = st.lists(wapiti_lines(), min_size=1, max_size=5).map("\n".join)
    return st.one_of(
        st.tuples(st.just("crf++"), crfpp),
        st.tuples(st.just("wapiti"), wapiti),
        st.tuples(st.just("short"), st.lists(joins(), min_size=1, max_size=5)),
    )


def _tried(function: Callable[[Any], Any], value: Any) -> tuple[Any, Invalid | None]:
    """What a function gives, or how it refuses."""
    try:
        return function(value), None
    except Invalid as refusal:
        return None, refusal


def _alike(templates: Sequence[Template]) -> list[int]:
    """For each template the first one that makes the same features."""
    first: dict[tuple[str, str], int] = {}
    return [first.setdefault((t.kind, t.identity), i) for i, t in enumerate(templates)]


@given(_sources())
def test_templates_printed_in_their_own_syntax_parse_to_themselves(source: tuple[str, Any]) -> None:
    syntax, text = source
    templates = PARSERS[syntax](text)
    assert PARSERS[syntax](PRINTERS[syntax](templates)) == templates


@given(_sources(), st.sampled_from(["crf++", "wapiti", "short"]))
def test_what_another_syntax_can_say_it_says_with_the_same_places_and_the_same_sharing(
    source: tuple[str, Any], other: str
) -> None:
    templates = PARSERS[source[0]](source[1])
    printed, refusal = _tried(PRINTERS[other], templates)
    if refusal is not None:
        assert (refusal.code, bool(refusal.faults)) == ("template_not_expressible", True)
        return
    again = PARSERS[other](printed)
    assert [(t.kind, t.slots) for t in again] == [(t.kind, t.slots) for t in templates]
    assert _alike(again) == _alike(templates)


@pytest.mark.parametrize(
    ("syntax", "source", "other", "printed"),
    [
        ("crf++", "U05:%x[-1,0]/%x[0,0]\nB", "wapiti", "u05:%x[-1,0]/%x[0,0]\nb"),
        (
            "crf++",
            "U05:%x[-1,0]/%x[0,0]\nB",
            "short",
            [{"join": ["0[-1]", "0[0]"], "name": "U05"}, {"edge": True}],
        ),
        ("wapiti", "*:%x[0,0]\nb", "crf++", "U:%x[0,0]\nB:%x[0,0]\nB"),
        ("wapiti", "*:%x[@1,0]", "short", [{"join": ["0[@1]"], "edge": "both", "name": "*"}]),
        (
            "short",
            [["word[-1]", "word[0]"], {"edge": True}],
            "crf++",
            "Uword[-1]|word[0]=%x[-1,word]|%x[0,word]\nB",
        ),
        ("short", [{"join": ["word[0]"], "edge": "both"}], "wapiti", "*word[0]=%x[0,word]"),
    ],
)
def test_printing_in_another_syntax(syntax: str, source: Any, other: str, printed: Any) -> None:
    assert PRINTERS[other](PARSERS[syntax](source)) == printed


@pytest.mark.parametrize(
    ("syntax", "source", "other", "reason"),
    [
        ("wapiti", "u:%x[@1,0]", "crf++", "counted from the ends"),
        ("wapiti", 'u:%t[0,0,"a"]', "crf++", "no tests, matches or folding"),
        ("wapiti", "u:%X[0,0]", "short", "short form has no tests"),
        ("crf++", "U:%x[-6,0]", "wapiti", "more than 5 outside"),
        ("wapiti", "u:%x[-6,0]", "short", "more than 5 outside"),
        ("crf++", "U#:%x[0,0]", "wapiti", "start a comment"),
        ("short", [{"join": ["word"], "name": "100%"}], "crf++", "start a macro"),
        (
            "short",
            [{"join": ["word"], "name": "x"}, {"join": ["word[1]"], "name": "Ux"}],
            "crf++",
            "the same name",
        ),
    ],
)
def test_what_a_syntax_cannot_say_is_refused_with_the_reason(
    syntax: str, source: Any, other: str, reason: str
) -> None:
    with pytest.raises(Invalid) as raised:
        PRINTERS[other](PARSERS[syntax](source))
    assert raised.value.code == "template_not_expressible"
    assert reason in raised.value.faults[0].reason


# Any input at all

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["word[0]", "join", "edge"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4) | st.just("join"), inner, max_size=3)
    ),
    max_leaves=8,
)
PIECES = st.sampled_from(
    ["%x[", "%t[", "%M[", "@", "-1", ",0", "]", '"', "\\", "U", "b", "*", "#", "\n", "\r", ":", "%"]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=25).map("".join), st.sampled_from(["crf++", "wapiti"]))
def test_any_text_parses_or_is_refused_with_a_line(text: str, syntax: str) -> None:
    templates, refusal = _tried(PARSERS[syntax], text)
    if refusal is not None:
        assert refusal.code == "invalid_template"
        assert all(f.line is not None or "No template found" in f.reason for f in refusal.faults)
    else:
        assert PARSERS[syntax](PRINTERS[syntax](templates)) == templates


@given(st.lists(JSON, max_size=5))
def test_any_list_parses_or_is_refused_with_a_pointer(entries: list[Any]) -> None:
    _, refusal = _tried(parse_short, entries)
    if refusal is not None:
        assert refusal.code == "invalid_template"
        assert all(
            (f.pointer or "").startswith("/") or "No template found" in f.reason for f in refusal.faults
        )
