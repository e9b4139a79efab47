"""A trie of token sequences, and kernels that match its entries in sentences.

The children of all nodes are in one open-addressing table, from (node, token) to the child. The keys are mixed by an
invertible function, so edges have distinct keys. A token that occurs in no entry has id -1, which no edge has.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.hash_table import Table, find
from tagsmith.core.base.hashing import murmur_finish
from tagsmith.core.base.jit import inlined, kernel, readonly

#: The part of a word at a token.
Side = Literal["start", "end", "inside"]
SIDES: tuple[Side, ...] = get_args(Side)


class Nodes(NamedTuple):
    """The arrays of a trie. Node 0 is the root. The edge in row r leads to node r + 1."""

    keys: NDArray[np.uint64]
    rows: Ids
    entries: Ids  # (nodes,) the entry that ends at a node, or -1


class LeaveOneOutCounts(NamedTuple):
    """Occurrences of entries in training text, used to match a sentence without its own occurrences.

    All arrays are empty if nothing is left out.
    """

    total: Ids  # (entries,)
    own: Ids  # (tokens,) the entry that starts at a token in the training text, or -1
    here: Ids  # (entries,) scratch, zero between sentences: occurrences in the current sentence
    least: int  # the occurrences in other sentences that an entry needs


@inlined
def pair_key(first: int, second: int) -> np.uint64:
    """Mix two numbers from 0 to 2^31 - 2 into a unique nonzero key (the finisher of MurmurHash3)."""
    return murmur_finish((np.uint64(first) << np.uint64(32)) + np.uint64(second) + np.uint64(1))


@kernel
def _pair_keys(first: Ids, second: Ids, keys: NDArray[np.uint64]) -> None:
    for i in range(first.shape[0]):
        keys[i] = pair_key(first[i], second[i])


def pairs_table(first: NDArray[np.integer], second: NDArray[np.integer]) -> Table:
    """The table of distinct pairs, from a pair to its index."""
    keys = np.empty(len(first), np.uint64)
    _pair_keys(readonly(first, np.int32), readonly(second, np.int32), keys)
    return Table.of(keys)


@inlined
def _child(nodes: Nodes, node: int, token: int) -> int:
    return find(nodes.keys, nodes.rows, pair_key(node, token)) + 1 if token >= 0 else 0


@inlined
def count_own(counts: LeaveOneOutCounts, begin: int, end: int, by: int) -> None:
    """Add `by` to the counts of the entries that occur in a sentence."""
    for token in range(begin, end):
        if counts.own[token] >= 0:
            counts.here[counts.own[token]] += by


@inlined
def counts_here(counts: LeaveOneOutCounts, entry: int) -> bool:
    """Whether an entry occurs often enough in other sentences."""
    return counts.total.shape[0] == 0 or bool(counts.total[entry] - counts.here[entry] >= counts.least)


@kernel
def _starting(
    nodes: Nodes, tokens: Ids, offsets: Places, length: int, counts: LeaveOneOutCounts, out: Ids
) -> None:
    """out[t] = the entry of exactly `length` tokens that starts at t, or -1."""
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        if counts.total.shape[0]:
            count_own(counts, begin, end, 1)
        for t in range(begin, end):
            out[t] = -1
            if t + length > end:
                continue
            node, at = 0, t
            while at < t + length:
                node = _child(nodes, node, tokens[at])
                if node == 0:
                    break
                at += 1
            if node > 0:
                entry = nodes.entries[node]
                if entry >= 0 and counts_here(counts, entry):
                    out[t] = entry
        if counts.total.shape[0]:
            count_own(counts, begin, end, -1)


@kernel
def _lengths(
    nodes: Nodes, tokens: Ids, offsets: Places, longest: int, side: int, counts: LeaveOneOutCounts, out: Ids
) -> None:
    """out[t] = the length of the longest entry that starts at t (side 0), ends at t (1) or has t inside (2)."""
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        if counts.total.shape[0]:
            count_own(counts, begin, end, 1)
        for t in range(begin, end):
            out[t] = 0
        for t in range(begin, end):
            node = 0
            for at in range(t, min(t + longest, end)):
                node = _child(nodes, node, tokens[at])
                if node == 0:
                    break
                entry = nodes.entries[node]
                if entry < 0 or not counts_here(counts, entry):
                    continue
                length = at + 1 - t
                if side == 0:
                    out[t] = max(out[t], length)
                elif side == 1:
                    out[at] = max(out[at], length)
                else:
                    for inner in range(t + 1, at):
                        out[inner] = max(out[inner], length)
        if counts.total.shape[0]:
            count_own(counts, begin, end, -1)


@inlined
def _longest(nodes: Nodes, tokens: Ids, begin: int, end: int) -> tuple[int, int]:
    """The longest entry that starts at `begin`, and its end; (-1, begin) if there is none."""
    node, entry, stop = 0, -1, begin
    for at in range(begin, end):
        node = _child(nodes, node, tokens[at])
        if node == 0:
            break
        if nodes.entries[node] >= 0:
            entry, stop = nodes.entries[node], at + 1
    return entry, stop


@inlined
def _write_match(out: Ids, begin: int, stop: int, kind: int, positions: int) -> None:
    """Write a match of class `kind`: B I with 2 positions, B M E S with 4. 0 is outside."""
    first = 1 + kind * positions
    for at in range(begin, stop):
        out[at] = first + 1
    out[begin] = first
    if positions == 4:
        out[stop - 1] = first + (3 if stop - begin == 1 else 2)


@kernel
def _forward(nodes: Nodes, kinds: Ids, tokens: Ids, offsets: Places, positions: int, out: Ids) -> None:
    """Maximum matching from the left: at each uncovered token, take the longest entry that starts there."""
    for sentence in range(offsets.shape[0] - 1):
        t, end = offsets[sentence], offsets[sentence + 1]
        while t < end:
            entry, stop = _longest(nodes, tokens, t, end)
            if entry >= 0:
                _write_match(out, t, stop, kinds[entry], positions)
                t = stop
            else:
                out[t] = 0
                t += 1


@kernel
def _backward(
    nodes: Nodes, kinds: Ids, tokens: Ids, offsets: Places, positions: int, first: Ids, ending: Ids, out: Ids
) -> None:
    """Maximum matching from the right: at each uncovered token, take the longest entry that ends there.

    ending[t] is the longest entry whose last token is t, and first[t] its start, or -1 if there is none.
    """
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        for t in range(begin, end):
            first[t] = -1
        for t in range(begin, end):
            node = 0
            for at in range(t, end):
                node = _child(nodes, node, tokens[at])
                if node == 0:
                    break
                # Starts are visited in order, so the first entry that ends here is the longest.
                if nodes.entries[node] >= 0 and first[at] < 0:
                    first[at] = t
                    ending[at] = nodes.entries[node]
        t = end - 1
        while t >= begin:
            if first[t] >= 0:
                _write_match(out, first[t], t + 1, kinds[ending[t]], positions)
                t = first[t] - 1
            else:
                out[t] = 0
                t -= 1


@dataclass(frozen=True, eq=False)
class Trie:
    """A trie whose entries are sequences of tokens."""

    nodes: Nodes

    @staticmethod
    def of(ids: Ids, starts: Places) -> tuple["Trie", Ids]:
        """Build the trie of sequences, and return it with the entry of each sequence. Equal sequences share an entry.

        Sequence i is ids[starts[i]:starts[i + 1]] and has at least one token. Shorter entries have lower numbers.
        """
        lengths = np.diff(starts)
        node = np.zeros(len(lengths), np.int64)  # the node that each sequence has reached
        edges: list[NDArray[np.int64]] = []  # per level, sorted: node * 2^32 + token
        size = 1
        for depth in range(int(lengths.max(initial=0))):
            going = np.flatnonzero(lengths > depth)
            wanted = (node[going] << 32) + ids[starts[going] + depth]
            level, where = np.unique(wanted, return_inverse=True)
            node[going] = size + where
            edges.append(level)
            size += len(level)
        joined = np.concatenate([np.empty(0, np.int64), *edges])
        table = pairs_table(joined >> 32, joined & 0xFFFFFFFF)
        ends, entry_of = np.unique(node, return_inverse=True)
        entries = np.full(size, -1, np.int32)
        entries[ends] = np.arange(len(ends))
        return Trie(Nodes(table.keys, table.rows, readonly(entries, np.int32))), readonly(entry_of, np.int32)

    def starting(
        self, tokens: Ids, offsets: Places, length: int, counts: LeaveOneOutCounts | None = None
    ) -> Ids:
        """The entry of exactly `length` tokens that starts at each token, or -1."""
        out = np.empty(len(tokens), np.int32)
        _starting(self.nodes, tokens, offsets, length, counts or nothing_left_out(), out)
        return out

    def lengths(
        self, tokens: Ids, offsets: Places, longest: int, side: Side, counts: LeaveOneOutCounts | None = None
    ) -> Ids:
        """The length of the longest entry, up to `longest`, that starts, ends or continues at each token, or 0."""
        out = np.empty(len(tokens), np.int32)
        number = SIDES.index(side)
        _lengths(self.nodes, tokens, offsets, longest, number, counts or nothing_left_out(), out)
        return out

    def forward(self, kinds: Ids, tokens: Ids, offsets: Places, positions: int) -> Ids:
        """Cover the sentences by maximum matching from the left. `kinds` are the classes of the entries.

        The code is 0 outside entries and 1 + class * positions + position inside (2: B I, 4: B M E S).
        """
        out = np.empty(len(tokens), np.int32)
        _forward(self.nodes, kinds, tokens, offsets, positions, out)
        return out

    def backward(self, kinds: Ids, tokens: Ids, offsets: Places, positions: int) -> Ids:
        """Cover the sentences by maximum matching from the right. The codes are those of `forward`."""
        first, ending, out = (np.empty(len(tokens), np.int32) for _ in range(3))
        _backward(self.nodes, kinds, tokens, offsets, positions, first, ending, out)
        return out


def nothing_left_out() -> LeaveOneOutCounts:
    """Counts for text that is not the training text."""
    none = readonly(np.empty(0, np.int32), np.int32)
    return LeaveOneOutCounts(none, none, np.empty(0, np.int32), 0)
