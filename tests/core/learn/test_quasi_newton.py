"""Batch gradient, L-BFGS and OWL-QN: against finite differences, a generic solver, and CRFsuite."""

import gc
import re
import weakref
from itertools import pairwise
from pathlib import Path

import numpy as np
import pycrfsuite
import pytest
from scipy.optimize import minimize

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.learn.trainers.batch import training
from tagsmith.core.learn.trainers.batch.gradient import Batch
from tagsmith.core.learn.trainers.batch.lbfgs import LbfgsSpec
from tagsmith.core.learn.trainers.batch.owlqn import OwlqnSpec
from tests import naive
from tests.core.learn.runs import resumed, run_to
from tests.core.problems import random_problem


def _evaluated(batch: Batch, w):
    return finished(batch.evaluate(w))


def _dense(batch: Batch, w):
    """Parameters as (attributes, Y) and the other rows."""
    problem = batch.problem
    out = np.zeros((problem.rows, len(problem.labels)))
    rows = np.repeat(np.arange(len(out)), np.diff(batch.pairs.starts))
    out[rows, batch.pairs.labels] = w
    return out[: problem.attributes], out[problem.attributes :]


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("edges", [True, False])
@pytest.mark.parametrize(("valued", "rich"), [(True, 0), (False, 0), (False, 5)])
def test_batch_loss_and_gradient_equal_enumeration(seen, edges, valued, rich):
    problem, twins = random_problem(
        7, labels=4, seen_pairs=seen, edges=edges, valued=valued, edge_attributes=rich
    )
    batch = Batch.of(problem, 1)
    w = np.random.default_rng(0).normal(size=batch.parameters).astype(np.float32).astype(np.float64)
    loss, gradient = _evaluated(batch, w)
    weights, transitions = _dense(batch, w)
    assert loss == pytest.approx(naive.loss(twins, weights, transitions), rel=1e-6)
    expected = np.zeros((problem.rows, 4))
    for sentence in twins:
        by_weight, by_pair = naive.gradient(sentence, weights, transitions)
        expected[: problem.attributes] -= by_weight
        expected[problem.attributes :] -= by_pair
    rows = np.repeat(np.arange(len(expected)), np.diff(batch.pairs.starts))
    np.testing.assert_allclose(gradient, expected[rows, batch.pairs.labels], atol=2e-5)


@pytest.mark.parametrize("rich", [0, 3])
def test_gradient_equals_finite_differences(rich):
    problem, _ = random_problem(9, labels=3, edge_attributes=rich)
    batch = Batch.of(problem, 1)
    w = np.random.default_rng(1).normal(size=batch.parameters)
    _, gradient = _evaluated(batch, w)
    for p in range(0, batch.parameters, 3):
        step = np.zeros_like(w)
        step[p] = 1e-2
        above, below = _evaluated(batch, w + step)[0], _evaluated(batch, w - step)[0]
        assert gradient[p] == pytest.approx((above - below) / 2e-2, abs=2e-3)


@pytest.mark.parametrize(("valued", "rich"), [(True, 0), (False, 0), (False, 15)])
def test_bends_equal_differences_of_the_gradient_where_a_feature_fires_once_a_sentence(valued, rich):
    problem, _ = random_problem(9, labels=3, attributes=30, valued=valued, edge_attributes=rich)
    batch = Batch.of(problem, 1, np.float64)
    w = np.random.default_rng(1).normal(size=batch.parameters)
    _evaluated(batch, w)
    bends = finished(batch.bends())
    data, attributes, compared, of_edges = problem.data, problem.attributes, 0, 0
    for p in range(batch.parameters):
        row = int(np.searchsorted(batch.pairs.starts, p, side="right")) - 1
        if attributes <= row < problem.blocks:
            assert bends[p] >= 0.0
            continue
        a, starts, rows = row, data.starts, data.rows
        if row >= problem.blocks:
            a, starts, rows = (row - problem.blocks) // 3, data.edge_starts, data.edge_rows
        if any(np.count_nonzero(rows[starts[i] : starts[j]] == a) > 1 for i, j in pairwise(data.offsets)):
            continue
        step = np.zeros_like(w)
        step[p] = 1e-4
        above, below = _evaluated(batch, w + step)[1], _evaluated(batch, w - step)[1]
        assert bends[p] == pytest.approx((above[p] - below[p]) / 2e-4, rel=1e-5, abs=1e-7)
        compared += 1
        of_edges += row >= problem.blocks
    assert compared > 5
    assert of_edges > 5 or not rich


@pytest.fixture(scope="module")
def problem() -> Problem:
    corpus = read_conll(generate("addresses", 150, 3), max_line_bytes=1 << 16)
    return compile_corpus(FeatureSpec(preset="chunking", pairs="seen").resolve(2), corpus).problem


@pytest.mark.parametrize("threads", [2, 3])
def test_any_number_of_threads_gives_the_same_bits(problem, threads, monkeypatch):
    monkeypatch.setattr("tagsmith.core.learn.trainers.batch.gradient.PIECE_TOKENS", 200)
    monkeypatch.setattr("tagsmith.core.learn.trainers.batch.gradient.PIECE_CELLS", 2000)
    one, many = Batch.of(problem, 1), Batch.of(problem, threads)
    w = np.random.default_rng(2).normal(size=one.parameters)
    assert len(one._scratch.sentences) > 3
    assert len(one._attributes) > 3
    first, second = _evaluated(one, w), _evaluated(many, w)
    assert first[0] == second[0]
    assert first[1].tobytes() == second[1].tobytes()
    assert finished(one.bends()).tobytes() == finished(many.bends()).tobytes()


