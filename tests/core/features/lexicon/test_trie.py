"""Matching kernels against literal twins."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tagsmith.core.base.jit import readonly
from tagsmith.core.features.lexicon.trie import SIDES, LeaveOneOutCounts, Trie

Entry = tuple[int, ...]
Sentences = list[list[int]]


def made(entries: Sequence[Entry]) -> tuple[Trie, list[int]]:
    flat = np.array([token for entry in entries for token in entry], np.int32)
    starts = np.concatenate([[0], np.cumsum([len(entry) for entry in entries])]).astype(np.int64)
    trie, entry_of = Trie.of(flat, starts)
    return trie, entry_of.tolist()


def packed(sentences: Sentences) -> tuple[np.ndarray, np.ndarray]:
    flat = [token for sentence in sentences for token in sentence]
    offsets = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])])
    return readonly(np.array(flat), np.int32), readonly(offsets, np.int64)


def samples(seed: int) -> tuple[list[Entry], Sentences]:
    """Few tokens, so that entries overlap, nest and repeat; -1 is a token that no entry has."""
    rng = random.Random(seed)
    entries = [tuple(rng.randrange(4) for _ in range(rng.randint(1, 5))) for _ in range(rng.randint(0, 25))]
    sentences = [[rng.randrange(-1, 5) for _ in range(rng.randint(0, 12))] for _ in range(8)]
    return entries, sentences


def covered_forward(known: set[Entry], sentence: list[int]) -> list[tuple[int, int]]:
    """Spans by the definition: the longest entry at each token that is not covered yet."""
    spans, t = [], 0
    while t < len(sentence):
        stops = [s for s in range(len(sentence), t, -1) if tuple(sentence[t:s]) in known]
        if stops:
            spans.append((t, stops[0]))
        t = stops[0] if stops else t + 1
    return spans


def covered_backward(known: set[Entry], sentence: list[int]) -> list[tuple[int, int]]:
    mirrored = covered_forward({entry[::-1] for entry in known}, sentence[::-1])
    return [(len(sentence) - stop, len(sentence) - start) for start, stop in mirrored]


def coded(
    spans: list[tuple[int, int]], kinds: dict[Entry, int], sentence: list[int], places: int
) -> list[int]:
    out = [0] * len(sentence)
    for start, stop in spans:
        first = 1 + kinds[tuple(sentence[start:stop])] * places
        for t in range(start, stop):
            place = 0 if t == start else 1
            if places == 4 and t == stop - 1:
                place = 3 if stop - start == 1 else 2
            out[t] = first + place
    return out


@pytest.mark.parametrize("places", [2, 4])
@pytest.mark.parametrize(("way", "twin"), [("forward", covered_forward), ("backward", covered_backward)])
def test_maximum_matching_covers_as_defined(way: str, twin: Callable[..., list], places: int) -> None:
    for seed in range(60):
        entries, sentences = samples(seed)
        trie, entry_of = made(entries)
        kinds = {entry: number % 3 for entry, number in zip(entries, entry_of, strict=True)}
        by_entry = np.zeros(len(set(entries)), np.int32)
        for entry, number in zip(entries, entry_of, strict=True):
            by_entry[number] = kinds[entry]
        tokens, offsets = packed(sentences)
        found = getattr(trie, way)(readonly(by_entry, np.int32), tokens, offsets, places).tolist()
        assert found == [
            code
            for sentence in sentences
            for code in coded(twin(set(entries), sentence), kinds, sentence, places)
        ]


def test_entries_of_a_length_are_found_where_they_start_and_never_across_sentences() -> None:
    for seed in range(60):
        entries, sentences = samples(seed)
        trie, entry_of = made(entries)
        number = dict(zip(entries, entry_of, strict=True))
        tokens, offsets = packed(sentences)
        for n in range(1, 6):
            expected = [
                number.get(tuple(s[t : t + n]), -1) if t + n <= len(s) else -1
                for s in sentences
                for t in range(len(s))
            ]
            assert trie.starting(tokens, offsets, n).tolist() == expected


@pytest.mark.parametrize("side", SIDES)
def test_lengths_are_those_of_the_longest_entry_that_lies_so(side: str) -> None:
    for seed in range(60):
        entries, sentences = samples(seed)
        trie, _ = made(entries)
        tokens, offsets = packed(sentences)
        expected = []
        for s in sentences:
            spans = [
                (a, b)
                for a in range(len(s))
                for b in range(a + 1, min(a + 4, len(s)) + 1)
                if tuple(s[a:b]) in set(entries)
            ]
            lies: dict[str, Callable[[int, int, int], bool]] = {
                "start": lambda a, b, t: a == t,
                "end": lambda a, b, t: b - 1 == t,
                "inside": lambda a, b, t: a < t < b - 1,
            }
            expected += [
                max((b - a for a, b in spans if lies[side](a, b, t)), default=0) for t in range(len(s))
            ]
        assert trie.lengths(tokens, offsets, 4, side).tolist() == expected  # type: ignore[arg-type]


def test_a_sentences_own_occurrences_do_not_count_for_it() -> None:
    trie, (once, twice) = made([(1, 2), (3,)])
    tokens, offsets = packed([[1, 2, 3], [3, 1, 2]])
    own = np.full(6, -1, np.int32)
    own[[0, 2, 3]] = [once, twice, twice]
    total = np.zeros(2, np.int32)
    total[[once, twice]] = [1, 2]
    counts = LeaveOneOutCounts(readonly(total, np.int32), readonly(own, np.int32), np.zeros(2, np.int32), 1)
    # (1, 2) is a word of the first sentence only: unknown there, known in the second, which has it by chance.
    assert trie.starting(tokens, offsets, 2, counts).tolist() == [-1, -1, -1, -1, once, -1]
    assert trie.starting(tokens, offsets, 1, counts).tolist() == [-1, -1, twice, twice, -1, -1]
    assert not counts.here.any()


def test_an_empty_trie_finds_nothing() -> None:
    trie, _ = made([])
    tokens, offsets = packed([[0, 1], []])
    assert trie.starting(tokens, offsets, 1).tolist() == [-1, -1]
    assert trie.forward(readonly(np.empty(0), np.int32), tokens, offsets, 2).tolist() == [0, 0]
