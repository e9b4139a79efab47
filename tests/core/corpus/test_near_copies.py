"""Sentences that differ from each other, against the definition of a near copy."""

import numpy as np
import pytest

from tagsmith.core.corpus import near_copies
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.ndjson import read_ndjson
from tagsmith.core.corpus.near_copies import without_near_copies

Pair = tuple[str | None, str | None]


def corpus_of(sentences: list[list[str]]) -> Corpus:
    lines = ['{"tokens": [' + ", ".join(f'"{word}"' for word in words) + "]}\n" for words in sentences]
    return read_ndjson(["".join(lines).encode()], max_line_bytes=1 << 16, labelled=False)


def pairs_of(words: list[str]) -> list[Pair]:
    return list(zip([None, *words], [*words, None], strict=True))


def twin(sentences: list[list[str]], order: list[int], limit: int) -> list[int]:
    """Compare each sentence with all that are chosen."""
    chosen: list[int] = []
    for number in order:
        pairs = pairs_of(sentences[number])
        shared = [sum(pair in pairs_of(sentences[each]) for pair in pairs) for each in chosen]
        if len(chosen) < limit and all(2 * count < len(pairs) for count in shared):
            chosen.append(number)
    return chosen


def chosen_of(corpus: Corpus, order: list[int], limit: int) -> list[int]:
    parts = list(without_near_copies(corpus, np.array(order, np.int64), limit))
    return [int(each) for part in parts for each in part]


@pytest.mark.parametrize("words", [2, 5, 30])
@pytest.mark.parametrize("slice_tokens", [1, 40, 50_000])
def test_the_choice_is_that_of_the_definition(
    words: int, slice_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_copies, "SLICE_TOKENS", slice_tokens)
    rng = np.random.default_rng(words)
    originals = [[f"w{word}" for word in rng.integers(words, size=rng.integers(1, 12))] for _ in range(25)]
    copies = [list(originals[rng.integers(25)]) for _ in range(25)]
    for copy in copies:
        copy[rng.integers(len(copy))] = "new"
    sentences = originals + copies
    order = rng.permutation(len(sentences)).tolist()
    for limit in (1, 7, 50, 99):
        expected = twin(sentences, order, limit)
        assert chosen_of(corpus_of(sentences), order, limit) == expected
    assert 1 < len(expected) < len(sentences)


def test_every_fourth_word_may_differ_and_more_may_not() -> None:
    text = [f"w{i}" for i in range(15)]
    near = [word if i not in (2, 6, 10, 13) else f"x{i}" for i, word in enumerate(text)]
    far = [word if i not in (2, 5, 8, 11, 13) else f"y{i}" for i, word in enumerate(text)]
    assert chosen_of(corpus_of([text, near, far]), [0, 1, 2], 3) == [0, 2]


def test_a_frequent_pair_is_looked_up_in_few_sentences() -> None:
    """Each sentence has two frequent pairs of five, and three of its own."""
    count = 3 * near_copies.MAX_OWNERS
    sentences = [["of", "the", f"a{i}", f"b{i}"] for i in range(count)]
    assert chosen_of(corpus_of(sentences), list(range(count)), count) == list(range(count))


def test_tokens_without_columns_are_compared_by_all_their_attributes() -> None:
    lines = [
        '{"tokens": [{"w": "a", "p": 1}, {"w": "b"}, {"w": "c"}]}',
        '{"tokens": [{"p": 1, "w": "a"}, {"w": "b"}, {"w": "c"}]}',
        '{"tokens": [{"w": "a", "p": 2}, {"w": "x"}, {"w": "c"}]}',
    ]
    corpus = read_ndjson(["\n".join(lines).encode()], max_line_bytes=1 << 16, labelled=False)
    assert chosen_of(corpus, [0, 1, 2], 3) == [0, 2]


def test_of_nothing_nothing_is_chosen() -> None:
    assert chosen_of(corpus_of([["a"]]), [], 5) == []
