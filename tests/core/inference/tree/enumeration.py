"""Every dependency tree of a short sentence, and sums over them: the slow, obvious twin of the tree kernels."""

from functools import cache
from itertools import product

import numpy as np

Heads = tuple[int, ...]  # the head of each word, after -1 for the root


def ancestors(heads: Heads, word: int) -> list[int]:
    """The words above a word and the root, from below; they end early if they come back to the word."""
    above = []
    while word != 0 and len(above) <= len(heads):
        word = heads[word]
        above.append(word)
    return above


def is_tree(heads: Heads) -> bool:
    """Whether every word is below the root."""
    return all(ancestors(heads, word)[-1] == 0 for word in range(1, len(heads)))


def is_projective(heads: Heads) -> bool:
    """Whether all words between a head and its modifier are below the head."""
    return all(
        heads[m] in ancestors(heads, between)
        for m in range(1, len(heads))
        for between in range(min(heads[m], m) + 1, max(heads[m], m))
    )


def obeys(heads: Heads, single_root: bool) -> bool:
    roots = heads[1:].count(0)
    return roots == 1 if single_root else roots >= 1


@cache
def trees(n: int, single_root: bool, projective: bool) -> np.ndarray:
    """All trees of n words, (trees, n + 1)."""
    found = [
        heads
        for chosen in product(range(n + 1), repeat=n)
        if is_tree(heads := (-1, *chosen))
        and obeys(heads, single_root)
        and (not projective or is_projective(heads))
    ]
    return np.array(found)


def score(scores: np.ndarray, heads) -> float:
    return float(sum(scores[heads[m], m] for m in range(1, len(heads))))


def totals(scores: np.ndarray, every: np.ndarray) -> np.ndarray:
    """The score of each tree."""
    return sum(scores[every[:, m], m] for m in range(1, len(scores)))


def log_z(scores: np.ndarray, every: np.ndarray) -> float:
    each = totals(scores, every)
    return float(each.max() + np.log(np.exp(each - each.max()).sum()))


def marginals(scores: np.ndarray, every: np.ndarray) -> np.ndarray:
    each = totals(scores, every)
    p = np.exp(each - each.max())
    p /= p.sum()
    out = np.zeros_like(scores)
    for m in range(1, len(scores)):
        np.add.at(out[:, m], every[:, m], p)
    return out
