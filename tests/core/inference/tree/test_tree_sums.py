"""log Z and marginals of trees against enumeration and exact determinants, and what holds for trees of any size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.inference.tree.inside_outside import projective_log_z, projective_marginals
from tagsmith.core.inference.tree.matrix_tree import spanning_log_z, spanning_marginals
from tagsmith.core.inference.tree.projective import projective_tree
from tagsmith.core.inference.tree.scratch import tree_scratch
from tagsmith.core.inference.tree.spanning import spanning_tree
from tests.core.inference.tree import enumeration as every
from tests.core.inference.tree import laplacian
from tests.core.inference.tree.samples import NEVER, SCORES, decoded, sample, summed

SUMS = [
    pytest.param(spanning_marginals, spanning_log_z, False, id="spanning"),
    pytest.param(projective_marginals, projective_log_z, True, id="projective"),
]
MARGINALS = [
    pytest.param(spanning_marginals, spanning_tree, id="spanning"),
    pytest.param(projective_marginals, projective_tree, id="projective"),
]
ROOTS = pytest.mark.parametrize("single_root", [False, True], ids=["roots", "root"])
LONGEST = 60
SCRATCH = tree_scratch(LONGEST)


def _assert_distributions(marginals: np.ndarray, tolerance: float = 1e-9) -> None:
    """Each word has one head, and nothing else is an arc."""
    assert (marginals >= 0).all()
    assert (marginals <= 1).all()
    assert not marginals[:, 0].any()
    assert not np.diag(marginals).any()
    np.testing.assert_allclose(marginals[:, 1:].sum(axis=0), 1, atol=tolerance)


@pytest.mark.parametrize(("kernel", "log_z", "projective"), SUMS)
@ROOTS
@pytest.mark.parametrize("kind", SCORES)
def test_sums_equal_enumeration(kind, single_root, kernel, log_z, projective):
    for n in range(1, 7):
        for seed in range(20):
            scores = sample(kind, n, seed)
            trees = every.trees(n, single_root, projective)
            expected = every.log_z(scores, trees)
            found, marginals = summed(kernel, scores, single_root)
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
            assert log_z(scores, single_root, tree_scratch(n)) == pytest.approx(found, rel=1e-14, abs=1e-12)
            np.testing.assert_allclose(marginals, every.marginals(scores, trees), atol=1e-11)
            _assert_distributions(marginals)


@pytest.mark.parametrize(("kernel", "log_z", "projective"), SUMS)
@ROOTS
@pytest.mark.parametrize("kind", ["normal", "cycles", "forbidden"])
def test_marginals_are_the_derivatives_of_log_z(kind, single_root, kernel, log_z, projective):
    n, step = 8, 1e-4
    scores = sample(kind, n, 1)
    _, marginals = summed(kernel, scores, single_root)
    for h in range(n + 1):
        for m in range(1, n + 1):
            if h == m or scores[h, m] == NEVER:
                continue
            moved = [scores.copy() for _ in range(2)]
            moved[0][h, m] += step
            moved[1][h, m] -= step
            above, below = (log_z(each, single_root, SCRATCH) for each in moved)
            assert marginals[h, m] == pytest.approx((above - below) / (2 * step), abs=1e-7)


@ROOTS
@pytest.mark.parametrize("kind", ["normal", "hundreds", "offset", "cycles", "dominated"])
def test_longer_sentences_have_the_sums_of_exact_determinants(kind, single_root):
    """Neither cycles that dominate nor one overwhelming tree cost digits."""
    for n in (7, 9):
        powers = np.round(np.nan_to_num(sample(kind, n, 4)) / np.log(2))
        powers -= powers.min()
        log_z, marginals = summed(spanning_marginals, powers * np.log(2), single_root)
        assert log_z == pytest.approx(laplacian.log_z(powers, single_root), rel=1e-13)
        np.testing.assert_allclose(marginals, laplacian.marginals(powers, single_root), atol=1e-11)


@ROOTS
@pytest.mark.parametrize("gap", [5, 20, 35, 50, 100, 200, 400, 700, 2000])
def test_small_marginals_are_exact_where_cycles_dominate(gap, single_root):
    """Three pairs that choose each other: what leads out of the cycles decides, however weak it is."""
    scores = np.random.default_rng(gap).normal(0, 1, (7, 7))
    for m in (1, 3, 5):
        scores[m, m + 1] += gap
        scores[m + 1, m] += gap
    scores[0, 1:] -= gap / 2
    trees = every.trees(6, single_root, False)
    log_z, marginals = summed(spanning_marginals, scores, single_root)
    expected = every.marginals(scores, trees)
    assert log_z == pytest.approx(every.log_z(scores, trees), rel=1e-13)
    seen = expected > 1e-250
    np.testing.assert_allclose(marginals[seen], expected[seen], rtol=1e-9)


@pytest.mark.parametrize(("kernel", "log_z", "projective"), SUMS)
@ROOTS
@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(sorted(SCORES)), n=st.integers(1, LONGEST), seed=st.integers(0, 10**6))
def test_marginals_of_longer_sentences_are_distributions(
    kernel, log_z, projective, single_root, kind, n, seed
):
    scores = sample(kind, n, seed)
    found, marginals = summed(kernel, scores, single_root, SCRATCH)
    _assert_distributions(marginals)
    assert found == pytest.approx(log_z(scores, single_root, SCRATCH), rel=1e-12, abs=1e-9)
    assert marginals[0].sum() == pytest.approx(1, abs=1e-9) if single_root else marginals[0].sum() > 1 - 1e-9
    top, _ = decoded(projective_tree if projective else spanning_tree, scores, single_root, SCRATCH)
    assert top <= found + 1e-9 * abs(found)


@pytest.mark.parametrize(("kernel", "decode"), MARGINALS)
@ROOTS
@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, LONGEST), seed=st.integers(0, 10**6))
def test_marginals_of_scores_scaled_up_are_the_decoded_tree(kernel, decode, single_root, n, seed):
    scores = np.round(sample("normal", n, seed), 2) * 1e6
    scores += np.random.default_rng(seed).normal(0, 1e3, scores.shape)  # no ties
    top, heads = decoded(decode, scores, single_root, SCRATCH)
    log_z, marginals = summed(kernel, scores, single_root, SCRATCH)
    assert log_z == pytest.approx(top, rel=1e-9, abs=1)
    assert np.mean(marginals[list(heads[1:]), range(1, n + 1)]) > 0.9


@ROOTS
def test_without_weights_all_trees_are_equally_likely(single_root):
    """Cayley's formula: (n + 1)^(n - 1) trees, of which n^(n - 1) have one root."""
    for n in (1, 2, 3, 25, 60):
        log_z, marginals = summed(spanning_marginals, np.zeros((n + 1, n + 1)), single_root, SCRATCH)
        assert log_z == pytest.approx((n - 1) * np.log(n if single_root else n + 1), abs=1e-10)
        assert np.ptp(marginals[0, 1:]) < 1e-12
        assert marginals[0, 1] == pytest.approx(1 / n if single_root else 2 / (n + 1))


