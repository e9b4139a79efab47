"""Sweeps over long vectors: against numpy, and the same bits on any number of threads."""

from itertools import pairwise

import numpy as np
import pytest

from tagsmith.core.base.thread_pool import ThreadPool
from tagsmith.core.learn.trainers.batch.quasi_newton import Memory, Point
from tagsmith.core.learn.trainers.batch.vectors import PIECE, Restriction, Vectors

SIZE = 2 * PIECE + 37


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    return Vectors(SIZE, ThreadPool(1))


def _random(count: int, seed: int = 0):
    values = np.random.default_rng(seed).normal(size=(count, SIZE))
    values[np.abs(values) < 0.3] = 0.0
    return values


def test_sums_and_updates_equal_numpys(vectors):
    a, b, c, d = _random(4)
    assert vectors.dot(a, b) == pytest.approx(a @ b, rel=1e-12)
    assert vectors.norms(a) == pytest.approx((np.abs(a).sum(), a @ a), rel=1e-12)
    np.testing.assert_allclose(vectors.scaled_sum(a, 0.7, b), a + 0.7 * b, atol=1e-15)
    assert vectors.curvature(a, b, c, d) == pytest.approx(((a - b) @ (c - d), (c - d) @ (c - d)), rel=1e-10)


def test_the_pseudo_gradient_is_zero_inside_the_penalty(vectors):
    w, g = _random(2)
    at_zero = np.where(g > 0.5, g - 0.5, np.where(g < -0.5, g + 0.5, 0.0))
    expected = np.where(w == 0.0, at_zero, g + 0.5 * np.sign(w))
    np.testing.assert_array_equal(vectors.pseudo_gradient(w, g, 0.5), expected)


def test_a_trial_stays_on_its_orthant(vectors):
    w, d, steepest = _random(3)
    moved, gain = vectors.projected_sum(w, 0.9, d, steepest)
    orthant = np.where(w == 0.0, -np.sign(steepest), np.sign(w))
    expected = w + 0.9 * d
    expected[expected * orthant <= 0.0] = 0.0
    np.testing.assert_allclose(moved, expected, atol=1e-15)
    assert gain == pytest.approx((expected - w) @ steepest, rel=1e-10)


def _bends():
    return 1.0 + np.random.default_rng(5).random(SIZE)


def _units():
    return 0.5 + np.random.default_rng(6).random(SIZE)


def _filled(pairs: int, threads: int) -> Memory:
    vectors = Vectors(SIZE, ThreadPool(threads))
    memory = Memory(np.zeros((4, SIZE)), np.zeros((4, SIZE)), np.zeros(1, np.int64), _units(), vectors)
    for old, new in pairwise(_random(pairs + 1, 1)):
        memory.add(Point(old, 0.0, _bends() * old), Point(new, 0.0, _bends() * new))
    return memory


def _two_loops_on_vectors(steps, changes, q):
    """The recursion as it stands in the book, oldest pair first in the lists."""
    q, alphas = q.copy(), []
    for s, y in zip(reversed(steps), reversed(changes), strict=True):
        alphas.append((s @ q) / (s @ y))
        q -= alphas[-1] * y
    q *= (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y, alpha in zip(steps, changes, reversed(alphas), strict=True):
        q += (alpha - (y @ q) / (s @ y)) * s
    return q


def _direction(steps, gradient, chosen):
    """What the memory of `_filled` must give: the recursion on the chosen parameters, each measured in its unit."""
    units, bends = _units()[chosen], _bends()[chosen]
    scaled, q = steps[:, chosen] / units, units * gradient[chosen]
    return -units * (
        _two_loops_on_vectors(list(scaled), list(units**2 * bends * scaled), q) if len(steps) else q
    )


@pytest.mark.parametrize("pairs", [0, 1, 3, 4, 7])
def test_the_recursion_on_factors_equals_that_on_vectors(pairs):
    memory, gradient = _filled(pairs, 1), _random(1, 9)[0]
    direction, slope = memory.direction(gradient, Restriction.ALL)
    steps = np.diff(_random(pairs + 1, 1), axis=0)[-4:]
    expected = _direction(steps, gradient, np.ones(SIZE, bool))
    np.testing.assert_allclose(direction, expected, atol=1e-9)
    assert slope == pytest.approx(expected @ gradient, rel=1e-9)


def test_an_aligned_direction_only_goes_where_the_objective_falls():
    memory, gradient = _filled(5, 1), _random(1, 9)[0]
    direction, slope = memory.direction(gradient, Restriction.ALIGNED)
    assert np.all(direction * gradient <= 0.0)
    assert np.count_nonzero(direction) > SIZE // 4
    assert slope == pytest.approx(direction @ gradient, rel=1e-12)


def test_a_free_direction_is_that_of_the_parameters_with_a_gradient_alone():
    memory, gradient = _filled(3, 1), _random(1, 9)[0]
    direction, slope = memory.direction(gradient, Restriction.FREE)
    free = gradient != 0.0
    expected = _direction(np.diff(_random(4, 1), axis=0), gradient, free)
    assert 0 < np.count_nonzero(free) < SIZE
    np.testing.assert_allclose(direction[free], expected, atol=1e-9)
    assert not direction[~free].any()
    assert slope == pytest.approx(expected @ gradient[free], rel=1e-9)


def test_any_number_of_threads_gives_the_same_direction():
    gradient = _random(1, 9)[0]
    one, many = (_filled(6, threads).direction(gradient, Restriction.FREE) for threads in (1, 3))
    assert one[0].tobytes() == many[0].tobytes()
    assert one[1] == many[1]
