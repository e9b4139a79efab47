"""The matcher against Python's, against Wapiti's rules as they are written down, and its work counted."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import TooLarge
from tagsmith.core.base.regex import MAX_STEPS, MAX_TEXT, MAX_WORK, Dialect, Regex, limited, parser_of
from tagsmith.core.base.regex.matching import Program, SearchScratch, classes_of, first_matches, passes_of

SETS = ["[ab]", "[^a]", r"[\db]", r"[^\w.]", r"[\W\-]", r"[\].a]", "[a-cb-d]", "[a-]", r"[\t-a]"]
ATOMS = st.sampled_from(["a", "b", ".", *SETS, "(a|b)", "(?:ab|c)", r"\w", "(a|)", r"\d", r"\."])
REPEATS = st.sampled_from(["", "*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{2,}", "{0,2}?"])


@st.composite
def patterns(draw: st.DrawFn) -> str:
    inner = "".join(draw(st.lists(st.tuples(ATOMS, REPEATS).map("".join), min_size=1, max_size=4)))
    choice = draw(st.sampled_from(["", "|b+", "|"]))
    return draw(st.sampled_from(["", "^"])) + inner + choice + draw(st.sampled_from(["", "$"]))


@settings(deadline=None)  # the first example compiles the matcher
@given(patterns(), st.text("abc1.-", max_size=8))
def test_extended_expressions_match_what_python_matches(pattern: str, text: str) -> None:
    expected = re.search(pattern, text)
    assert Regex(pattern).find(text) == (expected[0] if expected else None)


@pytest.mark.parametrize(
    ("pattern", "text", "match"),
    [
        ("", "abc", ""),
        ("b", "abc", "b"),
        ("^b", "abc", None),
        ("^a", "abc", "a"),
        ("c$", "abc", "c"),
        ("b$", "abc", None),
        ("^$", "", ""),
        # A star takes as few as will do: nothing, unless what follows needs more.
        (r"\d*", "12", ""),
        (r"^\d*$", "12", "12"),
        (r"a.*c", "abcbc", "abc"),
        # A question mark takes one if it can.
        ("^.?.?", "abc", "ab"),
        ("^.?.?.?.?", "abc", "abc"),
        (".?.?$", "abc", "bc"),
        (r"\u", "aBc", "B"),
        (r"\U", "Bc", "c"),
        (r"^\u\l*$", "Rome", "Rome"),
        (r"^\u\l*$", "ROme", None),
        (r"\a\A", "a1", "a1"),
        (r"\p", "a-b", "-"),
        (r"\P", "-b", "b"),
        (r"\w\W", "a_", "a_"),
        (r"\d\D", "1a", "1a"),
        (r"\s", "a b", " "),
        (r"\S", " b", "b"),
        (r"\.", "a.b", "."),
        (r"\*\?", "a*?", "*?"),
        (r"\\", "a\\", "\\"),
        (r"\q", "q", "q"),
        # Anchors are anchors at their ends of the expression only.
        ("a^", "a^", "a^"),
        ("$a", "$a", "$a"),
        (r"a\$", "a$", "a$"),
        ("$*b", "$$b", "$$b"),
        ("(a|b)", "a", None),
        ("(a|b)", "x(a|b)", "(a|b)"),
        ("[ab]+", "a", None),
        # By characters, not by bytes.
        ("^.?.?", "čeština", "če"),
        (r"^\u", "Émile", "É"),
        (r"\l", "É", None),
        # Both ways a question mark can go from one place, the second of which matches.
        ("a?ab", "ab", "ab"),
    ],
)
def test_wapitis_dialect(pattern: str, text: str, match: str | None) -> None:
    assert Regex(pattern, "wapiti").find(text) == match


#: Wapiti's characters and repeats as Python writes them, for text of ASCII.
WAPITI_ATOMS = {
    "a": "a",
    "B": "B",
    ".": ".",
    r"\d": "[0-9]",
    r"\u": "[A-Z]",
    r"\L": "[^a-z]",
    r"\w": "[a-zA-Z0-9]",
}
WAPITI_REPEATS = {"": "", "*": "*?", "?": "?"}


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(WAPITI_ATOMS)), st.sampled_from(sorted(WAPITI_REPEATS))), max_size=5
    ),
    st.sampled_from(["", "^"]),
    st.sampled_from(["", "$"]),
    st.text("aB1-", max_size=8),
)
def test_wapitis_dialect_matches_what_its_rules_mean_to_python(
    items, start: str, end: str, text: str
) -> None:  # type: ignore[no-untyped-def]
    pattern = start + "".join(atom + repeat for atom, repeat in items) + end
    meaning = start + "".join(WAPITI_ATOMS[a] + WAPITI_REPEATS[r] for a, r in items) + end.replace("$", r"\Z")
    expected = re.search(meaning, text)
    assert Regex(pattern, "wapiti").find(text) == (expected[0] if expected else None)


@pytest.mark.parametrize(
    ("dialect", "pattern", "reason"),
    [
        ("wapiti", "*a", "No character is before '*'. Write \\* for a literal *. See character 1 of"),
        ("wapiti", "a**", "See character 3 of"),
        ("wapiti", "^?", "No character is before '?'"),
        ("wapiti", "a\\", "must follow the backslash. See character 3 of"),
        ("extended", "(a", "A ( has no ). Write \\( for a literal (. See character 3 of"),
        ("extended", "a)", "A ) has no (. Write \\) for a literal ). See character 2 of"),
        ("extended", "[a", "A [ has no ]"),
        ("extended", "[b-a]", "from a smaller to a greater character"),
        ("extended", r"[a-\d]", "from a smaller to a greater character"),
        ("extended", "[a\\", "A [ has no ]"),
        ("extended", "+a", "nothing before '+' to repeat. See character 1 of"),
        ("extended", "a**", "A repeat cannot be repeated"),
        ("extended", "a{,2}", "Write a repeat as"),
        ("extended", "a{3,2}", "Give the smaller number first"),
        ("extended", "a{999}", "counts up to 200"),
        ("extended", r"(a)\1", "no back references"),
        ("extended", "(?=a)", "Write a group as (...) or (?:...)"),
        ("extended", r"\b", "no lookaround"),
        ("extended", "((a{99}){99}){99}", f"more than {MAX_STEPS} steps"),
        ("extended", "(" * 100 + ")" * 100, "Groups are nested too deeply. Nest at most 50."),
        ("extended", "(a{200}){0}" * 45, "too many repeats and alternatives. Split the pattern"),
        (
            "extended",
            "a" * 501,
            "more than 500 characters. Split it into several columns. See character 501 of",
        ),
        ("wapiti", "a" * 501, "more than 500 characters"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(dialect: str, pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        Regex(pattern, dialect)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        ("(((){200}){200}){200}", 1),
        ("((((){0,200}){0,200})*)+", 1),
        ("(" * 50 + "){200}" * 49 + ")", 1),
        ("(((a{5}){5}){5})", 126),
        ("((((a?)?)?)?)?", 7),
    ],
)
def test_compiling_takes_work_linear_in_the_pattern_and_the_program(pattern: str, steps: int) -> None:
    read = 0

    class Counted(str):
        """A pattern that counts how often it is looked at."""

        def __getitem__(self, place: object) -> str:  # type: ignore[override]
            nonlocal read
            read += 1
            assert read <= 12 * len(pattern), "the pattern is read again"
            return str.__getitem__(self, place)  # type: ignore[index]

    parser = parser_of(Counted(pattern), "extended")
    assert len(parser.program()) == steps
    assert parser.work <= len(pattern) + 2 * steps


@pytest.mark.parametrize(
    "pattern", ["((((a{200}){200}){200}){200})", "(a{200}|){200}" * 30, "(a{200}){0}" * 45]
)
def test_an_expression_that_is_refused_took_bounded_work(pattern: str) -> None:
    parser = parser_of(pattern, "extended")
    with pytest.raises(ValueError, match=r"more than|too many"):
        parser.program()
    assert parser.work <= MAX_WORK + MAX_STEPS


def test_a_large_set_compares_a_character_with_few_of_its_members() -> None:
    compared = 0

    class Character(str):
        def __lt__(self, other: str) -> bool:
            nonlocal compared
            compared += 1
            return str.__lt__(self, other)

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __le__ = __gt__ = __ge__ = __lt__
        __hash__ = str.__hash__

    members = "".join(chr(i) for i in range(0x4E00, 0x4E00 + 960, 2))
    [(_, test, _), _] = parser_of(f"[{members}]", "extended").program()
    assert test is not None
    assert test(Character("z")) is False
    assert compared <= 12


@given(st.text(max_size=30), st.text(max_size=20), st.sampled_from(["extended", "wapiti"]))
def test_no_text_crashes_either_parser(pattern: str, text: str, dialect: str) -> None:
    regex, reason = _compiled(pattern, dialect)
    if regex is None:
        assert re.search(r"See character \d+ of the regular expression\.$", reason)
    else:
        found = regex.find(text)
        assert found is None or found in text


def _compiled(pattern: str, dialect: str) -> tuple[Regex | None, str]:
    try:
        return Regex(pattern, dialect), ""  # type: ignore[arg-type]
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize(
    ("pattern", "dialect"),
    [
        ("(a*)*b", "extended"),
        ("(a|a)*b", "extended"),
        ("(a?){30}a{30}b", "extended"),
        (".*.*.*.*.*x", "wapiti"),
    ],
)
def test_no_expression_takes_more_steps_than_its_length_times_that_of_the_text(
    pattern: str, dialect: Dialect
) -> None:
    regex = Regex(pattern, dialect)
    program, tests = Program.of(parser_of(pattern, dialect).program())
    distinct, classes = classes_of(np.full(MAX_TEXT, ord("a"), np.uint32))
    passes = passes_of(distinct, tests)
    most = program.operations.size * (MAX_TEXT + 1)
    scratch = SearchScratch.of(program, MAX_TEXT, np.array([most]))
    scratch.stack[:] = -1
    place = np.empty(1, np.int64)
    first_matches(program, classes, np.array([MAX_TEXT]), passes, scratch, place, place)
    # Each pair of a step and a position is taken from the stack at most once, so it never holds more.
    assert scratch.stack[-1] == -1
    assert 0 <= scratch.left[0] < most
    assert place[0] == -1
    assert regex.find("a" * 100_000) is None


def test_searches_have_a_limit_together() -> None:
    slow, text = Regex("(a?){100}b"), "a" * 500
    with limited(250_000):
        slow.find(text)
        with limited(), pytest.raises(TooLarge, match="Send less text"):
            slow.find_all([text, text])
    # Each test of a distinct character counts, too: it is a call of Python.
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 1_000)))
    with limited(1_000_000), pytest.raises(TooLarge):
        Regex(letters[:400]).find(letters)
    assert slow.find_all([text, text, text]) == [None] * 3


def test_many_texts_are_matched_at_once() -> None:
    texts = ["", "ab1", "\U0001f600x22", "b", "\ud800 7"]
    assert Regex(r"[0-9]+$").find_all(texts) == [None, "1", "22", None, "7"]
    assert Regex("x").find_all([]) == []


def test_only_the_beginning_of_a_huge_value_is_looked_at() -> None:
    assert Regex("b").find("a" * MAX_TEXT + "b") is None
