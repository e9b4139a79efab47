"""SGD with an L1 penalty against Tsuruoka's procedures done literally, and against finite differences."""

from contextlib import suppress
from itertools import islice

import numpy as np
import pytest

from tagsmith.core.base import simd as v
from tagsmith.core.inference import chain as ch
from tagsmith.core.learn.trainers.base import Diverged
from tagsmith.core.learn.trainers.order import pass_order
from tagsmith.core.learn.trainers.sgd.schedule import Schedule
from tagsmith.core.learn.trainers.sgd.sgd_l1 import SgdL1, SgdL1Spec
from tagsmith.core.learn.weights.posterior import sequence_posterior
from tagsmith.core.learn.weights.rows import EVERYTHING, PLAIN, Scorer, load_edges, rows_of
from tagsmith.core.learn.weights.scoring import Weights
from tests import naive
from tests.core.learn.runs import all_rows, assert_equal_but_for_rounding, resumed, trained
from tests.core.problems import random_problem


def _compared(spec, passes, **options):
    """The weights of SGD and of the literal procedure, on the first problem where nothing ties by rounding."""
    for seed in range(5, 25):
        problem, twins = random_problem(seed, **options)
        start = np.zeros((problem.rows, 3))
        if spec.penalty == "naive":
            # At zero the sign of many weights would be that of a rounding error.
            start = np.random.default_rng(seed).normal(0, 0.1, start.shape).astype(np.float32)
            start[problem.attributes : problem.blocks] *= problem.edges
        n, eta0, alpha = len(twins), spec.schedule.eta0, spec.schedule.alpha
        with suppress(naive.Tie):
            expected = naive.sgd_l1(
                twins,
                (problem.attributes, 3, problem.edge_attributes),
                [pass_order(n, 3, number + 1) for number in range(passes)],
                [[eta0 * alpha ** ((p * n + k) / n) for k in range(n)] for p in range(passes)],
                spec.l1,
                spec.penalty,
                problem.edges,
                spec.batch,
                start.astype(np.float64),
            )
            values = np.zeros((problem.rows, problem.width), np.float32)
            values[:, :3] = start
            init = Weights(problem, values.reshape(-1)) if start.any() else None
            return all_rows(trained(problem, passes, SgdL1(spec), init=init)), np.concatenate(expected)
    raise AssertionError("something ties in every problem")


@pytest.mark.parametrize("penalty", ["cumulative", "clipping", "naive"])
@pytest.mark.parametrize("edges", [True, False])
@pytest.mark.parametrize(("valued", "rich"), [(False, 0), (True, 0), (False, 4)])
def test_weights_equal_the_literal_procedure(penalty, edges, valued, rich):
    spec = SgdL1Spec(l1=0.4, penalty=penalty, schedule=Schedule(eta0=0.7, alpha=0.8))
    found, expected = _compared(spec, 3, edges=edges, valued=valued, edge_attributes=rich)
    assert_equal_but_for_rounding(found, expected)
    if penalty != "naive":
        np.testing.assert_array_equal(found == 0, expected == 0)
        assert np.any(expected == 0)
        assert np.any(expected != 0)


@pytest.mark.parametrize("penalty", ["cumulative", "clipping", "naive"])
@pytest.mark.parametrize(("batch", "rich"), [(2, 0), (4, 0), (4, 3), (100, 0)])
def test_batches_sum_gradients_at_the_same_weights(penalty, batch, rich):
    spec = SgdL1Spec(l1=0.3, penalty=penalty, schedule=Schedule(eta0=0.5, alpha=0.9), batch=batch)
    assert_equal_but_for_rounding(*_compared(spec, 2, sentences=7, edge_attributes=rich))


@pytest.mark.parametrize(("batch", "rich"), [(1, 0), (4, 0), (1, 3), (4, 3)])
def test_sweeping_only_the_pairs_seen_equals_sweeping_everything(batch, rich):
    class Dense(SgdL1):
        def _swept(self, mask, width):
            return super()._swept(EVERYTHING, width)

    problem, _ = random_problem(8, sentences=9, seen_pairs=True, edge_attributes=rich)
    spec = SgdL1Spec(l1=0.3, penalty="naive", schedule=Schedule(eta0=0.5, alpha=0.9), batch=batch)
    sparse, dense = (trained(problem, 3, kind(spec)).values for kind in (SgdL1, Dense))
    assert np.count_nonzero(dense) > 10
    np.testing.assert_array_equal(sparse, dense)


def _loss_and_gradient(problem, values, sentence):
    """One sentence's loss, and its gradient from the marginals that the kernels find."""
    labels, width = len(problem.labels), problem.width
    r = rows_of(values, np.zeros(problem.rows))
    e, c = ch.edges(labels, np.float64), ch.chain(problem.longest, labels, np.float64, rich=problem.rich)
    scorer = Scorer(r, PLAIN, load_edges(r, PLAIN, problem.layout, e), problem.layout)
    loss = sequence_posterior(problem.data, sentence, scorer, e, c, 0)
    gradient = np.zeros((problem.rows, labels))
    blocks = gradient[problem.attributes :].reshape(-1, labels, labels)
    data = problem.data
    begin, end = data.offsets[sentence : sentence + 2]
    for token in range(begin, end):
        row = c.beta.reshape(-1, width)[token - begin, :labels].copy()
        row[data.gold[token]] -= 1
        for k in range(data.starts[token], data.starts[token + 1]):
            gradient[data.rows[k]] += row * (data.values[k] if len(data.values) else 1)
    blocks[0] += c.pairs.reshape(labels, width)[:, :labels]
    for token in range(begin + 1, end):
        blocks[0, data.gold[token - 1], data.gold[token]] -= 1
        for k in range(*data.edge_starts[token : token + 2]) if problem.rich else ():
            block = blocks[1 + data.edge_rows[k]]
            block += c.matrices.reshape(-1, labels, width)[token - begin, :, :labels]
            block[data.gold[token - 1], data.gold[token]] -= 1
    return loss, gradient