def _trained(problem, spec, threads=1):
    trainer = spec.make(threads)
    state = trainer.start(problem)
    curve = [r.objective for r in trainer.passes(problem, state, 1) if r.pass_done]
    return trainer, state, curve


def test_lbfgs_reaches_the_optimum_that_a_generic_solver_finds():
    problem, _ = random_problem(21, sentences=30, labels=3)
    batch = Batch.of(problem, 1)

    def objective(w):
        loss, gradient = _evaluated(batch, w)
        return loss + 0.4 * w @ w, gradient + 0.8 * w

    expected = minimize(
        objective, np.zeros(batch.parameters), jac=True, method="L-BFGS-B", options={"ftol": 1e-13}
    )
    _, _, curve = _trained(problem, LbfgsSpec(l2=0.8, tolerance=1e-9))
    assert curve[-1] == pytest.approx(expected.fun, rel=1e-7)


def test_owlqn_reaches_the_optimum_of_the_split_problem():
    """|w| made smooth by w = p - n with p, n >= 0, for a solver with bounds."""
    problem, _ = random_problem(22, sentences=30, labels=3)
    batch = Batch.of(problem, 1)
    size, l1 = batch.parameters, 0.7

    def objective(split):
        w = split[:size] - split[size:]
        loss, gradient = _evaluated(batch, w)
        return loss + l1 * split.sum(), np.concatenate([gradient + l1, -gradient + l1])

    expected = minimize(
        objective, np.zeros(2 * size), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * size),
        options={"ftol": 1e-14, "maxiter": 5000, "maxfun": 50000},
    )  # fmt: skip
    _, state, curve = _trained(problem, OwlqnSpec(l1=l1, tolerance=1e-9, passes=2000))
    assert curve[-1] == pytest.approx(expected.fun, rel=1e-6)
    assert 0 < np.count_nonzero(state["w"]) < size


def test_the_objective_never_rises(problem):
    for spec in (LbfgsSpec(l2=1.0), OwlqnSpec(l1=0.5), OwlqnSpec(l1=0.3, l2=0.5)):
        _, _, curve = _trained(problem, spec)
        assert len(curve) > 10
        assert np.all(np.diff(curve) <= 1e-7 * curve[-1])


def test_a_stronger_penalty_leaves_fewer_features(problem):
    active = [np.count_nonzero(_trained(problem, OwlqnSpec(l1=l1))[1]["w"]) for l1 in (0.2, 1.0, 5.0)]
    assert active[0] > active[1] > active[2] > 0


@pytest.mark.parametrize("spec", [LbfgsSpec(), OwlqnSpec()], ids=["lbfgs", "owlqn"])
def test_a_run_resumed_from_a_checkpoint_gives_the_same_weights(problem, spec):
    trainer = spec.make(1)
    straight = run_to(problem, trainer.start(problem), 25, trainer)
    assert straight["w"].tobytes() == resumed(problem, 12, 25, trainer)["w"].tobytes()


@pytest.mark.parametrize(
    ("params", "spec"),
    [
        ({"c1": 0.0, "c2": 0.7}, LbfgsSpec(l2=1.4, tolerance=1e-8)),
        ({"c1": 0.6, "c2": 0.0}, OwlqnSpec(l1=0.6, tolerance=1e-10, passes=3000)),
        ({"c1": 0.4, "c2": 0.3}, OwlqnSpec(l1=0.4, l2=0.6, tolerance=1e-10, passes=3000)),
    ],
    ids=["l2", "l1", "elastic-net"],
)
def test_the_optimum_is_crfsuites(problem, params, spec, tmp_path: Path):
    """Same features, crfsuite run until it stands still: the same objective to six digits, or lower."""

    class Quiet(pycrfsuite.Trainer):
        log = ""

        def message(self, message):
            self.log += message

    trainer = Quiet(verbose=False)
    data = problem.data
    for begin, end in zip(data.offsets, data.offsets[1:], strict=False):
        tokens = [
            [str(a) for a in data.rows[data.starts[t] : data.starts[t + 1]].tolist()]
            for t in range(begin, end)
        ]
        trainer.append(tokens, [problem.labels[y] for y in data.gold[begin:end].tolist()])
    trainer.select("lbfgs")
    trainer.set_params({**params, "max_iterations": 3000, "epsilon": 1e-9, "delta": 1e-9, "period": 20})
    trainer.train(str(tmp_path / "m"))
    theirs = [float(x) for x in re.findall(r"Loss: ([0-9.]+)", trainer.log)]
    features = int(re.search(r"Number of features: (\d+)", trainer.log)[1])
    assert features == Batch.of(problem, 1).parameters
    _, _, curve = _trained(problem, spec)
    assert curve[-1] <= min(theirs) * (1 + 1e-6)
    assert curve[-1] >= min(theirs) * (1 - 1e-4)


def test_a_run_that_turns_to_float64_frees_its_float32_arrays(monkeypatch):
    problem, _ = random_problem(7, sentences=20, labels=3)
    made, real_of, real_step = [], Batch.of.__func__, training.step

    def recorded(cls, *args):
        batch = real_of(cls, *args)
        made.append(weakref.ref(batch))
        return batch

    def no_step_in_float32(objective, *args):
        if objective.batch._scratch.dtype is np.float32:
            return None
        return (yield from real_step(objective, *args))

    monkeypatch.setattr(Batch, "of", classmethod(recorded))
    monkeypatch.setattr(training, "step", no_step_in_float32)
    trainer = OwlqnSpec(l1=0.1, tolerance=1e-4).make(1)
    state = trainer.start(problem)
    reports = trainer.passes(problem, state, 1)
    while not next(reports).pass_done:
        pass
    gc.collect()
    assert state["double"][0] == 1
    assert [each() is not None for each in made] == [False, True]
