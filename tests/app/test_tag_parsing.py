"""Parsing a tagging request in pieces gives what parsing it at once gives, for sound and for broken bodies."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tagsmith.app.tagging import answers, parsing
from tagsmith.core.base.errors import TagsmithError, TooLarge
from tagsmith.core.base.json_cut import cut_array

WORDS = st.text(st.sampled_from('ab"\\[]{},:\n é😀'), max_size=6)
TOKENS = st.one_of(
    WORDS, st.lists(WORDS, max_size=3), st.dictionaries(WORDS, WORDS, max_size=2), st.integers()
)
SENTENCES = st.lists(
    st.one_of(st.lists(WORDS, max_size=4), st.lists(TOKENS, max_size=4), TOKENS), min_size=1, max_size=6
)
OTHERS: dict[str, Any] = {"marginals": True, "output": "spans", "nbest": 2.0, "wrong": [1, [2]], "text": "a"}


def outcome(read: Any, raw: bytes) -> Any:
    """What a parser returns or raises, comparable."""
    try:
        request = read(raw)
    except TagsmithError as error:
        return type(error), error.code, error.message, error.faults
    return request.model_dump(exclude_unset=True)


def in_pieces(raw: bytes) -> Any:
    return parsing.read(raw, 1_000)


def at_once(raw: bytes) -> Any:
    return parsing.parse(raw, parsing.plain(raw))


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Any:
    cut_array(b"{}", "a", 8)  # compiles
    before, parsing.PIECE_BYTES = parsing.PIECE_BYTES, 8
    yield
    parsing.PIECE_BYTES = before


@given(
    SENTENCES,
    st.dictionaries(st.sampled_from(sorted(OTHERS)), st.none(), max_size=2),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_a_sound_body_is_read_as_at_once(
    sentences: list[Any], others: dict[str, None], model_last: bool, indent: int | None
) -> None:
    members = {"model": "m", "sentences": sentences, **{name: OTHERS[name] for name in others}}
    if model_last:
        members["model"] = members.pop("model")
    for ascii_only in (True, False):
        raw = json.dumps(members, indent=indent, ensure_ascii=ascii_only).encode()
        found, expected = outcome(in_pieces, raw), outcome(at_once, raw)
        # With faults inside and outside of the sentences, those outside come first.
        faulty = {"wrong", "text", "nbest"} & others.keys() and isinstance(found, tuple)
        assert found[:2] == expected[:2] if faulty else found == expected


@given(
    SENTENCES,
    st.integers(0, 200),
    st.integers(0, 3),
    st.sampled_from([b"", b",", b"]", b"}", b'"', b"[", b"\\", b"\n,"]),
)
@example([["a"] * 9, ["b"]], 200, 0, b"")
def test_a_broken_body_has_its_fault_at_the_same_place(
    sentences: list[Any], place: int, removed: int, added: bytes
) -> None:
    raw = json.dumps({"model": "m", "sentences": sentences, "output": "tags"}, ensure_ascii=False).encode()
    place %= len(raw)
    broken = raw[:place] + added + raw[place + removed :]
    found, expected = outcome(in_pieces, broken), outcome(at_once, broken)
    if isinstance(expected, dict) or isinstance(found, dict):
        assert found == expected
    else:
        # With two faults, each way may find another one first.
        assert found[0].__name__ in ("Malformed", "Invalid")


@pytest.mark.parametrize(
    ("sentences", "fault"),
    [
        (b'[["a","b","c","d"],\n["c","d" "e","f"]]', "JSON error: expected `,` or `]` in column 10."),
        (b'[["a","b","c","d",\n],["c"]]', "JSON error: trailing comma in column 1."),
        (b'[["a","b","c","d",,"e"],["c"]]', "JSON error: expected value in column 33."),
        (b'[          ,["c"]]', "JSON error: expected value in column 26."),
        (b'[["a","b"],["c","d"],]', "JSON error: trailing comma in column 36."),
        (b'[["a","b"],,["c","d"]]', "JSON error: expected value in column 26."),
        (b'[["a","b"],["c",x]]', "JSON error: expected value in column 31."),
        (b'[["a","b"],\n["c"', "JSON error: EOF while parsing a list in column 4."),
        (b'[["a","b"],3]', parsing._NO_TOKENS),
    ],
)
def test_the_place_of_a_fault_in_a_piece_is_that_in_the_body(sentences: bytes, fault: str) -> None:
    raw = b'{"model": "m",\n "sentences": ' + sentences + b"}" * sentences.endswith(b"]")
    found = outcome(in_pieces, raw)
    assert found[3][0].reason == fault
    if sentences.endswith(b"]"):
        assert found == outcome(at_once, raw)


def test_the_last_of_two_arrays_counts_as_for_the_parser() -> None:
    names = (b'"sentences"', b'"sentence\\u0073"')
    for first, second in itertools.product(names, names):
        raw = b'{"model": "m", ' + first + b': [["a", "b", "c"]], ' + second + b': [["d", "e", "f"]]}'
        assert outcome(in_pieces, raw) == outcome(at_once, raw)


def test_values_of_an_array_that_does_not_count_are_limited_too() -> None:
    first = b'{"model": "m", "sentences": [' + b"[]," * 1_200_001 + b"[]], "
    with pytest.raises(TooLarge, match="other than"):
        in_pieces(first + b'"sentences": [["a"]]}')


def test_a_long_sentence_is_cut_inside() -> None:
    words = [f"w{i}" for i in range(1_000)]
    raw = json.dumps({"model": "m", "sentences": [["a"], words, ["b"], [[w, "X"] for w in words]]}).encode()
    cut = cut_array(raw, "sentences", 64)
    assert max(end - begin for begin, end, _, _ in cut.pieces(len(raw))) < 100
    assert parsing._in_pieces(raw, cut, 4) == json.loads(raw)["sentences"]


@given(st.lists(st.integers(0, 9).map(lambda tokens: ["w"] * tokens), max_size=20), st.integers(1, 12))
def test_parts_of_sentences_are_all_sentences_in_order(sentences: list[list[str]], size: int) -> None:
    before, answers.PART_TOKENS = answers.PART_TOKENS, size
    try:
        parts = list(answers.parts_of(sentences))
    finally:
        answers.PART_TOKENS = before
    assert list(itertools.chain.from_iterable(parts)) == sentences
    assert all(sum(map(len, part[:-1])) <= size for part in parts)


def test_too_many_sentences_are_refused_before_the_rest_is_parsed() -> None:
    raw = b'{"model": "m", "sentences": [' + b'["a"],' * 1_010 + b'["a"], wrong'
    with pytest.raises(TooLarge, match="too large"):
        in_pieces(raw)


def test_values_outside_the_sentences_are_limited() -> None:
    raw = b'{"model": "m", "explain": [' + b"[0,0]," * 600_001 + b'[0,0]], "sentences": [["a"]]}'
    with pytest.raises(TooLarge, match="other than"):
        in_pieces(raw)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"a": [1, 2]}', b"1, 2"),
        (b'{"b": {"a": [3]}, "a": [1]}', b"1"),
        (b'{"b": "a", "a": [1]}', b"1"),
        (b'{"a" : [1]}', b"1"),
        (b'{"a": 1, "b": [2]}', None),
        (b'["a", [1]]', None),
        (b'{"x\\"a": [1]}', None),
    ],
)
def test_an_array_is_found_by_its_name_at_the_top(raw: bytes, found: bytes | None) -> None:
    cut = cut_array(raw, "a", 100)
    assert (None if cut.begin < 0 else raw[cut.begin : cut.end]) == found
