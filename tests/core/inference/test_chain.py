"""The chain kernels against brute force over every labelling."""

import numpy as np
import pytest

from tagsmith.core.base import simd as v
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference import log_chain
from tests import naive

SHAPES = [(1, 1), (1, 4), (2, 2), (3, 3), (5, 3), (6, 2), (4, 5), (3, 9)]


def _random(seed: int, n: int, labels: int, spread: float = 1.5):
    rng = np.random.default_rng(seed)
    return rng.normal(0, spread, (n, labels)), rng.normal(0, spread, (labels, labels))


def _rows(matrix: np.ndarray, width: int, dtype: type) -> np.ndarray:
    out = np.zeros((len(matrix), width), dtype)
    out[:, : matrix.shape[1]] = matrix
    return out.reshape(-1)


def _prepared(emissions, transitions, dtype):
    n, labels = emissions.shape
    width = v.padded(labels)
    e, c = ch.edges(labels, dtype), ch.chain(n, labels, dtype)
    e.scores[:] = _rows(transitions, width, dtype)
    c.psi[:] = _rows(emissions, width, dtype)
    return e, c, ch.set_edges(labels, width, e), width


def _posterior(emissions, transitions, dtype):
    n, labels = emissions.shape
    e, c, shift, width = _prepared(emissions, transitions, dtype)
    shifts = ch.exponentiate(c, 0, n, e, shift, labels, width)
    log_z = ch.forward(c, 0, n, e, labels, width) + shifts
    ch.backward(c, 0, n, e, labels, width)
    ch.add_pairs(c, 0, n, e, labels, width)
    return log_z, c.beta.reshape(n, width), c.pairs.reshape(labels, width)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 3e-5)])
@pytest.mark.parametrize(("n", "labels"), SHAPES)
def test_forward_backward_equals_enumeration(n, labels, dtype, tolerance):
    for seed in range(3):
        emissions, transitions = _random(seed, n, labels)
        log_z, tokens, pairs = _posterior(emissions, transitions, dtype)
        expected_tokens, expected_pairs = naive.marginals(emissions, transitions)
        assert log_z == pytest.approx(naive.log_z(emissions, transitions), rel=tolerance, abs=tolerance)
        np.testing.assert_allclose(tokens[:, :labels], expected_tokens, atol=tolerance)
        np.testing.assert_allclose(pairs[:, :labels], expected_pairs.sum(axis=0), atol=tolerance)
        assert not tokens[:, labels:].any()
        assert not pairs[:, labels:].any()


@pytest.mark.parametrize(("n", "labels"), SHAPES)
def test_log_space_equals_enumeration(n, labels):
    emissions, transitions = _random(11, n, labels)
    e, c, _, width = _prepared(emissions, transitions, np.float64)
    log_z = log_chain.log_forward(c, 0, n, e, labels, width)
    log_chain.log_backward(c, 0, n, e, True, labels, width)
    expected_tokens, expected_pairs = naive.marginals(emissions, transitions)
    assert log_z == pytest.approx(naive.log_z(emissions, transitions), rel=1e-12)
    np.testing.assert_allclose(c.beta.reshape(n, width)[:, :labels], expected_tokens, atol=1e-11)
    np.testing.assert_allclose(
        c.pairs.reshape(labels, width)[:, :labels], expected_pairs.sum(axis=0), atol=1e-11
    )


def test_log_space_in_float32_leaves_nothing_in_the_padding():
    """Scores far apart, as they are when chains come here; the padding holds what an earlier chain left."""
    emissions, transitions = (40.0 * x for x in _random(12, 6, 5))
    e, c, _, width = _prepared(emissions, transitions, np.float32)
    c.alpha[:] = c.beta[:] = 7.0
    log_z = log_chain.log_forward(c, 0, 6, e, 5, width)
    log_chain.log_backward(c, 0, 6, e, True, 5, width)
    expected_tokens, expected_pairs = naive.marginals(emissions, transitions)
    tokens, pairs = c.beta.reshape(6, width), c.pairs.reshape(5, width)
    assert log_z == pytest.approx(naive.log_z(emissions, transitions), rel=1e-6)
    np.testing.assert_allclose(tokens[:, :5], expected_tokens, atol=1e-4)
    np.testing.assert_allclose(pairs[:, :5], expected_pairs.sum(axis=0), atol=1e-4)
    assert not tokens[:, 5:].any()
    assert not pairs[:, 5:].any()


def test_log_space_keeps_its_digits_when_scores_are_huge():
    """The sum of the scores of 60 tokens has no digits left in float32 for what differs; marginals must have."""
    emissions, transitions = _random(13, 60, 5)
    emissions += 1e6 * np.random.default_rng(5).normal(size=(60, 1))
    found = {}
    for dtype in (np.float32, np.float64):
        e, c, _, width = _prepared(emissions, transitions, dtype)
        log_z = log_chain.log_forward(c, 0, 60, e, 5, width)
        log_chain.log_backward(c, 0, 60, e, True, 5, width)
        found[dtype] = log_z, c.beta.reshape(60, width)[:, :5], c.pairs.reshape(5, width)[:, :5]
    (log_z, tokens, pairs), (exact_z, exact_tokens, _) = found[np.float32], found[np.float64]
    assert log_z == pytest.approx(exact_z, rel=1e-6)
    np.testing.assert_allclose(tokens.sum(axis=1), 1.0, atol=1e-5)
    assert pairs.sum() == pytest.approx(59, rel=1e-5)
    # Scores of a million are given to a sixteenth.
    np.testing.assert_allclose(tokens, exact_tokens, atol=0.05)


