"""Tokenizers: the tokens of names, numbers and addresses, against a twin written as one regular expression."""

import re
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagsmith.core.corpus.text.tokenizer import Tokenizer

WORDS = Tokenizer()


def tokens(text: str, tokenizer: Tokenizer = WORDS) -> list[str]:
    return tokenizer.split(text).strings(text)


def sentences(text: str, tokenizer: Tokenizer = WORDS) -> list[str]:
    """The sentences as text, from their first to their last token."""
    found = tokenizer.split(text)
    firsts = [0, *found.ends.tolist()][:-1]
    return [
        text[found.starts[first] : found.stops[end - 1]]
        for first, end in zip(firsts, found.ends.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    "token",
    [
        "O'Brien", "don't", "d\u2019Artagnan", "C.F.", "U.S.", "EE.UU.", "e.g.", "Ph.D.", "@user_1", "#tag", "AT&T",
        "18-year-old", "Jean-Luc", "node.js", "amazon.com", "https://a.org/x?y=1&z=2", "http://192.168.0.1:80/",
        "www.a.org", "ada@example.org", "first.last+tag@mail.example.org", "1,234.56", "2026-11-18",
        "12:30", "1/2", "-5", "3rd",
        "'s", "'90s", "...", "--", "n't", "snake_case", "e\u0301te\u0301", "שלום",
        "Müller", "カタカナ", "\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd",
    ],
)  # fmt: skip
def test_one_token_stays_together(token: str) -> None:
    assert tokens(f"x {token} y") == ["x", token, "y"]
    assert tokens(f"({token})")[:2] in (["(", token], ["(", token.lstrip("-'")], ["(", token[0]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$5, €6 and 7%.", ["$", "5", ",", "€", "6", "and", "7", "%", "."]),
        ("(Ada), said", ["(", "Ada", ")", ",", "said"]),
        ("the U.S. and C.F. Gauss", ["the", "U.S.", "and", "C.F.", "Gauss"]),
        ("Mr. J. Smith", ["Mr.", "J.", "Smith"]),
        ("see No. 5 on p. 3", ["see", "No.", "5", "on", "p.", "3"]),
        ("He said no. Then", ["He", "said", "no", ".", "Then"]),
        ("end.Next", ["end", ".", "Next"]),
        (
            "see https://a.org/x, or (www.b.org).",
            ["see", "https://a.org/x", ",", "or", "(", "www.b.org", ")", "."],
        ),
        ("a@b", ["a", "@b"]),
        ("see http://a.org/x_(y)!", ["see", "http://a.org/x_(y)", "!"]),
        ("日本語 2026年", ["日", "本", "語", "2026", "年"]),
        ("pre- and post-war-", ["pre-", "and", "post-war", "-"]),
        ("rock 'n' roll", ["rock", "'n", "'", "roll"]),
        ("a\x00b\u200bc\ufeffd", ["a", "b", "c", "d"]),
    ],
)
def test_text_is_split_into(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_parts_that_a_corpus_splits_are_split() -> None:
    tokenizer = Tokenizer(clitics=("'s", "n't", "l'"))
    assert tokens("Ada's l'homme didn\u2019t O'Brien's", tokenizer) == [
        "Ada", "'s", "l'", "homme", "did", "n\u2019t", "O'Brien", "'s",
    ]  # fmt: skip
    assert tokens("'s n't", tokenizer) == ["'s", "n't"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rose. He left.", ["It rose.", "He left."]),
        ("Mr. J. Smith of the U.S. Treasury left.", ["Mr. J. Smith of the U.S. Treasury left."]),
        ("in the U.S. The firm", ["in the U.S.", "The firm"]),
        ("It cost 3.5 million. 20 people", ["It cost 3.5 million.", "20 people"]),
        ('"Go!" he said. "Why?" Ada asked.', ['"Go!" he said.', '"Why?"', "Ada asked."]),
        ("(He left.) She stayed", ["(He left.)", "She stayed"]),
        ("Wait ... no. Wait ... No", ["Wait ... no.", "Wait ...", "No"]),
        ("one\ntwo\r\nthree\n\nfour", ["one", "two", "three", "four"]),
        ("他说\uff1a“好\uff01”我们去。再见", ["他说\uff1a“好\uff01”", "我们去。", "再见"]),
        ("¿Qué? ¡Sí! Bien", ["¿Qué?", "¡Sí!", "Bien"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_sentences_of_tokens_between_blanks_end_at_their_stops() -> None:
    blanks = Tokenizer("blanks")
    assert sentences("Mr. Smith left. He paid.", blanks) == ["Mr. Smith left.", "He paid."]


# A twin of `find_words`, with lookaround instead of positions. W is a character of words.
_W = r"[^\W_]"
_WORD = rf"{_W}+(?:[-'_&]{_W}+|(?<=\d)[,:/.](?=\d){_W}+|\.(?=[a-z]){_W}+)*"
_TWIN = re.compile(
    rf"[@#][^\W]+|'(?:[stnmkdSTNMKD]|re|ve|ll|em|RE|VE|LL|EM|\d\ds?)(?!{_W})"
    rf"|(?<!\S)[-+.](?=\d){_WORD}(?:(?<=[A-Za-z])-(?= ))?|{_WORD}(?:(?<=[A-Za-z])-(?= ))?|([-.=*_~!?'`])\1*|\S"
)


@given(
    st.text(alphabet="ab1 Z'-_&,.:/@#$!\n", max_size=20).filter(
        lambda text: not re.search(r"[A-Za-z]\.[A-Z]|://|@.*\.|\.\w*\.|'(r|v|l|e)", text)
    )
)
def test_words_equal_a_regular_expression(text: str) -> None:
    """Without the rules that the twin has not: letters with stops, abbreviations and addresses."""
    expected = [match.group() for match in _TWIN.finditer(text)]
    found = tokens(text)
    # A capital letter and its stop are one token if the line goes on.
    if not re.search(r"[A-Z]\.[ ]", text):
        assert found == expected


@given(st.text(max_size=60), st.sampled_from(["words", "blanks", "characters"]), st.integers(1, 2))
def test_tokens_are_in_order_and_hold_all_but_blanks(text: str, kind: Any, version: int) -> None:
    found = Tokenizer(kind, version).split(text)
    places = np.stack([found.starts, found.stops], axis=1).reshape(-1)
    assert (np.diff(places) >= 0).all()
    assert (found.stops > found.starts).all()
    assert found.ends.tolist() == sorted(set(found.ends.tolist()))
    assert found.ends.tolist()[-1:] == ([found.starts.size] if found.starts.size else [])
    if version == 2:
        outside = np.ones(len(text), np.bool_)
        for start, stop in zip(found.starts, found.stops, strict=True):
            outside[start:stop] = False
        assert tokens("".join(np.array(list(text), object)[outside])) == []


def test_the_first_version_is_that_of_old_models() -> None:
    text = "O'Brien paid 1.5. He\nleft"
    assert tokens(text, Tokenizer("words", 1)) == [
        "O",
        "'",
        "Brien",
        "paid",
        "1",
        ".",
        "5",
        ".",
        "He",
        "left",
    ]
    assert sentences(text, Tokenizer("blanks", 1)) == ["O'Brien paid 1.5. He", "left"]
    assert tokens("a b", Tokenizer("characters", 1)) == ["a", "b"]


@given(
    st.text(alphabet="ab1 -", max_size=20),
    st.sampled_from([r"\w+", r"\w+(-\w+)*|\S", r"a*b|a", r"[a-b]{1,2}?", r"(a|ab)(1|b1)?"]),
)
def test_a_pattern_finds_what_re_finds(text: str, pattern: str) -> None:
    expected = [match.group() for match in re.finditer(pattern, text) if match.group()]
    assert tokens(text, Tokenizer.of({"pattern": pattern})) == expected


@pytest.mark.parametrize("pattern", ["a*b|a", "(a|aa)+b|a", "(a{1,30}){1,2}x|a"])
def test_no_pattern_takes_more_than_linear_time(pattern: str) -> None:
    tokenizer = Tokenizer.of({"pattern": pattern})
    tokenizer.split("a")

    began = time.perf_counter()
    assert tokenizer.split("a" * 300_000).starts.size == 300_000
    # It takes a tenth of a second. With a look ahead to the end of the text for each token it would take minutes.
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sentences", "Give words"),
        ({"pattern": "(a"}, "has no"),
        ({"pattern": "^a"}, "anchors"),
        ({"pattern": "a*"}, None),
        ({"pattern": "(a{1,9}){1,9}"}, "too large"),
        ({"kind": "words", "version": 3}, "newest is 2"),
        ({"kind": "words", "colour": 1}, "Give words"),
        ({"kind": "words", "clitics": ["x"]}, "Clitics can be"),
        ({"kind": "words", "clitics": [[]]}, "Clitics can be"),
        ({"kind": [], "clitics": {}}, "Give words"),
        ({"kind": "words", "sentences": []}, "Sentences can be"),
        ("{", "not valid JSON"),
        ('{"kind":' * 100_000, "not valid JSON"),
        (5, "Give words"),
    ],
)
def test_a_wrong_tokenizer_is_named(given: object, message: str | None) -> None:
    if message is None:
        assert tokens("aab", Tokenizer.of(given)) == ["aa"]
        return
    with pytest.raises(ValueError, match=re.escape(message)):
        Tokenizer.of(given)


def test_a_record_gives_the_same_tokenizer() -> None:
    for tokenizer in (
        WORDS,
        Tokenizer("blanks", 1),
        Tokenizer(clitics=("'s",)),
        Tokenizer.of('{"pattern": "a+"}'),
    ):
        assert Tokenizer.of(tokenizer.record()) == tokenizer
    assert Tokenizer.of("whitespace") == Tokenizer("blanks")


def test_lone_surrogates_are_characters() -> None:
    assert tokens("a \ud800 b") == ["a", "\ud800", "b"]
