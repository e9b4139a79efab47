"""Choose sentences that differ from each other: a near copy of a sentence chosen before it is left out.

A sentence is a near copy of another if at least half of its pairs of neighbouring tokens occur in the other one. The
beginning and the end of a sentence count as tokens. So it is still a near copy if every fourth token differs. This is
the greedy choice with a threshold of similarity of Shen et al. (2004, "Multi-criteria-based active learning for named
entity recognition"), with an index from pairs to the chosen sentences instead of a comparison of all sentences with
each other.

A token is compared by its first column, or by all its attributes if it has no columns.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places, offsets_of, ranges, slices
from tagsmith.core.base.hash_table import capacity_for, empty_cells, find, insert
from tagsmith.core.base.hashing import GOLDEN, murmur_finish
from tagsmith.core.base.jit import inlined, inner, kernel, readonly
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.sentence_hashes import bag_hashes

#: A pair is looked up in at most this many chosen sentences, so that the time is linear in the tokens. Pairs of more
#: sentences are frequent phrases: near copies of each other are never chosen.
MAX_OWNERS = 64
#: Candidates that are compared between two points at which the caller can stop, in tokens: a small part of a second.
SLICE_TOKENS = 50_000

#: Places of the counts in `PairIndex.counts`.
_PAIRS, _POSTINGS, _CHOSEN = 0, 1, 2
_NONE = -1

Codes = NDArray[np.uint64]


class PairIndex(NamedTuple):
    """The pairs of the chosen sentences. Each pair has a linked list of the sentences that contain it."""

    keys: NDArray[np.uint64]  # hash table from pairs to rows
    rows: Ids
    heads: Places  # (pairs,) first posting of each pair
    lengths: Ids  # (pairs,) postings of each pair
    nexts: Places  # (postings,) next posting of the same pair, or -1
    owners: Ids  # (postings,) number of the chosen sentence
    shared: (
        Ids  # (chosen,) pairs that the candidate shares with each chosen sentence; zero between candidates
    )
    touched: Ids  # (chosen,) chosen sentences that share a pair with the candidate
    counts: Places  # (3,) pairs, postings, chosen sentences


def _index(pairs: int, limit: int) -> PairIndex:
    """Allocate an index of up to `limit` sentences with `pairs` pairs in total."""
    keys, rows = empty_cells(capacity_for(pairs))
    return PairIndex(
        keys, rows, np.empty(pairs, np.int64), np.empty(pairs, np.int32), np.empty(pairs, np.int64),
        np.empty(pairs, np.int32), np.zeros(limit, np.int32), np.empty(limit, np.int32), np.zeros(3, np.int64),
    )  # fmt: skip


@inlined
def _pair_key(codes: Codes, begin: int, end: int, t: int) -> np.uint64:
    """Return the key of the tokens t - 1 and t of the sentence `begin:end`; a token outside of it has the code 0."""
    left = codes[t - 1] + np.uint64(1) if t > begin else np.uint64(0)
    right = codes[t] + np.uint64(1) if t < end else np.uint64(0)
    key = murmur_finish(murmur_finish(left + GOLDEN) ^ right)
    return key if key != np.uint64(0) else GOLDEN


@inner
def _most_shared(codes: Codes, begin: int, end: int, s: PairIndex) -> int:
    """Return how many pairs of a sentence the most similar chosen sentence has."""
    found = 0
    for t in range(begin, end + 1):
        row = find(s.keys, s.rows, _pair_key(codes, begin, end, t))
        posting = s.heads[row] if row >= 0 else _NONE
        while posting >= 0:
            owner = s.owners[posting]
            if s.shared[owner] == 0:
                s.touched[found] = owner
                found += 1
            s.shared[owner] += 1
            posting = s.nexts[posting]
    most = 0
    for k in range(found):
        most = max(most, s.shared[s.touched[k]])
        s.shared[s.touched[k]] = 0
    return most


@inner
def _add(codes: Codes, begin: int, end: int, s: PairIndex) -> None:
    """Add the pairs of a sentence to the index, each once."""
    owner = s.counts[_CHOSEN]
    s.counts[_CHOSEN] += 1
    for t in range(begin, end + 1):
        key = _pair_key(codes, begin, end, t)
        row = find(s.keys, s.rows, key)
        if row < 0:
            row = s.counts[_PAIRS]
            s.counts[_PAIRS] += 1
            insert(s.keys, s.rows, key, row)
            s.heads[row], s.lengths[row] = _NONE, 0
        head = s.heads[row]
        if s.lengths[row] < MAX_OWNERS and (head < 0 or s.owners[head] != owner):
            posting = s.counts[_POSTINGS]
            s.counts[_POSTINGS] += 1
            s.owners[posting], s.nexts[posting] = owner, head
            s.heads[row] = posting
            s.lengths[row] += 1


@kernel
def _choose(codes: Codes, offsets: Places, limit: int, s: PairIndex, chosen: NDArray[np.bool_]) -> None:
    """Mark the sentences that are not near copies, in order, until `limit` are chosen in total."""
    for sentence in range(offsets.size - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        chosen[sentence] = False
        if s.counts[_CHOSEN] < limit and 2 * _most_shared(codes, begin, end, s) < end - begin + 1:
            chosen[sentence] = True
            _add(codes, begin, end, s)


def without_near_copies(corpus: Corpus, order: Places, limit: int) -> Iterator[Places]:
    """Yield the first `limit` sentences of `order` that are not near copies of earlier ones, in parts."""
    lengths = np.diff(corpus.offsets)[order]
    limit = min(limit, order.size)
    longest = np.sort(lengths)[order.size - limit :]
    index = _index(int(longest.sum()) + limit, limit)
    offsets = offsets_of(lengths)
    for first, last in slices(offsets, SLICE_TOKENS):
        part, chosen = order[first:last], np.empty(last - first, np.bool_)
        own = readonly(offsets[first : last + 1] - offsets[first], np.int64)
        _choose(readonly(_codes(corpus, part), np.uint64), own, limit, index, chosen)
        yield part[chosen]
        if index.counts[_CHOSEN] == limit:
            return


def _codes(corpus: Corpus, sentences: Places) -> Codes:
    """Return a code for each token of the given sentences. Equal tokens have equal codes."""
    tokens = ranges(corpus.offsets[sentences], corpus.offsets[sentences + 1])
    if corpus.columns:
        return corpus.columns[0].ids[tokens].astype(np.uint64)
    assert corpus.bag is not None
    return bag_hashes(corpus.bag.cells.of_tokens(tokens))


def warm() -> None:
    """Compile the kernels of this module, or load them from the cache."""
    codes, offsets = readonly(np.empty(0, np.uint64), np.uint64), readonly(np.zeros(1, np.int64), np.int64)
    _choose(codes, offsets, 1, _index(1, 1), np.empty(0, np.bool_))