def _best_path_vanishes(dtype):
    """The best path goes through a label 100 below another, which pays for it later, a little at each token."""
    emissions, transitions = np.zeros((6, 2)), np.zeros((2, 2))
    emissions[0] = [0.0, -100.0]
    transitions[0, 0], transitions[0, 1] = -30.0, -60.0
    return _prepared(emissions, transitions, dtype), emissions, transitions


def test_a_path_that_vanishes_in_float32_is_noticed():
    (e, c, shift, width), _, _ = _best_path_vanishes(np.float32)
    assert not _kept(e, c, shift, 6, 2, width)


def test_in_float64_the_same_path_is_kept():
    (e, c, shift, width), emissions, transitions = _best_path_vanishes(np.float64)
    shifts = ch.exponentiate(c, 0, 6, e, shift, 2, width)
    assert ch.forward(c, 0, 6, e, 2, width) + shifts == pytest.approx(naive.log_z(emissions, transitions))


def _kept(e, c, shift, n, labels, width):
    if np.isnan(ch.exponentiate(c, 0, n, e, shift, labels, width)):
        return False
    ch.forward(c, 0, n, e, labels, width)
    ch.backward(c, 0, n, e, labels, width)
    return ch.kept(c, 0, n, e, width)


def _worst(n: int, labels: int, tokens: float, edges: float, seed: int):
    """Random scores of which some lie exactly so far apart."""
    rng = np.random.default_rng(seed)
    emissions = -tokens * rng.integers(0, 2, (n, labels)).astype(float)
    transitions = -edges * rng.integers(0, 2, (labels, labels)).astype(float)
    return emissions, transitions


@pytest.mark.parametrize("tokens", [4.5, 21.0, 42.0, 60.0, 84.0, 100.0, 1000.0])
@pytest.mark.parametrize("edges", [0.5, 27.0, 35.0, 42.0, 60.0, 84.0])
def test_a_chain_that_is_kept_has_lost_nothing(tokens, edges):
    kept = 0
    with np.errstate(all="ignore"):
        for seed in range(40):
            emissions, transitions = _worst(7, 3, tokens, edges, seed)
            e, c, shift, width = _prepared(emissions, transitions, np.float32)
            if not _kept(e, c, shift, 7, 3, width):
                continue
            kept += 1
            log_z, found, pairs = _posterior(emissions, transitions, np.float32)
            expected_tokens, expected_pairs = naive.marginals(emissions, transitions)
            assert log_z == pytest.approx(naive.log_z(emissions, transitions), rel=1e-5, abs=1e-4)
            np.testing.assert_allclose(found[:, :3], expected_tokens, atol=1e-4)
            np.testing.assert_allclose(pairs[:, :3], expected_pairs.sum(axis=0), atol=1e-3)
    # However far apart the scores of tokens, transitions this near leave nothing to chance.
    assert kept == 40 or edges > 27


def test_near_transitions_are_proof_enough_whatever_the_tokens():
    emissions, transitions = _worst(7, 3, 1e6, 27.0, 1)
    e, c, shift, width = _prepared(emissions, transitions, np.float32)
    assert ch.surely_kept(e)
    assert not np.isnan(ch.exponentiate(c, 0, 7, e, shift, 3, width))


def test_sums_that_vanish_or_overflow_are_noticed():
    """Each token's best label is out of reach of the one before: sums of e^-60, and V of e^60 where they meet again."""
    emissions = np.array([[0.0, -70.0], [-70.0, 0.0], [0.0, -70.0]])
    transitions = np.array([[0.0, -60.0], [-60.0, 0.0]])
    e, c, shift, width = _prepared(emissions, transitions, np.float32)
    assert not _kept(e, c, shift, 3, 2, width)
    e, c, shift, width = _prepared(emissions / 4, transitions / 4, np.float32)
    assert _kept(e, c, shift, 3, 2, width)


def test_transitions_as_far_apart_as_numbers_reach_are_left_to_log_space():
    emissions, transitions = np.zeros((3, 2)), np.zeros((2, 2))
    transitions[1, 0] = -86.0
    e, c, shift, width = _prepared(emissions, transitions, np.float32)
    assert np.isnan(ch.exponentiate(c, 0, 3, e, shift, 2, width))


