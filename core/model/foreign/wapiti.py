"""Text models of Wapiti.

    #mdl#2#30582             kind (0 maximum entropy, 1 MEMM, 2 CRF; older files have none) and number of weights
    #rdr#20/2/0              patterns, columns, and whether `u` is added to observations without patterns
    11:u1:%x[-1,0],          each pattern, preceded by its length in bytes
    #qrk#22                  labels, in the same form
    #qrk#338551              observations, in the same form: the texts that patterns make from values
    1234=0x1.8p-1            index and value of each non-zero weight, hexadecimal (C's `%a`) or decimal

Weights are in the order of observations. An observation that begins with `u` has one weight per label, one with `b` one
per pair of labels, one with `*` both.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.features.templates.wapiti import parse_wapiti
from tagsmith.core.model.file import CorruptModel
from tagsmith.core.model.foreign.templates import TextWeights, checked_labels, decoded, model_of
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.untrusted import MAX_LABELS

MAGIC = b"#mdl#"
_MODEL = re.compile(rb"#mdl#(?:([0-9])#)?([0-9]{1,18})\n")
_READER = re.compile(rb"#rdr#([0-9]{1,9})/[0-9]{1,9}(?:/[0-9])?\n")
_LIST = re.compile(rb"#qrk#([0-9]{1,18})\n")
_LENGTH = re.compile(rb"([0-9]{1,9}):")
#: Wapiti writes C's hexadecimal form, always with the prefix 0x. The models that AnyStyle ships have decimal numbers.
_WEIGHT = re.compile(
    rb"([0-9]{1,18})=(?:([+-]?0[xX][0-9a-fA-F.]+(?:[pP][+-]?[0-9]+)?)|([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?))"
)
_MAXIMUM_ENTROPY, _MEMM = 0, 1


@dataclass
class _Cursor:
    """The read position."""

    data: bytes
    at: int = 0

    def match(self, pattern: re.Pattern[bytes]) -> tuple[bytes | None, ...]:
        """Return the groups of a pattern that must match here."""
        found = pattern.match(self.data, self.at)
        if found is None:
            raise CorruptModel(f"The file does not have the format of Wapiti at byte {self.at}.")
        self.at = found.end()
        return found.groups()

    def number(self, pattern: re.Pattern[bytes]) -> int:
        """Return the number that must be here."""
        return int(self.match(pattern)[-1] or 0)

    def strings(self, count: int) -> list[str]:
        """Read `count` strings, each preceded by its length."""
        out = []
        for _ in range(count):
            length = self.number(_LENGTH)
            end = self.at + length
            if self.data[end : end + 2] != b",\n":
                raise CorruptModel(
                    f"The string at byte {self.at} of the file does not have its stated length."
                )
            out.append(decoded(self.data[self.at : end]))
            self.at = end + 2
        return out


def read(path: Path) -> SparseModel:
    """Read a model, or raise Invalid."""
    cursor = _Cursor(path.read_bytes())
    kind, count = cursor.match(_MODEL)
    if kind is not None and int(kind) not in (_MAXIMUM_ENTROPY, 2):
        raise CorruptModel("MEMM models of Wapiti are not supported: they normalise scores per token.")
    patterns = cursor.strings(cursor.number(_READER))
    if not patterns:
        raise CorruptModel("The file has no patterns. A model without patterns is not supported.")
    if len(set(patterns)) < len(patterns):
        raise CorruptModel("The file contains a pattern twice.")
    labels = checked_labels(cursor.strings(cursor.number(_LIST)), MAX_LABELS)
    texts = cursor.strings(cursor.number(_LIST))
    places, weights = _weights(cursor.data[cursor.at :], int(count or 0))
    return model_of(
        labels,
        parse_wapiti("\n".join(patterns)),
        _weighed(texts, len(labels), places, weights),
        independent=kind is not None and int(kind) == _MAXIMUM_ENTROPY,
    )


def _weighed(
    texts: list[str], labels: int, places: NDArray[np.int64], weights: NDArray[np.float64]
) -> TextWeights:
    """Lay out the weights. An observation of both kinds becomes two texts."""
    every: list[str] = []
    pairs: list[bool] = []
    for text in texts:
        if text[:1] not in ("u", "b", "*"):
            raise CorruptModel(
                f"The text {text[:80]!r} is not an observation. An observation begins with u, b or *."
            )
        kinds = {"u": (False,), "b": (True,), "*": (False, True)}[text[0]]
        every += [text] * len(kinds)
        pairs += kinds
    of_pairs = np.array(pairs, np.bool_)
    sizes = np.where(of_pairs, labels * labels, labels).astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])[:-1]
    return TextWeights(every, starts, of_pairs, places, weights)


def _weights(part: bytes, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    lines = part.split()
    if len(lines) != count:
        raise CorruptModel(f"The file must have {count} weights, but has {len(lines)}.")
    places, weights = np.empty(count, np.int64), np.empty(count)
    for i, line in enumerate(lines):
        found = _WEIGHT.fullmatch(line)
        if found is None:
            raise _not_a_weight(line)
        place, hexadecimal, decimal = found.groups()
        try:
            places[i] = int(place)
            weights[i] = float(decimal) if hexadecimal is None else float.fromhex(hexadecimal.decode())
        except (ValueError, OverflowError):
            raise _not_a_weight(line) from None
    if count and (places[0] < 0 or (np.diff(places) <= 0).any()):
        raise CorruptModel("The weights of the file are not in the order of their indices.")
    return places, weights


def _not_a_weight(line: bytes) -> CorruptModel:
    text = line[:40].decode(errors="replace")
    return CorruptModel(f"The line {text!r} is not a weight. A weight is its index, = and a number.")
