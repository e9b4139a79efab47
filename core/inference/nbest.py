"""The k best labellings of one chain, exactly.

For every token and label the k best prefixes that end there are kept, best first (Seshadri and Sundberg 1994, "List
Viterbi decoding algorithms with applications", section III: the parallel form). Prefixes of the token before are in
order too, so those of a label are merged from one list a label before it: the best of the heads, k times.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference.chain import Floats
from core.inference.constraints import IMPOSSIBLE
from core.jit import inlined, kernel


class Lists(NamedTuple):
    """Scratch for the k best of chains of up to so many tokens. Lists of odd and even tokens take turns."""

    scores: NDArray[np.float64]  # (2 * Y * k,) of the best prefixes that end in each label
    counts: NDArray[np.int64]  # (2 * Y,) how many of these there are
    origins: NDArray[np.int32]  # (rows * Y * k,) what each prefix goes on from: label * k + place in its list
    heads: NDArray[
        np.float64
    ]  # (Y,) the next of each list of the token before, with the edge to the label at hand
    cursors: NDArray[np.int64]  # (Y,) the place of that


def lists(rows: int, labels: int, k: int) -> Lists:
    """Scratch for chains of up to `rows` tokens."""
    return Lists(
        np.empty(2 * labels * k, np.float64),
        np.empty(2 * labels, np.int64),
        np.empty(rows * labels * k, np.int32),
        np.empty(labels, np.float64),
        np.empty(labels, np.int64),
    )


@inlined
def _set_head(s: Lists, before: int, i: int, k: int, labels: int, edge: float) -> None:
    """The next prefix in the list of label i, or one that never wins when the list has ended."""
    at = s.cursors[i]
    s.heads[i] = (
        s.scores[(before * labels + i) * k + at] + edge
        if at < s.counts[before * labels + i]
        else 2 * IMPOSSIBLE
    )


@inlined
def _best_head(s: Lists, labels: int) -> int:
    """The label whose head is best, of equals the lowest; -1 when no list has anything left that is allowed."""
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
    """Fill the rows of `paths` with the best labellings, best first, and `totals` with their scores; returns how many.

    Row r of `paths` has the labels of the chain from `begin` on; `totals` has a row of k for each sentence. There are
    fewer than k when no more are allowed. Transitions into token t stand at t * step. Of equals the one with the lower
    label at the last token where they differ comes first.
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
    """Read one path back, from its last label and the place in that label's list."""
    for t in range(n - 1, -1, -1):
        paths[row, begin + t] = y
        if t > 0:
            origin = s.origins[(t * labels + y) * k + place]
            y, place = origin // k, origin % k
