"""The rules of SGD that `sgd_l1` does not cover: L2 by a scale, the line search, weights that do not exist."""

from itertools import pairwise

import numpy as np
import pytest
from pydantic import ValidationError

from tagsmith.core.learn.trainers.order import pass_order
from tagsmith.core.learn.trainers.sgd import updates
from tagsmith.core.learn.trainers.sgd.asgd import Asgd, AsgdSpec
from tagsmith.core.learn.trainers.sgd.schedule import Schedule
from tagsmith.core.learn.trainers.sgd.sgd import Sgd, SgdSpec
from tagsmith.core.learn.trainers.sgd.sgd_l1 import SgdL1, SgdL1Spec
from tagsmith.core.learn.weights.pairs import mask_of, pairs_of, seen_marks
from tests import naive
from tests.core.learn.runs import all_rows, assert_equal_but_for_rounding, resumed, trained
from tests.core.problems import random_problem


def _plan(sentences, passes, eta0=0.5, alpha=0.9):
    orders = [pass_order(sentences, 3, number + 1) for number in range(passes)]
    rates = [
        [eta0 * alpha ** ((p * sentences + k) / sentences) for k in range(sentences)] for p in range(passes)
    ]
    return orders, rates


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("valued", "rich"), [(False, 0), (True, 0), (False, 4)])
def test_l2_by_one_scale_equals_decaying_every_weight(batch, valued, rich):
    problem, twins = random_problem(3, valued=valued, edge_attributes=rich)
    spec = SgdSpec(l2=0.9, schedule=Schedule(eta0=0.5, alpha=0.9), batch=batch)
    weights = trained(problem, 3, Sgd(spec))
    expected, expected_edges = naive.sgd(
        twins, (problem.attributes, 3, rich), *_plan(len(twins), 3), 0.9, True, batch
    )
    assert_equal_but_for_rounding(all_rows(weights), np.concatenate([expected, expected_edges]))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("l2", [0.9, 10.0])
@pytest.mark.parametrize(("start", "rich"), [(0.0, 0), (1.4, 0), (1.4, 3), (None, 0)])
def test_the_mean_kept_lazily_equals_the_mean_of_all_weights(start, rich, l2, batch):
    problem, twins = random_problem(3, sentences=20, valued=True, edge_attributes=rich)
    spec = AsgdSpec(l2=l2, schedule=Schedule(eta0=0.5, alpha=0.9), batch=batch, passes=3, start=start)
    weights = trained(problem, 3, Asgd(spec))
    mean_from = (1.5 if start is None else start) * 20
    expected, expected_edges = naive.sgd(
        twins, (problem.attributes, 3, rich), *_plan(20, 3), l2, True, batch, mean_from
    )
    assert np.abs(expected).max() > 1e-3
    assert_equal_but_for_rounding(all_rows(weights), np.concatenate([expected, expected_edges]))


def test_a_mean_keeps_its_digits_while_the_scale_runs_out_again_and_again():
    problem, twins = random_problem(3, sentences=60)
    spec = AsgdSpec(l2=30.0, schedule=Schedule(eta0=0.9, alpha=1.0), passes=4, start=1.0)
    found = all_rows(trained(problem, 4, Asgd(spec)))
    plan = _plan(60, 4, 0.9, 1.0)
    expected = np.concatenate(naive.sgd(twins, (problem.attributes, 3), *plan, 30.0, True, 1, 60))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_before_the_switch_the_weights_are_those_of_sgd():
    problem, _ = random_problem(4, sentences=20)
    schedule = Schedule(eta0=0.5)
    averaged, plain = Asgd(AsgdSpec(schedule=schedule, passes=6)), Sgd(SgdSpec(schedule=schedule))
    assert trained(problem, 3, averaged).values.tobytes() == trained(problem, 3, plain).values.tobytes()
    assert trained(problem, 4, averaged).values.tobytes() != trained(problem, 4, plain).values.tobytes()


