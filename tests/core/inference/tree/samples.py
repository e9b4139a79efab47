"""Scores to test the tree kernels with, and calls of the kernels that allocate."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from tagsmith.core.inference.tree.scratch import TreeScratch, tree_scratch

#: A score that forbids an arc.
NEVER = -1e30


def _normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 1.5, (n + 1, n + 1))


def _integers(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(-2, 3, (n + 1, n + 1)).astype(float)


def _hundreds(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 200, (n + 1, n + 1))


def _offset(rng: np.random.Generator, n: int) -> np.ndarray:
    """Scores of arcs into one word differ little, scores of different words by hundreds."""
    return rng.normal(0, 1, (n + 1, n + 1)) + rng.normal(0, 500, n + 1)


def _cycles(rng: np.random.Generator, n: int) -> np.ndarray:
    """Pairs of words that choose each other, far above all other arcs."""
    scores = rng.normal(0, 1, (n + 1, n + 1))
    for m in range(2, n + 1, 2):
        gap = rng.choice([50, 300, 700, 1000])
        scores[m - 1, m] += gap
        scores[m, m - 1] += gap
    return scores


def _dominated(rng: np.random.Generator, n: int) -> np.ndarray:
    """One tree far above all others: a chain of words in random order below one root."""
    scores = rng.normal(0, 1, (n + 1, n + 1))
    order = [0, *(rng.permutation(n) + 1)]
    for h, m in pairwise(order):
        scores[h, m] += rng.choice([50, 300, 700])
    return scores


def _forbidden(rng: np.random.Generator, n: int) -> np.ndarray:
    """Half of the arcs are forbidden, but at least one projective tree with one root is allowed."""
    scores = rng.normal(0, 1.5, (n + 1, n + 1))
    scores[rng.random(scores.shape) < 0.5] = NEVER
    root = rng.integers(1, n + 1)
    scores[0, root] = rng.normal()
    for m in range(1, n + 1):
        if m != root:
            scores[m + 1 if m < root else m - 1, m] = rng.normal()
    return scores


SCORES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": _normal,
    "integers": _integers,
    "hundreds": _hundreds,
    "offset": _offset,
    "cycles": _cycles,
    "dominated": _dominated,
    "forbidden": _forbidden,
}


def sample(kind: str, n: int, seed: int) -> np.ndarray:
    """Scores of that kind. What is not an arc is not a number, which no kernel may read."""
    scores = SCORES[kind](np.random.default_rng([seed, n]), n)
    scores[:, 0] = np.nan
    np.fill_diagonal(scores, np.nan)
    return scores


def decoded(kernel, scores: np.ndarray, single_root: bool, scratch: TreeScratch | None = None):
    """The score that a decoder returns, and the heads."""
    heads = np.full(len(scores), 99, np.int32)
    top = kernel(scores, single_root, scratch or tree_scratch(len(scores) - 1), heads)
    assert heads[0] == -1
    return top, tuple(heads.tolist())


def summed(kernel, scores: np.ndarray, single_root: bool, scratch: TreeScratch | None = None):
    """The log Z that a kernel returns, and the marginals."""
    out = np.full_like(scores, np.nan)
    return kernel(scores, single_root, scratch or tree_scratch(len(scores) - 1), out), out