@pytest.mark.parametrize(("kernel", "decode"), MARGINALS)
@ROOTS
def test_a_word_that_heads_nothing_and_a_word_that_must_be_the_root(kernel, decode, single_root):
    """No digits are lost next to scores of -1e30."""
    scores = sample("normal", 6, 2)
    scores[3, 1:] = NEVER
    scores[1:, 5] = NEVER
    trees = every.trees(6, single_root, kernel is projective_marginals)
    log_z, marginals = summed(kernel, scores, single_root)
    assert log_z == pytest.approx(every.log_z(scores, trees), abs=1e-11)
    np.testing.assert_allclose(marginals, every.marginals(scores, trees), atol=1e-11)
    assert marginals[0, 5] == pytest.approx(1)


@pytest.mark.parametrize(("kernel", "log_z", "projective"), SUMS)
@ROOTS
def test_sums_do_not_depend_on_what_the_scratch_held(kernel, log_z, projective, single_root):
    used = tree_scratch(LONGEST)
    for buffers in used:
        for buffer in buffers:
            if buffer.dtype == np.float64:
                buffer[:] = np.nan
    for seed, n in enumerate((60, 5, 1, 30, 2, 8, 7)):
        scores = sample("normal", n, seed)
        (a, p), (b, q) = (summed(kernel, scores, single_root, each) for each in (used, tree_scratch(n)))
        assert a == b
        assert log_z(scores, single_root, used) == log_z(scores, single_root, tree_scratch(n))
        np.testing.assert_array_equal(p, q)


@pytest.mark.parametrize(("kernel", "log_z", "projective"), SUMS)
@ROOTS
@pytest.mark.parametrize("kind", ["normal", "hundreds", "forbidden"])
def test_a_sentence_of_200_words_has_sums(kind, kernel, log_z, projective, single_root):
    found, marginals = summed(kernel, sample(kind, 200, 1), single_root)
    _assert_distributions(marginals)
    assert np.isfinite(found)