@pytest.mark.parametrize(("valued", "rich"), [(False, 0), (True, 0), (False, 3)])
def test_gradient_equals_finite_differences(valued, rich):
    problem, _ = random_problem(2, valued=valued, labels=4, edge_attributes=rich)
    rng = np.random.default_rng(0)
    width, labels = problem.width, 4
    values = v.zeros(problem.rows * width, np.float64)
    values.reshape(-1, width)[:, :labels] = rng.normal(size=(problem.rows, labels))
    for sentence in range(problem.sentences):
        _, gradient = _loss_and_gradient(problem, values, sentence)
        for row in range(problem.rows):
            for y in range(labels):
                at, step = row * width + y, 1e-5
                kept = values[at]
                values[at] = kept + step
                above, _ = _loss_and_gradient(problem, values, sentence)
                values[at] = kept - step
                below, _ = _loss_and_gradient(problem, values, sentence)
                values[at] = kept
                assert gradient[row, y] == pytest.approx((above - below) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("rich", [0, 4])
def test_exact_loss_equals_enumeration(rich):
    problem, twins = random_problem(4, edge_attributes=rich)
    weights = trained(problem, 2, SgdL1(SgdL1Spec(l1=0.1, schedule=Schedule(eta0=0.5))))
    expected = naive.loss(twins, weights.attribute_rows, all_rows(weights)[problem.attributes :])
    assert sum(weights.loss(problem)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rich", [0, 4])
def test_decoding_finds_the_best_labelling_of_each_sentence(rich):
    problem, twins = random_problem(6, edge_attributes=rich)
    weights = trained(problem, 2, SgdL1(SgdL1Spec(l1=0.01, schedule=Schedule(eta0=0.5))))
    edges = all_rows(weights)[problem.attributes :]
    expected = [naive.best(s.emissions(weights.attribute_rows), s.transitions(edges)) for s in twins]
    assert weights.decode(problem).tolist() == [y for path in expected for y in path]


@pytest.mark.parametrize("rich", [0, 3])
def test_loss_survives_weights_beyond_the_range_of_float32(rich):
    problem, twins = random_problem(9, sentences=3, attributes=4, edge_attributes=rich)
    rng = np.random.default_rng(1)
    values = v.zeros(problem.rows * problem.width, np.float32)
    values.reshape(-1, problem.width)[:, :3] = rng.normal(size=(problem.rows, 3)) * 400
    weights = Weights(problem, values)
    exact = all_rows(weights).astype(float)
    expected = naive.loss(twins, exact[:4], exact[4:])
    assert sum(weights.loss(problem)) == pytest.approx(expected, rel=1e-5)


def test_the_same_seed_gives_the_same_weights_and_another_does_not():
    problem, _ = random_problem(5, sentences=20)
    trainer = SgdL1(SgdL1Spec(schedule=Schedule(eta0=0.3)))
    first, second = trained(problem, 3, trainer, seed=1), trained(problem, 3, trainer, seed=1)
    assert first.values.tobytes() == second.values.tobytes()
    assert first.values.tobytes() != trained(problem, 3, trainer, seed=2).values.tobytes()


@pytest.mark.parametrize("rich", [0, 4])
def test_a_run_resumed_from_a_checkpoint_gives_the_same_weights(rich):
    problem, _ = random_problem(5, sentences=20, edge_attributes=rich)
    trainer = SgdL1(SgdL1Spec(schedule=Schedule(eta0="auto")))
    straight, state = trained(problem, 4, trainer), resumed(problem, 2, 4, trainer)
    assert trainer.weights(problem, state).values.tobytes() == straight.values.tobytes()


def test_automatic_rate_is_reported_and_kept_in_the_state():
    problem, _ = random_problem(5, sentences=20)
    trainer = SgdL1(SgdL1Spec())
    state = trainer.start(problem)
    reports = trainer.passes(problem, state, 1)
    phases = [next(reports).phase for _ in range(3)]
    assert phases == ["calibrate"] * 3
    for report in reports:
        if report.pass_done:
            break
    assert state["eta0"][0] > 0


def test_a_rate_that_blows_up_says_so():
    problem, _ = random_problem(5, sentences=20)
    trainer = SgdL1(SgdL1Spec(l1=0.0, schedule=Schedule(kind="inverse", eta0=1e6), passes=100))
    state = trainer.start(problem)
    state["weights"][:] = 3e38
    with pytest.raises(Diverged, match="eta0"):
        list(islice(trainer.passes(problem, state, 1), 1000))
