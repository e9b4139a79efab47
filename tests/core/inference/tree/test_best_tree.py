"""Both decoders against enumeration, and what holds for trees of any size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.inference.tree.projective import projective_tree
from tagsmith.core.inference.tree.scratch import tree_scratch
from tagsmith.core.inference.tree.spanning import spanning_tree
from tests.core.inference.tree import enumeration as every
from tests.core.inference.tree.samples import SCORES, decoded, sample

DECODERS = [
    pytest.param(spanning_tree, False, id="spanning"),
    pytest.param(projective_tree, True, id="projective"),
]
LONGEST = 60
SCRATCH = tree_scratch(LONGEST)


def _best(scores: np.ndarray, single_root: bool, projective: bool) -> float:
    return float(every.totals(scores, every.trees(len(scores) - 1, single_root, projective)).max())


def _assert_tree(heads: every.Heads, single_root: bool, projective: bool) -> None:
    assert every.is_tree(heads)
    assert every.obeys(heads, single_root)
    assert not projective or every.is_projective(heads)


@pytest.mark.parametrize(("kernel", "projective"), DECODERS)
@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("kind", SCORES)
def test_the_decoded_tree_has_the_highest_score_of_all(kind, single_root, kernel, projective):
    for n in range(1, 7):
        for seed in range(20):
            scores = sample(kind, n, seed)
            top, heads = decoded(kernel, scores, single_root)
            _assert_tree(heads, single_root, projective)
            assert top == every.score(scores, heads)
            assert top == pytest.approx(_best(scores, single_root, projective), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("kernel", "projective"), DECODERS)
@pytest.mark.parametrize("single_root", [False, True])
@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(sorted(SCORES)), n=st.integers(1, LONGEST), seed=st.integers(0, 10**6))
def test_longer_sentences_get_trees_that_obey_the_rules(kernel, projective, single_root, kind, n, seed):
    scores = sample(kind, n, seed)
    top, heads = decoded(kernel, scores, single_root, SCRATCH)
    _assert_tree(heads, single_root, projective)
    assert top == every.score(scores, heads)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(SCORES)),
    n=st.integers(1, LONGEST),
    seed=st.integers(0, 10**6),
    single_root=st.booleans(),
)
def test_no_projective_tree_has_a_higher_score_than_the_best_of_all(kind, n, seed, single_root):
    scores = sample(kind, n, seed)
    top, _ = decoded(spanning_tree, scores, single_root, SCRATCH)
    projective, _ = decoded(projective_tree, scores, single_root, SCRATCH)
    assert projective <= top + 1e-9 * abs(top)


@pytest.mark.parametrize("single_root", [False, True])
def test_a_tree_with_overwhelming_scores_is_found(single_root):
    rng = np.random.default_rng(3)
    for n in (2, 10, 60):
        order = rng.permutation(n) + 1
        gold = np.zeros(n + 1, np.int64)
        for i in range(1, n):
            gold[order[i]] = order[rng.integers(0, i)]
        scores = rng.normal(0, 1, (n + 1, n + 1))
        scores[gold[1:], np.arange(1, n + 1)] += 100
        _, heads = decoded(spanning_tree, scores, single_root, SCRATCH)
        assert heads[1:] == tuple(gold[1:])


def test_in_a_tie_the_lower_head_wins():
    _, heads = decoded(spanning_tree, np.zeros((5, 5)), False)
    assert heads == (-1, 0, 0, 0, 0)
    scores = np.zeros((4, 4))
    scores[0, 1] = 1
    scores[1:, 2:] = 1
    assert decoded(spanning_tree, scores, False)[1] == (-1, 0, 1, 1)


@pytest.mark.parametrize(("kernel", "projective"), DECODERS)
@pytest.mark.parametrize("single_root", [False, True])
def test_the_tree_does_not_depend_on_what_the_scratch_held(kernel, projective, single_root):
    used = tree_scratch(LONGEST)
    for seed, n in enumerate((60, 5, 1, 30, 2)):
        scores = sample("integers", n, seed)
        assert decoded(kernel, scores, single_root, used) == decoded(kernel, scores, single_root)


@pytest.mark.parametrize(("kernel", "projective"), DECODERS)
@pytest.mark.parametrize("single_root", [False, True])
def test_a_sentence_of_200_words_is_decoded(kernel, projective, single_root):
    top, heads = decoded(kernel, sample("normal", 200, 1), single_root)
    _assert_tree(heads, single_root, projective)
    assert np.isfinite(top)


@pytest.mark.parametrize(("kernel", "projective"), DECODERS)
@pytest.mark.parametrize("single_root", [False, True])
def test_scores_that_are_not_numbers_still_end(kernel, projective, single_root):
    decoded(kernel, np.full((9, 9), np.nan), single_root)
    decoded(kernel, np.full((9, 9), -np.inf), single_root)
