"""Codes of values: a vocabulary id (>= 0), `UNKNOWN`, or a boundary code for a position outside the sentence."""

#: The code of a value that is not in the vocabulary. A template with such a value makes no feature.
UNKNOWN = -1


def boundary_code(row: int) -> int:
    """The code of the position `row` tokens outside a sentence: even before the start, odd after the end."""
    return 2 * row if row < 0 else -2 * row - 1


def boundary_row(code: int) -> int:
    """The position of a boundary code: -1 is just before the start, +1 just after the end."""
    return code // 2 if code % 2 == 0 else (-code - 1) // 2