@pytest.mark.parametrize("stop", [1, 3])
def test_averaged_runs_find_their_rate_and_resume_to_the_same_bits(stop):
    problem, _ = random_problem(33, sentences=30)
    trainer = Asgd(AsgdSpec(passes=4, start=1.5))
    state = resumed(problem, stop, 4, trainer)
    assert state["eta0"][0] > 0
    straight = trained(problem, 4, trainer)
    assert trainer.weights(problem, state).values.tobytes() == straight.values.tobytes()


def test_averaging_that_would_never_begin_is_refused():
    with pytest.raises(ValidationError, match="`start` must be less than `passes`"):
        AsgdSpec(passes=2, start=2.0)
    AsgdSpec(passes=1)


def test_a_scale_that_runs_out_is_multiplied_in(monkeypatch):
    problem, twins = random_problem(3, sentences=40)
    spec = SgdSpec(l2=30.0, schedule=Schedule(eta0=0.9, alpha=1.0))
    trainer = Sgd(spec)
    state = trainer.start(problem)
    lowest = 1.0
    for report in trainer.passes(problem, state, 3):
        lowest = min(lowest, float(state["penalty"][0]))
        if report.pass_done and report.pass_number == 3:
            break
    assert lowest >= updates.SMALLEST_SCALE
    expected, _ = naive.sgd(twins, (problem.attributes, 3), *_plan(40, 3, 0.9, 1.0), 30.0, True)
    assert_equal_but_for_rounding(trainer.weights(problem, state).attribute_rows, expected)


@pytest.mark.parametrize("rich", [0, 4])
@pytest.mark.parametrize(
    ("penalty", "sufficient"), [("cumulative", 0.0), ("cumulative", 0.5), ("clipping", 0.5)]
)
@pytest.mark.parametrize("eta0", [0.5, 400.0], ids=["scaled", "log space"])
def test_the_heuristic_line_search_is_zhous_algorithm(rich, penalty, sufficient, eta0):
    problem, twins = random_problem(14, sentences=8, edge_attributes=rich)
    spec = SgdL1Spec(
        l1=0.3,
        penalty=penalty,
        schedule=Schedule(eta0=eta0, alpha=0.9),
        line_search="heuristic",
        sufficient=sufficient,
    )
    weights = trained(problem, 2, SgdL1(spec))
    plan = _plan(8, 2, eta0)
    expected, expected_edges = naive.sgd_l1_searched(
        twins, (problem.attributes, 3, rich), *plan, 0.3, sufficient, penalty
    )
    both = np.concatenate([expected, expected_edges])
    np.testing.assert_allclose(all_rows(weights), both, rtol=0, atol=2e-5 * max(1.0, eta0))
    plain = trained(problem, 2, SgdL1(spec.model_copy(update={"line_search": "none"})))
    assert np.abs(plain.attribute_rows - weights.attribute_rows).max() > 1e-3 * eta0


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
    problem, _ = random_problem(4, labels=5, sentences=10, seen_pairs=True, edge_attributes=3)
    weights = trained(problem, 3, trainer)
    marks = seen_marks(problem)
    both = all_rows(weights)
    assert not both[~marks].any()
    assert np.count_nonzero(both[marks]) > 0.5 * marks.sum()


def test_marks_masks_and_parameters_say_the_same():
    problem, twins = random_problem(4, labels=9, seen_pairs=True, edge_attributes=3)
    expected = np.zeros((problem.rows, 9), bool)
    for sentence in twins:
        for row, y in zip(sentence.attributes, sentence.gold, strict=True):
            for a, _ in row:
                expected[a, y] = True
        for t, (before, y) in enumerate(pairwise(sentence.gold), start=1):
            for block in (0, *(1 + a for a in sentence.edges[t])):
                expected[problem.attributes + 9 * block + before, y] = True
    np.testing.assert_array_equal(seen_marks(problem), expected)
    bits = np.unpackbits(mask_of(problem), bitorder="little").reshape(-1, problem.width)
    np.testing.assert_array_equal(bits[:, :9].astype(bool), expected)
    assert not bits[:, 9:].any()
    pairs = pairs_of(problem)
    rows = np.repeat(np.arange(len(expected)), np.diff(pairs.starts))
    np.testing.assert_array_equal(np.stack([rows, pairs.labels], axis=1), np.argwhere(expected))