@pytest.mark.parametrize(("n", "labels"), SHAPES)
def test_viterbi_finds_the_best_labelling(n, labels):
    for seed in range(3):
        emissions, transitions = _random(seed, n, labels)
        width = v.padded(labels)
        scores, out = _rows(emissions, width, np.float64), np.zeros(n, np.int32)
        top = ch.viterbi(scores, n, _rows(transitions, width, np.float64), 0, labels, width, out, 0)
        expected = naive.best(emissions, transitions)
        assert tuple(out) == expected
        assert top == pytest.approx(naive.score(emissions, transitions, expected))


def test_viterbi_breaks_ties_towards_the_lower_label():
    scores, out = np.zeros(3 * 8), np.full(3, -1, np.int32)
    ch.viterbi(scores, 3, np.zeros(16), 0, 2, 8, out, 0)
    assert out.tolist() == [0, 0, 0]


#: Rows before the chain in its scratch, as when it is not the first of a batch.
AT = 2


def _rich(seed: int, n: int, labels: int, dtype: type, spread: float = 1.5):
    """Scores, a matrix of transitions into each token, and a chain that holds them from row AT on."""
    rng = np.random.default_rng(seed)
    emissions, matrices = rng.normal(0, spread, (n, labels)), rng.normal(0, spread, (n, labels, labels))
    width = v.padded(labels)
    c = ch.chain(AT + n, labels, dtype, rich=True)
    c.psi.reshape(-1, width)[AT:, :labels] = emissions
    c.matrices.reshape(-1, labels, width)[AT:, :, :labels] = matrices
    return emissions, matrices, c, ch.edges_of_tokens(ch.edges(labels, dtype), c, labels, width), width


def _check_rich(c, emissions, matrices, width, tolerance):
    n, labels = emissions.shape
    tokens, pairs = naive.marginals(emissions, matrices)
    found = c.matrices.reshape(-1, labels, width)[AT:]
    np.testing.assert_allclose(c.beta.reshape(-1, width)[AT:, :labels], tokens, atol=tolerance)
    np.testing.assert_allclose(found[1:, :, :labels], pairs[1:], atol=tolerance)
    np.testing.assert_allclose(
        c.pairs.reshape(labels, width)[:, :labels], pairs.sum(axis=0), atol=n * tolerance
    )
    assert not found[1:, :, labels:].any()
    assert not c.beta.reshape(-1, width)[AT:, labels:].any()


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 3e-5)])
@pytest.mark.parametrize(("n", "labels"), [*SHAPES, (3, 8), (2, 17)])
def test_with_transitions_of_each_token_forward_backward_equals_enumeration(n, labels, dtype, tolerance):
    emissions, matrices, c, e, width = _rich(n, n, labels, dtype)
    gold = np.arange(n, dtype=np.int32) % labels
    score = ch.gold_score(c.psi, AT, gold, 0, n, e, width)
    assert score == pytest.approx(naive.score(emissions, matrices, gold), rel=tolerance)
    shifts = ch.exponentiate(c, AT, n, e, 0.0, labels, width)
    log_z = ch.forward(c, AT, n, e, labels, width) + shifts
    ch.backward(c, AT, n, e, labels, width)
    ch.add_pairs(c, AT, n, e, labels, width)
    assert log_z == pytest.approx(naive.log_z(emissions, matrices), rel=tolerance, abs=tolerance)
    _check_rich(c, emissions, matrices, width, tolerance)


@pytest.mark.parametrize(
    ("dtype", "spread", "tolerance"), [(np.float64, 1.5, 1e-11), (np.float32, 40.0, 1e-4)]
)
@pytest.mark.parametrize(("n", "labels"), [*SHAPES, (3, 8)])
def test_with_transitions_of_each_token_log_space_equals_enumeration(n, labels, dtype, spread, tolerance):
    emissions, matrices, c, e, width = _rich(n + 20, n, labels, dtype, spread)
    log_z = log_chain.log_forward(c, AT, n, e, labels, width)
    log_chain.log_backward(c, AT, n, e, True, labels, width)
    assert log_z == pytest.approx(naive.log_z(emissions, matrices), rel=1e-6)
    _check_rich(c, emissions, matrices, width, tolerance)


@pytest.mark.parametrize(("n", "labels"), [*SHAPES, (2, 25)])
def test_with_transitions_of_each_token_viterbi_finds_the_best_labelling(n, labels):
    for seed in range(3):
        emissions, matrices, _, _, width = _rich(seed, n, labels, np.float64)
        padded = np.zeros((n, labels, width))
        padded[:, :, :labels] = matrices
        scores, out = _rows(emissions, width, np.float64), np.zeros(n, np.int32)
        top = ch.viterbi(scores, n, padded.reshape(-1), labels * width, labels, width, out, 0)
        expected = naive.best(emissions, matrices)
        assert tuple(out) == expected
        assert top == pytest.approx(naive.score(emissions, matrices, expected))


def test_transitions_of_each_token_that_lie_too_far_apart_are_noticed():
    _, _, c, e, width = _rich(3, 4, 3, np.float32)
    c.matrices.reshape(-1, 3, width)[AT + 2, 1, 2] -= 90.0
    assert np.isnan(ch.exponentiate(c, AT, 4, e, 0.0, 3, width))
