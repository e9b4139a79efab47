"""The exact k best labellings of one chain.

For each token and label, the kernel keeps the k best prefixes that end there, best first (Seshadri and Sundberg 1994,
"List Viterbi decoding algorithms with applications", section III: the parallel form). The prefixes of the previous
token are sorted too. So the list of a label is a merge of one list per previous label: take the best head, k times.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import inlined, kernel
from tagsmith.core.inference.chain import Floats
from tagsmith.core.inference.constraints import IMPOSSIBLE


class Lists(NamedTuple):
    """Scratch for the k best labellings of chains of up to `rows` tokens. Odd and even tokens use alternate lists."""

    scores: NDArray[np.float64]  # (2 * Y * k,) scores of the best prefixes that end in each label
    counts: NDArray[np.int64]  # (2 * Y,) length of each list
    origins: NDArray[np.int32]  # (rows * Y * k,) predecessor of each prefix: label * k + list index
    heads: NDArray[np.float64]  # (Y,) score of the next prefix per previous label, plus the edge
    cursors: NDArray[np.int64]  # (Y,) index of that prefix in its list


def lists(rows: int, labels: int, k: int) -> Lists:
    """Allocate scratch for chains of up to `rows` tokens."""
    return Lists(
        np.empty(2 * labels * k, np.float64),
        np.empty(2 * labels, np.int64),
        np.empty(rows * labels * k, np.int32),
        np.empty(labels, np.float64),
        np.empty(labels, np.int64),
    )


@inlined
def _set_head(s: Lists, before: int, i: int, k: int, labels: int, edge: float) -> None:
    """Load the next prefix in the list of label i. At the end of the list, load a score that never wins."""
    at = s.cursors[i]
    s.heads[i] = (
        s.scores[(before * labels + i) * k + at] + edge
        if at < s.counts[before * labels + i]
        else 2 * IMPOSSIBLE
    )


@inlined
def _best_head(s: Lists, labels: int) -> int:
    """Return the label with the best head, the lowest in a tie; -1 if no list has an allowed prefix left."""
    best = 0
    for i in range(1, labels):
        if s.heads[i] > s.heads[best]:
            best = i
    return best if s.heads[best] > IMPOSSIBLE else -1


@kernel
def nbest(
    scores: Floats, n: int, transitions: Floats, step: int, labels: int, width: int, s: Lists,
    paths: NDArray[np.int32], begin: int, totals: NDArray[np.float64], sentence: int,
) -> int:  # fmt: skip
    """Write the best labellings to the rows of `paths`, best first, and their scores to `totals`; return their number.

    Row r of `paths` holds the labels of the chain from `begin` on. `totals` has one row of k scores per sentence. The
    result has fewer than k labellings if no more are allowed. The transitions into token t start at t * step. In a tie,
    the labelling with the lower label at the last differing token comes first.
    """
    k = totals.shape[1]
    for y in range(labels):
        s.scores[y * k] = scores[y]
        s.counts[y] = 1 if scores[y] > IMPOSSIBLE else 0
    for t in range(1, n):
        before, here = (t - 1) % 2, t % 2
        for y in range(labels):
            into, list_at = t * step + y, (here * labels + y) * k
            for i in range(labels):
                s.cursors[i] = 0
                _set_head(s, before, i, k, labels, float(transitions[into + i * width]))
            count = 0
            while count < k:
                i = _best_head(s, labels)
                if i < 0:
                    break
                total = s.heads[i] + float(scores[t * width + y])
                if total <= IMPOSSIBLE:
                    break
                s.scores[list_at + count] = total
                s.origins[(t * labels + y) * k + count] = i * k + s.cursors[i]
                count += 1
                s.cursors[i] += 1
                _set_head(s, before, i, k, labels, float(transitions[into + i * width]))
            s.counts[here * labels + y] = count
    last = (n - 1) % 2
    for i in range(labels):
        s.cursors[i] = 0
        _set_head(s, last, i, k, labels, 0.0)
    found = 0
    while found < k:
        y = _best_head(s, labels)
        if y < 0:
            break
        totals[sentence, found] = s.heads[y]
        _trace(s, n, labels, k, y, s.cursors[y], paths, found, begin)
        found += 1
        s.cursors[y] += 1
        _set_head(s, last, y, k, labels, 0.0)
    return found


@inlined
def _trace(
    s: Lists, n: int, labels: int, k: int, y: int, place: int, paths: NDArray[np.int32], row: int, begin: int
) -> None:
    """Trace one path back from its last label and its index in the list of that label."""
    for t in range(n - 1, -1, -1):
        paths[row, begin + t] = y
        if t > 0:
            origin = s.origins[(t * labels + y) * k + place]
            y, place = origin // k, origin % k
