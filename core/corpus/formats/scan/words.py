"""Kernels that read lines of numbered words with ten fields, as in CoNLL-U and CoNLL-X."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Bytes, Ids, Places
from tagsmith.core.base.jit import inner, kernel
from tagsmith.core.corpus.formats.decimals import parse_decimal
from tagsmith.core.corpus.formats.lines import (
    FAULTS,
    LINE,
    LONG,
    OWN_FAULTS,
    OWN_STATE,
    TOKENS,
    byte_fault,
    record,
)
from tagsmith.core.corpus.trees import word_in_cycle
from tagsmith.core.corpus.vocabulary import same_bytes
from tagsmith.core.corpus.weights import MAX_WEIGHT, MIN_WEIGHT

#: Fields per line.
WIDTH = 10

#: Longer numbers are not word numbers, and would overflow.
_MAX_DIGITS = 9

_HASH, _EQUALS, _BAR, _UNDERSCORE = 35, 61, 124, 95

# Indices of the state array.
_WORD = OWN_STATE  # number of the last word of the current sentence, 0 between sentences
ENDS = OWN_STATE + 1  # sentence ends in this batch
CELLS = OWN_STATE + 2  # cells in this batch
HEADS = OWN_STATE + 3  # heads in the buffer
COMPLETE_HEADS = OWN_STATE + 4  # those of them that are of complete sentences
_EARLIER_FAULTS = OWN_STATE + 5  # faults before the current sentence
_WEIGHED = OWN_STATE + 6  # whether the current or the next sentence has a weight
STATE_SIZE = OWN_STATE + 7

# Kinds of faults.
(
    FIELD_COUNT,
    NUMBER,
    ORDER,
    EMPTY,
    HEAD,
    OWN_HEAD,
    RANGE,
    CYCLE,
    NO_ROOT,
    WEIGHT,
    SECOND_WEIGHT,
    LATE_WEIGHT,
) = range(OWN_FAULTS, OWN_FAULTS + 12)

# Kinds of lines: a word, a multiword token or an empty node, or neither.
_NEITHER, _IS_WORD, _IS_OTHER = range(3)


@dataclass(frozen=True, slots=True)
class WordLines:
    """What tells the formats with such lines apart."""

    title: str
    fields: tuple[str, ...]  # in order
    comments: bool  # whether there are comments, multiword tokens and empty nodes


class Syntax(NamedTuple):
    """What lines may look like, and what is read of them."""

    limit: int  # longest line
    chosen: Places  # fields whose spans are stored
    head: int  # the field that holds the head of a word, -1 if heads are not read
    comments: bool  # whether there are comments, multiword tokens and empty nodes


class FoundWords(NamedTuple):
    """What is found in a batch of lines, and scratch space.

    The heads of an incomplete sentence stay in the buffer until its other words are read.
    """

    spans: Places  # (cells, 2) the chosen fields of each word
    ends: Places  # (sentences,)
    weights: NDArray[np.float32]  # (sentences,)
    heads: Ids  # (words,)
    lines: Places  # (words,) the line of each word in `heads`
    marks: Places  # (words + 1,) scratch space
    bounds: Places  # (fields + 1,) where the fields of a line begin, and where the last one ends
    number: Places  # (1,) a parsed number
    weight: NDArray[np.float64]  # (1,) the weight of the current or the next sentence


@kernel
def _number(buffer: Bytes, start: int, stop: int, found: Places) -> int:
    """Parse the number at `start` into found[0]; return the index after it, or `start` if it is not valid."""
    i = start
    value = 0
    while i < stop and 48 <= buffer[i] <= 57:
        value = 10 * value + int(buffer[i]) - 48
        i += 1
        if i - start > _MAX_DIGITS:
            return start
    found[0] = value
    return start if buffer[start] == 48 and i - start > 1 else i


@inner
def _line_kind(buffer: Bytes, start: int, stop: int, found: Places) -> int:
    """Return the kind of a line by its first field; for a word its number is in found[0]."""
    i = _number(buffer, start, stop, found)
    if i == start:
        return _NEITHER
    if i == stop:
        return _IS_WORD
    first = found[0]
    separator = buffer[i]
    end = _number(buffer, i + 1, stop, found) if i + 1 < stop else i + 1
    sound = end == stop and end > i + 1
    if separator == 45:
        return _IS_OTHER if sound and 0 < first <= found[0] else _NEITHER
    return _IS_OTHER if sound and separator == 46 and found[0] > 0 else _NEITHER


@inner
def _after_blanks(buffer: Bytes, start: int, stop: int) -> int:
    """Return the index after the spaces and tabs at `start`."""
    i = start
    while i < stop and (buffer[i] == 32 or buffer[i] == 9):
        i += 1
    return i


@kernel
def _split(buffer: Bytes, start: int, bounds: Places) -> tuple[int, int]:
    """Return (end of the line, number of tabs) and store where each field begins in `bounds`."""
    stop, tabs = start, 0
    bounds[0] = start
    while buffer[stop] != 10:
        if buffer[stop] == 9:
            tabs += 1
            bounds[min(tabs, WIDTH)] = stop + 1
        stop += 1
    return stop, tabs


@inner
def _weight_value(buffer: Bytes, start: int, stop: int) -> int:
    """Return where the value of a comment `# weight = 2.0` begins, -1 if it is another comment."""
    word = (119, 101, 105, 103, 104, 116)
    i = _after_blanks(buffer, start + 1, stop)
    k = 0
    while k < 6 and i + k < stop and buffer[i + k] == word[k]:
        k += 1
    i = _after_blanks(buffer, i + k, stop)
    if k < 6 or i == stop or buffer[i] != _EQUALS:
        return -1
    return _after_blanks(buffer, i + 1, stop)


@inner
def _comment(buffer: Bytes, start: int, stop: int, state: Places, words: FoundWords, faults: Places) -> None:
    """Read the weight of the next sentence, if the comment is one."""
    value = _weight_value(buffer, start, stop)
    if value < 0:
        return
    while stop > value and (buffer[stop - 1] == 32 or buffer[stop - 1] == 9):
        stop -= 1
    number = parse_decimal(buffer, value, stop, words.weight, 0)
    if state[_WORD]:
        record(state, faults, LATE_WEIGHT, 0, 0)
    elif state[_WEIGHED]:
        record(state, faults, SECOND_WEIGHT, 0, 0)
    elif not (number and MIN_WEIGHT <= words.weight[0] <= MAX_WEIGHT):
        record(state, faults, WEIGHT, 0, 0)
    state[_WEIGHED] = 1


@inner
def _head(buffer: Bytes, field: int, word: int, state: Places, words: FoundWords, faults: Places) -> None:
    """Parse the head of a word. Whether the sentence has such a word is known at its end."""
    start, stop = words.bounds[field], words.bounds[field + 1] - 1
    sound = start < stop and _number(buffer, start, stop, words.number) == stop
    head = words.number[0] if sound else 0
    if state[FAULTS] < faults.shape[0]:
        if not sound:
            record(state, faults, HEAD, 0, 0)
        elif head == word:
            record(state, faults, OWN_HEAD, word, 0)
    words.heads[state[HEADS]] = head
    words.lines[state[HEADS]] = state[LINE]
    state[HEADS] += 1


@inner
def _word(
    buffer: Bytes, syntax: Syntax, number: int, state: Places, words: FoundWords, faults: Places
) -> None:
    """Store the spans of the chosen fields of a word, and its head."""
    if state[_WORD] == 0:
        state[_EARLIER_FAULTS] = state[FAULTS]
    if number != state[_WORD] + 1:
        record(state, faults, ORDER, number, state[_WORD] + 1)
    state[_WORD] = number
    chosen, bounds, spans, row = syntax.chosen, words.bounds, words.spans, state[CELLS]
    for k in range(chosen.size):
        spans[row + k, 0], spans[row + k, 1] = bounds[chosen[k]], bounds[chosen[k] + 1] - 1
        if spans[row + k, 0] == spans[row + k, 1] and state[FAULTS] < faults.shape[0]:
            record(state, faults, EMPTY, chosen[k], 0)
    if syntax.head >= 0:
        _head(buffer, syntax.head, number, state, words, faults)
    state[CELLS] += chosen.size
    state[TOKENS] += 1


@inner
def _record_at(line: int, state: Places, faults: Places, kind: int, a: int, b: int) -> None:
    """Record a fault of an earlier line, if there is room for it."""
    if state[FAULTS] < faults.shape[0]:
        record(state, faults, kind, a, b)
        faults[state[FAULTS] - 1, 0] = line


@inner
def _check_tree(state: Places, words: FoundWords, faults: Places) -> None:
    """Check that the heads of the sentence that ends here are a tree."""
    first, last = state[COMPLETE_HEADS], state[HEADS]
    before, roots = state[FAULTS], 0
    for k in range(first, last):
        roots += words.heads[k] == 0
        if words.heads[k] > last - first:
            _record_at(words.lines[k], state, faults, RANGE, words.heads[k], last - first)
    if state[FAULTS] == before:
        word = word_in_cycle(words.heads, first, last, words.marks)
        if word:
            _record_at(words.lines[first + word - 1], state, faults, CYCLE if roots else NO_ROOT, word, 0)


@inner
def _end(syntax: Syntax, state: Places, words: FoundWords, faults: Places) -> None:
    """End a sentence. Its heads are checked if its lines have no faults: with lines missing, heads are wrong too."""
    if syntax.head >= 0:
        if state[FAULTS] == state[_EARLIER_FAULTS]:
            _check_tree(state, words, faults)
        state[COMPLETE_HEADS] = state[HEADS]
    words.ends[state[ENDS]] = state[TOKENS]
    words.weights[state[ENDS]] = words.weight[0]
    state[ENDS] += 1
    state[_WORD] = 0
    words.weight[0] = 1.0
    state[_WEIGHED] = 0


@kernel
def scan(buffer: Bytes, syntax: Syntax, state: Places, words: FoundWords, faults: Places) -> None:
    """Read whole lines (the buffer ends with a newline). The caller reserves capacity in `words`."""
    state[CELLS], state[ENDS] = 0, 0
    bounds = words.bounds
    following = 0
    while following < buffer.size and state[FAULTS] < faults.shape[0]:
        state[LINE] += 1
        i = following
        stop, tabs = _split(buffer, i, bounds)
        following = stop + 1
        stop -= stop > i and buffer[stop - 1] == 13
        if stop - i > syntax.limit:
            record(state, faults, LONG, syntax.limit, 0)
        elif byte_fault(buffer, i, stop, state, faults):
            continue
        elif _after_blanks(buffer, i, stop) == stop:
            if state[_WORD]:
                _end(syntax, state, words, faults)
        elif syntax.comments and buffer[i] == _HASH:
            _comment(buffer, i, stop, state, words, faults)
        elif tabs != WIDTH - 1:
            record(state, faults, FIELD_COUNT, tabs + 1, WIDTH)
        else:
            bounds[WIDTH] = stop + 1
            kind = _line_kind(buffer, i, bounds[1] - 1, words.number)
            if kind == _NEITHER or (kind == _IS_OTHER and not syntax.comments):
                record(state, faults, NUMBER, 0, 0)
            elif kind == _IS_WORD:
                _word(buffer, syntax, words.number[0], state, words, faults)


@inner
def _is_named(text: Bytes, start: int, stop: int, names: Bytes, ends: Places) -> bool:
    """Whether text[start:stop], a part of a feature list, has one of the names names[ends[k]:ends[k + 1]]."""
    for k in range(ends.size - 1):
        length = ends[k + 1] - ends[k]
        if (
            (stop - start == length or (stop - start > length and text[start + length] == _EQUALS))
            and same_bytes(text, start, names, ends[k], length)
        ):  # fmt: skip
            return True
    return False


@kernel
def drop_features(text: Bytes, spans: Places, names: Bytes, ends: Places) -> None:
    """Remove the parts with these names from feature lists such as `case=nom|id=3`, in place. None left is `_`."""
    for row in range(spans.shape[0]):
        first, last = spans[row, 0], spans[row, 1]
        written, kept = first, 0
        start = first
        while start <= last:
            stop = start
            while stop < last and text[stop] != _BAR:
                stop += 1
            if not _is_named(text, start, stop, names, ends):
                if kept:
                    text[written] = _BAR
                    written += 1
                for i in range(start, stop):
                    text[written] = text[i]
                    written += 1
                kept += 1
            start = stop + 1
        if written == first:
            text[first] = _UNDERSCORE
            written += 1
        spans[row, 1] = written
