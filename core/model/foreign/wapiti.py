"""Wapiti's models, which are text.

    #mdl#2#30582             kind (0 maximum entropy, 1 MEMM, 2 CRF; older files have none) and number of weights
    #rdr#20/2/0              patterns, columns, and whether observations without patterns get a `u` by themselves
    11:u1:%x[-1,0],          each pattern, its length in bytes before it
    #qrk#22                  labels, likewise
    #qrk#338551              observations, likewise: what a pattern made of its values
    1234=0x1.8p-1            place and value of each weight that is not zero, in C's hexadecimal form

Weights stand in the order of observations: of each one a label when it begins with `u`, one a pair of labels with `b`,
both with `*`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.features.wapiti import parse_wapiti
from core.model.file import CorruptModel
from core.model.foreign.templates import Weighed, checked_labels, decoded, model_of
from core.model.model import Model
from core.model.untrusted import MAX_LABELS

MAGIC = b"#mdl#"
_MODEL = re.compile(rb"#mdl#(?:([0-9])#)?([0-9]{1,18})\n")
_READER = re.compile(rb"#rdr#([0-9]{1,9})/[0-9]{1,9}(?:/[0-9])?\n")
_LIST = re.compile(rb"#qrk#([0-9]{1,18})\n")
_LENGTH = re.compile(rb"([0-9]{1,9}):")
_MAXIMUM_ENTROPY, _MEMM = 0, 1


@dataclass
class _Cursor:
    """Where reading has come to."""

    data: bytes
    at: int = 0

    def match(self, pattern: re.Pattern[bytes]) -> tuple[bytes | None, ...]:
        """The groups of what must stand here."""
        found = pattern.match(self.data, self.at)
        if found is None:
            raise CorruptModel(f"Byte {self.at} of the file is not where Wapiti would have put it")
        self.at = found.end()
        return found.groups()

    def number(self, pattern: re.Pattern[bytes]) -> int:
        """The number that must stand here."""
        return int(self.match(pattern)[-1] or 0)

    def strings(self, count: int) -> list[str]:
        """So many strings with their lengths before them."""
        out = []
        for _ in range(count):
            length = self.number(_LENGTH)
            end = self.at + length
            if self.data[end : end + 2] != b",\n":
                raise CorruptModel(f"The string at byte {self.at} of the file is not as long as it says")
            out.append(decoded(self.data[self.at : end]))
            self.at = end + 2
        return out


def read(path: Path) -> Model:
    """The model of a file, or Invalid."""
    cursor = _Cursor(path.read_bytes())
    kind, count = cursor.match(_MODEL)
    if kind is not None and int(kind) not in (_MAXIMUM_ENTROPY, 2):
        raise CorruptModel(
            "Models that Wapiti trained as MEMM cannot be read: each of their tokens is normalised"
        )
    patterns = cursor.strings(cursor.number(_READER))
    if not patterns:
        raise CorruptModel("The file has no patterns: how its observations were made is not known")
    if len(set(patterns)) < len(patterns):
        raise CorruptModel("A pattern of the file is there twice")
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
) -> Weighed:
    """Lay out the weights; an observation of both kinds is two texts, one of each."""
    every: list[str] = []
    pairs: list[bool] = []
    for text in texts:
        if text[:1] not in ("u", "b", "*"):
            raise CorruptModel(f"{text[:80]!r} is no observation: it begins with neither u, b nor *")
        kinds = {"u": (False,), "b": (True,), "*": (False, True)}[text[0]]
        every += [text] * len(kinds)
        pairs += kinds
    of_pairs = np.array(pairs, np.bool_)
    sizes = np.where(of_pairs, labels * labels, labels).astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])[:-1]
    return Weighed(every, starts, of_pairs, places, weights)


def _weights(part: bytes, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    lines = part.split()
    if len(lines) != count:
        raise CorruptModel(f"The file should have {count} weights; it has {len(lines)}")
    places, weights = np.empty(count, np.int64), np.empty(count)
    for i, line in enumerate(lines):
        place, _, value = line.partition(b"=")
        try:
            places[i], weights[i] = int(place), float.fromhex(value.decode("ascii"))
        except (ValueError, OverflowError):
            raise CorruptModel(f"{line[:40]!r} is not a weight: its place, = and a number") from None
    if count and (places[0] < 0 or (np.diff(places) <= 0).any()):
        raise CorruptModel("The weights of the file are not in the order of their places")
    return places, weights
