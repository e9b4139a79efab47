"""The k best labellings of a chain against brute force over every labelling."""

from itertools import pairwise

import numpy as np
import pytest

from tagsmith.core.base import simd as v
from tagsmith.core.inference import constraints as co
from tagsmith.core.inference import nbest as nb
from tagsmith.core.inference.chain import viterbi
from tests import naive

SHAPES = [(1, 1), (1, 4), (2, 2), (3, 3), (5, 3), (6, 2), (4, 5), (3, 9)]


def _rows(matrix: np.ndarray, width: int) -> np.ndarray:
    out = np.zeros((len(matrix), width), np.float32)
    out[:, : matrix.shape[1]] = matrix
    return out.reshape(-1)


def _nbest(
    emissions: np.ndarray, transitions: np.ndarray, k: int, allowed: co.Allowed | None = None
) -> list[tuple[tuple[int, ...], float]]:
    n, labels = emissions.shape
    width = v.padded(labels)
    own = transitions.ndim == 3
    scores, matrices = _rows(emissions, width), _rows(transitions.reshape(-1, labels), width)
    if allowed is not None:
        co.restrict(scores, n, allowed, 0, labels, width)
        if own:
            co.restrict_edges(matrices, n, allowed)
        else:
            matrices += allowed.pairs
    paths, totals = np.full((k, n), -1, np.int32), np.zeros((1, k))
    found = nb.nbest(
        scores, n, matrices, labels * width * own, labels, width, nb.lists(n, labels, k), paths, 0, totals, 0
    )
    return [(tuple(paths[r].tolist()), float(totals[0, r])) for r in range(found)]


def _random(seed: int, n: int, labels: int, own: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shape = (n, labels, labels) if own else (labels, labels)
    return (
        rng.normal(0, 1.5, (n, labels)).astype(np.float32).astype(float),
        rng.normal(0, 1.5, shape).astype(np.float32).astype(float),
    )


@pytest.mark.parametrize("own", [False, True], ids=["shared", "rich"])
@pytest.mark.parametrize(("n", "labels"), SHAPES)
def test_the_list_equals_enumeration(n: int, labels: int, own: bool) -> None:
    for seed, k in enumerate((1, 2, 7, 100)):
        emissions, transitions = _random(seed, n, labels, own)
        found = _nbest(emissions, transitions, k)
        expected = naive.nbest(emissions, transitions, k)
        assert [path for path, _ in found] == [path for path, _ in expected]
        totals = [naive.score(emissions, transitions, path) for path, _ in expected]
        np.testing.assert_allclose([total for _, total in found], totals, rtol=1e-12)


@pytest.mark.parametrize("own", [False, True], ids=["shared", "rich"])
def test_under_constraints_the_list_has_what_is_allowed_and_ends_with_it(own: bool) -> None:
    n, labels = 5, 3
    emissions, transitions = _random(3, n, labels, own)
    allowed = co.anything(labels)
    pairs = allowed.pairs.reshape(labels, -1)
    pairs[0, 1] = pairs[2, 2] = co.NEVER
    allowed.first[1] = allowed.last[0] = co.NEVER
    allowed = allowed._replace(fixed=np.array([-1, 2, -1, -1, -1], np.int32))

    def keep(path: tuple[int, ...]) -> bool:
        steps = set(pairwise(path))
        return not steps & {(0, 1), (2, 2)} and path[0] != 1 and path[-1] != 0 and path[1] == 2

    expected = naive.nbest(emissions, transitions, 1000, keep)
    assert 5 < len(expected) < 50
    assert [path for path, _ in _nbest(emissions, transitions, 100, allowed)] == [p for p, _ in expected]


def test_nothing_is_found_where_nothing_is_allowed() -> None:
    allowed = co.anything(2)
    allowed.pairs[:] = co.NEVER
    emissions, transitions = _random(1, 3, 2, False)
    assert _nbest(emissions, transitions, 5, allowed) == []


def test_equals_come_in_the_order_of_their_labels_from_the_end() -> None:
    zero = np.zeros((3, 2))
    found = _nbest(zero, np.zeros((2, 2)), 8)
    assert [path for path, _ in found] == [path for path, _ in naive.nbest(zero, np.zeros((2, 2)), 8)]
    out = np.empty(3, np.int32)
    viterbi(np.zeros(24, np.float32), 3, np.zeros(16, np.float32), 0, 2, 8, out, 0)
    assert found[0][0] == tuple(out.tolist())
