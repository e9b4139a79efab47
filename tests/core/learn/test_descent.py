"""The rules of SGD that `sgd_l1` does not cover: L2 by a scale, the line search, weights that do not exist."""

import numpy as np
import pytest

from core.learn import updates
from core.learn.order import pass_order
from core.learn.pairs import mask_of, pairs_of, seen_marks
from core.learn.schedule import Schedule
from core.learn.sgd import Sgd, SgdSpec
from core.learn.sgd_l1 import SgdL1, SgdL1Spec
from tests import naive
from tests.core.learn.runs import trained
from tests.core.problems import random_problem


class ExactSgd(Sgd):
    dtype = np.float64


class ExactSgdL1(SgdL1):
    dtype = np.float64


def _plan(sentences, passes, eta0=0.5, alpha=0.9):
    orders = [pass_order(sentences, 3, number + 1) for number in range(passes)]
    rates = [
        [eta0 * alpha ** ((p * sentences + k) / sentences) for k in range(sentences)] for p in range(passes)
    ]
    return orders, rates


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("valued", [False, True])
def test_l2_by_one_scale_equals_decaying_every_weight(batch, valued):
    problem, twins = random_problem(3, valued=valued)
    spec = SgdSpec(l2=0.9, schedule=Schedule(eta0=0.5, alpha=0.9), batch=batch)
    weights = trained(problem, 3, ExactSgd(spec))
    expected, expected_edges = naive.sgd(
        twins, (problem.attributes, 3), *_plan(len(twins), 3), 0.9, True, batch
    )
    np.testing.assert_allclose(weights.attribute_rows, expected, atol=1e-10)
    np.testing.assert_allclose(weights.transitions, expected_edges, atol=1e-10)


def test_a_scale_that_runs_out_is_multiplied_in(monkeypatch):
    problem, twins = random_problem(3, sentences=40)
    spec = SgdSpec(l2=30.0, schedule=Schedule(eta0=0.9, alpha=1.0))
    trainer = ExactSgd(spec)
    state = trainer.start(problem)
    lowest = 1.0
    for report in trainer.passes(problem, state, 3):
        lowest = min(lowest, float(state["penalty"][0]))
        if report.pass_done and report.pass_number == 3:
            break
    assert lowest >= updates.SMALLEST_SCALE
    expected, _ = naive.sgd(twins, (problem.attributes, 3), *_plan(40, 3, 0.9, 1.0), 30.0, True)
    np.testing.assert_allclose(trainer.weights(problem, state).attribute_rows, expected, atol=1e-9)


def test_the_heuristic_line_search_is_zhous_algorithm():
    problem, twins = random_problem(12, sentences=8)
    spec = SgdL1Spec(l1=0.3, schedule=Schedule(eta0=0.5, alpha=0.9), line_search="heuristic")
    weights = trained(problem, 2, ExactSgdL1(spec))
    expected, expected_edges = naive.sgd_l1_searched(twins, (problem.attributes, 3), *_plan(8, 2), 0.3)
    np.testing.assert_allclose(weights.attribute_rows, expected, atol=1e-10)
    np.testing.assert_allclose(weights.transitions, expected_edges, atol=1e-10)
    plain = trained(problem, 2, ExactSgdL1(spec.model_copy(update={"line_search": "none"})))
    assert np.abs(plain.attribute_rows - weights.attribute_rows).max() > 1e-3


@pytest.mark.parametrize(
    "trainer",
    [
        SgdL1(SgdL1Spec(l1=0.05, schedule=Schedule(eta0=0.5))),
        SgdL1(SgdL1Spec(l1=0.05, penalty="clipping", schedule=Schedule(eta0=0.5))),
        SgdL1(SgdL1Spec(l1=0.05, schedule=Schedule(eta0=0.5), line_search="heuristic")),
        Sgd(SgdSpec(l2=0.1, schedule=Schedule(eta0=0.5))),
    ],
    ids=["cumulative", "clipping", "searched", "l2"],
)
def test_weights_that_do_not_exist_stay_zero(trainer):
    problem, _ = random_problem(4, labels=5, sentences=10, seen_pairs=True)
    weights = trained(problem, 3, trainer)
    marks = seen_marks(problem)
    both = np.concatenate([weights.attribute_rows, weights.transitions])
    assert not both[~marks].any()
    assert np.count_nonzero(both[marks]) > 0.5 * marks.sum()


def test_marks_masks_and_parameters_say_the_same():
    problem, twins = random_problem(4, labels=9, seen_pairs=True)
    expected = np.zeros((problem.attributes + 9, 9), bool)
    for sentence in twins:
        for row, y in zip(sentence.attributes, sentence.gold, strict=True):
            for a, _ in row:
                expected[a, y] = True
        for before, y in zip(sentence.gold, sentence.gold[1:], strict=False):
            expected[problem.attributes + before, y] = True
    np.testing.assert_array_equal(seen_marks(problem), expected)
    bits = np.unpackbits(mask_of(problem), bitorder="little").reshape(-1, problem.width)
    np.testing.assert_array_equal(bits[:, :9].astype(bool), expected)
    assert not bits[:, 9:].any()
    pairs = pairs_of(problem)
    rows = np.repeat(np.arange(len(expected)), np.diff(pairs.starts))
    np.testing.assert_array_equal(np.stack([rows, pairs.labels], axis=1), np.argwhere(expected))
