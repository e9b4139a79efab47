"""Reading lexicons, and the statistics of raw text."""

import itertools
import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.features.lexicon.lexicon import (
    KINDS,
    Kind,
    Lexicon,
    LexiconReader,
    known_kind,
    read_lexicon,
)
from tagsmith.core.features.lexicon.ngrams import LEAST, Measure, ngrams_of


def read(kind: Kind, text: str | bytes) -> tuple[list[str], list[str]]:
    raw = text if isinstance(text, bytes) else text.encode()
    reader = LexiconReader(kind, max_line_bytes=200)
    for i in range(0, len(raw), 3):
        reader.feed(raw[i : i + 3])
    found = reader.finish()
    return list(found.entries), list(found.classes)


@pytest.mark.parametrize(
    ("kind", "text", "entries", "classes"),
    [
        ("words", "\ufeffNew  York \r\n\n# a remark\n#tag\nZürich\n", ["New York", "#tag", "Zürich"], []),
        ("typed", "LOC\tNew York\nPER\tYork\n", ["New York", "York"], ["LOC", "PER"]),
        (
            "categories",
            "Af10B05# 省长 市长\nAe01 教授\n",
            ["省长", "市长", "教授"],
            ["Af10B05#"] * 2 + ["Ae01"],
        ),
        ("clusters", "0010\tthe\t12\n11\t\N{GRINNING FACE}\n", ["the", "\N{GRINNING FACE}"], ["0010", "11"]),
        ("text", "# 一\n 上海 \n", ["# 一", "上海"], []),
    ],
)
def test_each_kind_is_read_as_it_is_written(
    kind: Kind, text: str, entries: list[str], classes: list[str]
) -> None:
    assert read(kind, text) == (entries, classes)


@pytest.mark.parametrize(
    ("kind", "text", "line", "reason"),
    [
        ("typed", "LOC\tRome\nRome\n", 2, "has no tab"),
        ("typed", "LOC\t \n", 1, "The entry is empty"),
        ("typed", "a b\tRome\n", 1, "no blank"),
        ("typed", "x" * 65 + "\tRome\n", 1, "1 to 64 characters"),
        ("categories", "ok a\nAf10\n", 2, "one field"),
        ("clusters", "0120\tthe\n", 1, "Start it with 1 to 64 bits"),
        ("clusters", "01\tthe\t1\t2\n", 1, "has 4 fields"),
        ("clusters", "01\t\n", 1, "The word is empty"),
        ("words", "ok\n" + "a " * 65 + "\n", 2, "65 tokens. Use at most 64"),
        ("words", "ok\na\x00b\n", 2, "control character 0x00"),
        ("words", b"ok\n\xff\n", 2, "Byte 1 is not UTF-8"),
        ("text", "ok\n" + "a" * 201 + "\n", 2, "longer than 200 bytes"),
    ],
)
def test_a_fault_is_told_with_its_line(kind: Kind, text: str | bytes, line: int, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(kind, text)
    assert caught.value.code == "invalid_lexicon"
    assert [fault.line for fault in caught.value.faults] == [line]
    assert reason in caught.value.faults[0].reason


@pytest.mark.parametrize("kind", KINDS)
def test_a_lexicon_without_entries_is_refused(kind: Kind) -> None:
    for text in ("", "\n \n"):
        with pytest.raises(Invalid) as caught:
            read(kind, text)
        assert caught.value.code == "empty_lexicon"


def test_at_most_a_hundred_faults_are_told_and_kinds_are_known_by_name() -> None:
    with pytest.raises(Invalid) as caught:
        read("typed", "x\n" * 500)
    assert len(caught.value.faults) == 100
    assert known_kind("typed") == "typed"
    with pytest.raises(Invalid, match="words, typed, categories, clusters, text"):
        known_kind("brown")


def literal(lines: list[str], n: int, measure: Measure) -> dict[str, int]:
    """The bins by the definitions, one string at a time."""
    total = sum(map(len, lines))
    places = [(line, i) for line in lines for i in range(len(line) - n + 1)]
    out = {}
    for gram in {line[i : i + n] for line, i in places}:
        at = [(line, i) for line, i in places if line[i : i + n] == gram]
        if len(at) < LEAST:
            continue
        if measure == "information":
            bits = math.log2(len(at) / len(places))
            bits -= sum(math.log2(sum(line.count(c) for line in lines) / total) for c in gram)
            out[gram] = min(max(round(bits), 0), 24)
        else:
            beside = [
                line[i - 1 : i] if measure == "left-variety" else line[i + n : i + n + 1] for line, i in at
            ]
            variety = len({c for c in beside if c}) + beside.count("")
            out[gram] = int(math.log2(variety))
    return out


@pytest.mark.parametrize("measure", ["left-variety", "right-variety", "information"])
def test_statistics_of_text_are_those_of_their_definitions(measure: Measure) -> None:
    rng = random.Random(7)
    lines = ["".join(rng.choices("上海市人a", [5, 3, 2, 1, 1], k=rng.randint(1, 30))) for _ in range(40)]
    for n in range(2 if measure == "information" else 1, 5):
        found = ngrams_of(lines, n, measure)
        grams = ["".join(found.characters[i] for i in row) for row in found.ids.tolist()]
        assert dict(zip(grams, found.bins.tolist(), strict=True)) == literal(lines, n, measure)


def test_reading_in_chunks_is_reading_at_once() -> None:
    text = "LOC\tZürich West\nPER\t王\n".encode()
    whole = read_lexicon("typed", [text], max_line_bytes=100)
    for cut in itertools.islice(range(len(text)), 0, None, 5):
        assert read_lexicon("typed", [text[:cut], text[cut:]], max_line_bytes=100) == whole


PIECES = st.sampled_from(
    [b"LOC", b"\t", b" ", b"\n", b"\r\n", b"# ", b"0110", b"12", b"\xef\xbb\xbf", b"\x00", b"\xe5\xad\x97"]
)


@given(
    st.lists(PIECES | st.binary(max_size=2), max_size=30).map(b"".join),
    st.sampled_from(KINDS),
    st.integers(1, 9),
)
def test_any_bytes_are_a_lexicon_or_refused_with_lines_however_they_are_cut(
    data: bytes, kind: Kind, size: int
) -> None:
    def tried(chunks: list[bytes]) -> Lexicon | Sequence[Fault]:
        try:
            return read_lexicon(kind, chunks, max_line_bytes=20)
        except Invalid as error:
            return error.faults

    whole = tried([data])
    assert whole == tried([data[begin : begin + size] for begin in range(0, len(data), size)])
    assert isinstance(whole, Lexicon) or (whole and all(fault.line for fault in whole))
