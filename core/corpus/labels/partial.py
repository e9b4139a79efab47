"""Partial labels: tokens without a label, or with several to choose from.

In a corpus with partial labels, `?` allows every label and `B-PER|I-PER` one of these. Other labels mean themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.simd import LANES, padded

#: At most this many faults are listed.
_MAX_FAULTS = 100

ANY = "?"
SEPARATOR = "|"


def alternatives(label: str) -> tuple[str, ...]:
    """Return the labels that a partial label allows; none if it allows all."""
    return () if label == ANY else tuple(dict.fromkeys(label.split(SEPARATOR)))


def is_single(label: str) -> bool:
    """Whether a partial label allows one label only."""
    return len(alternatives(label)) == 1


def names_of(labels: Iterable[str]) -> list[str]:
    """Return the labels that partial labels name, each once, in order of first occurrence."""
    return list(dict.fromkeys(name for label in labels for name in alternatives(label)))


def check(names: Sequence[str], ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
    """Raise Invalid if a label names an empty alternative, as `A|` does, or if no token has a label."""
    faults = []
    for entry, name in enumerate(names):
        if name != ANY and "" in name.split(SEPARATOR):
            token = int(np.argmax(ids == entry))
            sentence = int(np.searchsorted(offsets, token, side="right")) - 1
            place = f"sentence {sentence}, token {token - int(offsets[sentence])} (counted from 0)"
            faults.append(Fault(f"{place}: {name} has an empty alternative"))
    if faults:
        reason = f"Write alternatives as A{SEPARATOR}B, and {ANY} for any label."
        raise Invalid(reason, faults[:_MAX_FAULTS], code="invalid_partial_label")
    if not names_of(names):
        raise Invalid(
            f"Every label is {ANY}, so there is nothing to learn from. Label some tokens, or upload the text without "
            "labels (labelled=false).",
            [Fault("No token has a label.", parameter="partial")],
            code="unlabelled_corpus",
        )


@dataclass(frozen=True, eq=False, slots=True)
class Choices:
    """What each entry of a vocabulary of partial labels allows."""

    single: NDArray[np.int32]  # (entries,) the number of the only label, or -1
    allowed: NDArray[np.uint8]  # (entries, width / 8) one bit per label

    @staticmethod
    def of(entries: Iterable[str], numbers: Mapping[str, int]) -> "Choices":
        """Number the labels of each entry. Labels without a number are not allowed."""
        rows = [[numbers[name] for name in alternatives(entry) if name in numbers] for entry in entries]
        single = np.array([row[0] if len(row) == 1 else -1 for row in rows], np.int32)
        marks = np.zeros((len(rows), padded(len(numbers))), np.bool_)
        for i, (entry, row) in enumerate(zip(entries, rows, strict=True)):
            marks[i, row if entry != ANY else slice(len(numbers))] = True
        return Choices(single, np.packbits(marks, axis=1, bitorder="little").reshape(len(rows), -1))


assert LANES == 8  # one byte has the bits of one vector
