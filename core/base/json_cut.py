"""Cutting a JSON text into pieces, so that a large one can be parsed piece by piece.

Parsers hold the GIL until they have read the whole text: a third of a second for ten megabytes of short strings, in
which no other thread of the process runs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import kernel

_QUOTE, _ESCAPE, _COMMA, _COLON = (ord(c) for c in '"\\,:')
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = (ord(c) for c in "[]{}")


class Piece(NamedTuple):
    """A part of the elements of an array, `raw[begin:end]`. A list that is an element can begin in an earlier piece."""

    begin: int
    end: int
    begins_inside: bool  # whether it begins inside of an element
    ends_inside: bool


class Cut(NamedTuple):
    """Where an array is in a JSON object: its elements are `raw[begin:end]`."""

    begin: int  # -1 if the object has no such array
    end: int  # -1 if the text ends before the array
    places: NDArray[np.int64]  # of commas, about `piece_bytes` apart
    inside: NDArray[np.bool_]  # whether each of them is inside of an element
    other_commas: int  # the number of commas outside strings and outside this array

    def pieces(self, size: int) -> list[Piece]:
        """Return the pieces of the elements. `size` is that of the text, where an array without end ends."""
        places, inside = self.places.tolist(), self.inside.tolist()
        begins = [self.begin, *(each + 1 for each in places)]
        ends = [*places, size if self.end < 0 else self.end]
        return [Piece(*each) for each in zip(begins, ends, [False, *inside], [*inside, False], strict=True)]


def cut_array(raw: bytes, name: str, piece_bytes: int) -> Cut:
    """Find the array that is the member `name` of the object `raw`, and cut it between elements and inside of lists.

    Anything may be wrong with the text: the parser finds out. If the object has the name twice, the last array counts,
    as for the parser.
    """
    most = len(raw) // piece_bytes + 1
    places, inside = np.empty(most, np.int64), np.empty(most, np.bool_)
    begin, end, count, others = _scan(
        np.frombuffer(raw, np.uint8), np.frombuffer(name.encode(), np.uint8), piece_bytes, places, inside
    )
    return Cut(begin, end, places[:count], inside[:count], others)


@kernel
def _scan(
    raw: NDArray[np.uint8],
    name: NDArray[np.uint8],
    piece_bytes: int,
    places: NDArray[np.int64],
    inside: NDArray[np.bool_],
) -> tuple[int, int, int, int]:
    """Return begin, end, the number of places and the other commas of a cut."""
    begin, end, count, others, own = -1, -1, 0, 0, 0
    depth, found, in_list = 0, False, False
    string_begin, string_end = -1, -1  # of the last string at depth 1
    last = 0
    i, size = 0, raw.shape[0]
    while i < size:
        c = raw[i]
        if c == _QUOTE:
            stop = _string_end(raw, i + 1)
            if depth == 1:
                string_begin, string_end = i + 1, stop
            i = stop
        elif c in (_OPEN_LIST, _OPEN_OBJECT):
            depth += 1
            if depth == 3:
                in_list = c == _OPEN_LIST
            elif c == _OPEN_LIST and depth == 2 and _is_named(raw, string_begin, string_end, i, name):
                others += own  # of an earlier array with this name
                found, begin, end, last, count, own = True, i + 1, -1, i, 0, 0
        elif c in (_CLOSE_LIST, _CLOSE_OBJECT):
            depth -= 1
            if found and depth == 1:
                found, end = False, i
        elif c == _COMMA:
            if not found:
                others += 1
            else:
                own += 1
                if i - last >= piece_bytes and (depth == 2 or (depth == 3 and in_list)):
                    places[count] = last = i
                    inside[count] = depth == 3
                    count += 1
        i += 1
    return begin, end, count, others


@kernel
def _string_end(raw: NDArray[np.uint8], i: int) -> int:
    """Return the place of the quote that ends a string, or of the end of the text."""
    while i < raw.shape[0] and raw[i] != _QUOTE:
        i += 2 if raw[i] == _ESCAPE else 1
    return i


@kernel
def _is_named(raw: NDArray[np.uint8], begin: int, end: int, at: int, name: NDArray[np.uint8]) -> bool:
    """Whether the value at `at` belongs to the name that is the string at begin:end."""
    if begin < 0 or end - begin != name.shape[0]:
        return False
    for k in range(name.shape[0]):
        if raw[begin + k] != name[k]:
            return False
    colons = 0
    for k in range(end + 1, at):
        if raw[k] == _COLON:
            colons += 1
        elif raw[k] > 32:  # not white space
            return False
    return colons == 1


def warm() -> None:
    """Compile the kernels."""
    cut_array(b'{"a": [1]}', "a", 1)
