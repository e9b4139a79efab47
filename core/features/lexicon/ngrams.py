"""Statistics of the character n-grams of raw text.

Accessor variety (Feng, Chen, Deng and Zheng 2004) is the number of distinct characters before (left) or after (right) a
string. Each edge of a line counts as a distinct character. A string with high variety is more likely a word. Pointwise
mutual information of n characters is log2 p(c1...cn) / (p(c1) ... p(cn)). Sun and Xu (2011) use both as features for
segmentation. Here they are binned: the variety by powers of two, the information to whole bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids

Measure = Literal["left-variety", "right-variety", "information"]

#: The most distinct characters in n-grams: enough for any script, and four of them fit into 64 bits.
MAX_CHARACTERS = 32_000
#: Rarer n-grams have no meaningful statistics.
LEAST = 2
#: The highest bin of information, in bits. Bin 0 is chance level.
MAX_BITS = 24

_EDGE = 0  # the code of a line break


@dataclass(frozen=True, eq=False)
class Ngrams:
    """The n-grams of a text, and their bins."""

    characters: list[str]
    ids: Ids  # (n-grams, n) indexes into `characters`
    bins: Ids  # (n-grams,)


def ngrams_of(lines: Sequence[str], n: int, measure: Measure) -> Ngrams:
    """The n-grams that occur at least `LEAST` times, binned by a measure."""
    text = np.frombuffer(("\n" + "\n".join(lines) + "\n").encode("utf-32-le", "surrogatepass"), np.uint32)
    known, codes, frequency = _numbered(text)
    places = _places(codes, n)
    keys = np.zeros(len(places), np.int64)
    for k in range(n):
        keys = keys * (MAX_CHARACTERS + 1) + codes[places + k]
    distinct, number, counts = np.unique(keys, return_inverse=True, return_counts=True)
    kept = np.flatnonzero(counts >= LEAST)
    if measure == "information":
        bins = _information(distinct, counts, n, frequency, int(np.count_nonzero(codes != _EDGE)))
    else:
        beside = codes[places - 1] if measure == "left-variety" else codes[places + n]
        bins = np.log2(_variety(number, beside, len(distinct))).astype(np.int64)
    ids = np.stack([_digit(distinct[kept], n - 1 - k) - 1 for k in range(n)], axis=1)
    return Ngrams([chr(code) for code in known.tolist()], ids.astype(np.int32), bins[kept].astype(np.int32))


def _numbered(
    text: NDArray[np.uint32],
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """The most frequent characters, the text coded by them from 1 on (0 for edges and other characters), and counts."""
    distinct, inverse, counts = np.unique(text, return_inverse=True, return_counts=True)
    usable = np.flatnonzero(~np.isin(distinct, [9, 10, 13, 32, 0x3000]))
    chosen = np.sort(usable[np.argsort(-counts[usable], kind="stable")][:MAX_CHARACTERS])
    number = np.zeros(len(distinct), np.int64)
    number[chosen] = np.arange(1, len(chosen) + 1)
    frequency = np.concatenate([np.zeros(1, np.int64), counts[chosen]])
    return distinct[chosen], number[inverse], frequency


def _places(codes: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The starts of n consecutive characters without an edge among them."""
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(codes == _EDGE)])
    starts = np.arange(max(0, len(codes) - n + 1))
    return np.flatnonzero(edges[starts + n] == edges[starts])


def _digit(keys: NDArray[np.int64], place: int) -> NDArray[np.int64]:
    """The character at `place`, counted from the end of the n-gram."""
    digits: NDArray[np.int64] = keys // (MAX_CHARACTERS + 1) ** place % (MAX_CHARACTERS + 1)
    return digits


def _variety(number: NDArray[np.int64], beside: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The number of distinct characters beside each n-gram, plus the number of edges."""
    inside = beside != _EDGE
    pairs = np.unique(number[inside] * (MAX_CHARACTERS + 1) + beside[inside])
    variety = np.bincount(pairs // (MAX_CHARACTERS + 1), minlength=size)
    whole: NDArray[np.int64] = np.maximum(variety + np.bincount(number[~inside], minlength=size), 1)
    return whole


def _information(
    distinct: NDArray[np.int64], counts: NDArray[np.int64], n: int, frequency: NDArray[np.int64], total: int
) -> NDArray[np.int64]:
    """log2 p(c1...cn) / (p(c1) ... p(cn)), in whole bits."""
    bits = np.log2(counts / counts.sum())
    for k in range(n):
        bits -= np.log2(frequency[_digit(distinct, k)] / total)
    whole: NDArray[np.int64] = np.clip(np.rint(bits), 0, MAX_BITS).astype(np.int64)
    return whole
