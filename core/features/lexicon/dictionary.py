"""The words and word bigrams of training text (Sun, Li and Wang 2014, section 4.2: the dictionaries U and B).

A dictionary gathered from the training text has every word of it, so a match in that text would be more reliable than
in other text. In training, each sentence is therefore matched only with words and bigrams that occur in other
sentences: the sentence's own occurrences are subtracted from the counts. Tagging uses all words and bigrams.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.hash_table import Table, find
from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.features.lexicon.trie import (
    LeaveOneOutCounts,
    Trie,
    count_own,
    counts_here,
    nothing_left_out,
    pair_key,
    pairs_table,
)


@kernel
def _pairs(
    starting: Ids, shortest: int, offsets: Places, keys: NDArray[np.uint64], rows: Ids, counts: LeaveOneOutCounts,
    rank: int, out: Ids,
) -> None:  # fmt: skip
    """out[t] = the bigram of rank `rank` among those whose second word starts at t, or -1.

    Rank 0 is the longest. Of bigrams of the same length, the one with the longer first word comes first.
    starting[n - shortest, t] is the word of n tokens that starts at t.
    """
    lengths = starting.shape[0]
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        if counts.total.shape[0]:
            count_own(counts, begin, end, 1)
        for t in range(begin, end):
            out[t] = -1
            found = 0
            for both in range(2 * lengths - 2, -1, -1):
                for first in range(min(both, lengths - 1), max(0, both - lengths + 1) - 1, -1):
                    at = t - first - shortest
                    if at < begin or out[t] >= 0:
                        continue
                    left, right = starting[first, at], starting[both - first, t]
                    if left < 0 or right < 0:
                        continue
                    pair = find(keys, rows, pair_key(left, right))
                    if pair >= 0 and counts_here(counts, pair):
                        if found == rank:
                            out[t] = pair
                        found += 1
        if counts.total.shape[0]:
            count_own(counts, begin, end, -1)


def pairs_in(
    trie: Trie, pairs: Table, tokens: Ids, offsets: Places, lengths: tuple[int, int], rank: int,
    counts: LeaveOneOutCounts | None = None,
) -> Ids:  # fmt: skip
    """The bigram at each token, as in `_pairs`. `lengths` are the shortest and the longest words."""
    shortest, longest = lengths
    starting = [trie.starting(tokens, offsets, n) for n in range(shortest, longest + 1)]
    out = np.empty(len(tokens), np.int32)
    _pairs(
        readonly(np.stack(starting), np.int32), shortest, offsets, pairs.keys, pairs.rows,
        counts or nothing_left_out(), rank, out,
    )  # fmt: skip
    return out


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The words and bigrams of training text, with the counts needed to leave a sentence out."""

    trie: Trie
    pairs: Table
    words: LeaveOneOutCounts
    bigrams: LeaveOneOutCounts
    word_at: Places  # (words,) a token at which the word starts
    length_of: Places  # (words,)
    pair_of: NDArray[np.int32]  # (bigrams, 2) the two words of each bigram

    @staticmethod
    def gathered(
        tokens: Ids, starts: NDArray[np.bool_], offsets: Places, lengths: tuple[int, int], least: int
    ) -> "Dictionary":
        """Gather the words of `lengths` tokens, and their bigrams, that occur at least `least` times.

        `starts` marks the tokens at which words start, including the first token of each sentence.
        """
        begins = np.flatnonzero(starts)
        long = np.diff(np.append(begins, len(tokens)))
        wanted = (long >= lengths[0]) & (long <= lengths[1])
        begins, long = begins[wanted], long[wanted]
        entry_of = _numbered(tokens, begins, long)
        counts = np.bincount(entry_of)
        often = counts[entry_of] >= least
        begins, long = begins[often], long[often]
        trie, entry_of = Trie.of(*_sequences(tokens, begins, long))
        own = np.full(len(tokens), -1, np.int32)
        own[begins] = entry_of
        _, first = np.unique(entry_of, return_index=True)
        pair_of, pair_own = _bigrams(begins, long, entry_of, offsets, len(tokens), least)
        return Dictionary(
            trie,
            pairs_table(pair_of[:, 0], pair_of[:, 1]),
            _counts(own, least),
            _counts(pair_own, least),
            begins[first],
            long[first],
            pair_of,
        )


def _sequences(tokens: Ids, begins: Places, lengths: Places) -> tuple[Ids, Places]:
    """The concatenated words, and the start of each."""
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    where = np.arange(starts[-1]) + np.repeat(begins - starts[:-1], lengths)
    return tokens[where], starts


def _numbered(tokens: Ids, begins: Places, lengths: Places) -> Ids:
    return Trie.of(*_sequences(tokens, begins, lengths))[1]


def _bigrams(
    begins: Places, lengths: Places, entry_of: Ids, offsets: Places, size: int, least: int
) -> tuple[NDArray[np.int32], Ids]:
    """The bigrams, and for each token the bigram of the text whose second word starts there, or -1."""
    inside = np.ones(size + 1, np.bool_)
    inside[offsets] = False
    second = np.flatnonzero((begins[:-1] + lengths[:-1] == begins[1:]) & inside[begins[1:]]) + 1
    keys = (entry_of[second - 1].astype(np.int64) << 32) + entry_of[second]
    distinct, number, counts = np.unique(keys, return_inverse=True, return_counts=True)
    kept = np.flatnonzero(counts >= least)
    new = np.full(len(distinct) + 1, -1, np.int32)
    new[kept] = np.arange(len(kept))
    own = np.full(size, -1, np.int32)
    own[begins[second]] = new[number]
    return np.stack([distinct[kept] >> 32, distinct[kept] & 0xFFFFFFFF], axis=1).astype(np.int32), own


def _counts(own: Ids, least: int) -> LeaveOneOutCounts:
    total = np.bincount(own[own >= 0]).astype(np.int32)
    return LeaveOneOutCounts(
        readonly(total, np.int32), readonly(own, np.int32), np.zeros(len(total), np.int32), least
    )
