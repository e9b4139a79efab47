"""OWL-QN on the parameters that count: nothing of the result may depend on which are left out meanwhile."""

import numpy as np
import pytest

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.learn.trainers.base import State
from tagsmith.core.learn.trainers.batch.gradient import Batch
from tagsmith.core.learn.trainers.batch.owlqn import OwlqnSpec
from tests.core.learn.runs import resumed, run_to
from tests.core.problems import random_problem


@pytest.fixture(scope="module")
def problem() -> Problem:
    corpus = read_conll(generate("addresses", 150, 3), max_line_bytes=1 << 16)
    return compile_corpus(FeatureSpec(preset="chunking", pairs="seen").resolve(2), corpus).problem


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("valued", [True, False])
def test_leaving_out_zeros_changes_neither_loss_nor_gradient(seen, valued):
    problem, _ = random_problem(11, labels=4, seen_pairs=seen, valued=valued)
    batch = Batch.of(problem, 1)
    rng = np.random.default_rng(4)
    kept = rng.random(batch.parameters) < 0.3
    w = np.where(kept, rng.normal(size=batch.parameters), 0.0)
    loss, gradient = finished(batch.evaluate(w))
    part = batch.restricted(kept)
    assert part.parameters == np.count_nonzero(kept)
    assert part.problem.attributes < problem.attributes
    part_loss, part_gradient = finished(part.evaluate(w[kept]))
    assert part_loss == loss
    assert part_gradient.tobytes() == gradient[kept].tobytes()


def _converged(problem: Problem) -> State:
    trainer = OwlqnSpec(l1=0.5, tolerance=1e-8, passes=3000).make(1)
    state = trainer.start(problem)
    finished(trainer.passes(problem, state, 1))
    return state


def test_the_optimum_is_that_of_a_run_over_all_parameters(problem, monkeypatch):
    few = _converged(problem)
    assert 0 < np.count_nonzero(few["kept"]) < len(few["kept"]) / 4
    monkeypatch.setattr("tagsmith.core.learn.trainers.batch.working_set.SHRINK", 0.0)
    every = _converged(problem)
    assert every["kept"].all()
    assert few["objectives"][0] == pytest.approx(every["objectives"][0], rel=1e-5)


def test_parameters_that_were_left_out_too_early_come_back(problem, monkeypatch):
    """With no margin at all, every parameter that later leaves zero has been left out before."""
    expected = _converged(problem)
    monkeypatch.setattr("tagsmith.core.learn.trainers.batch.working_set.MARGIN", 1.0)
    monkeypatch.setattr("tagsmith.core.learn.trainers.batch.training.REVIEW", 2)
    early = _converged(problem)
    assert early["objectives"][0] == pytest.approx(expected["objectives"][0], rel=1e-5)
    gradient = finished(Batch.of(problem, 1).evaluate(early["w"]))[1]
    assert np.all(np.abs(gradient[early["w"] == 0.0]) <= 0.5 * (1 + 1e-3))


@pytest.mark.parametrize("stop", [19, 20, 21, 40])
def test_a_run_resumed_beside_a_review_gives_the_same_bits(problem, stop):
    trainer = OwlqnSpec(l1=0.5, tolerance=0.0).make(1)
    straight = run_to(problem, trainer.start(problem), 45, trainer)
    assert not straight["kept"].all()
    again = resumed(problem, stop, 45, trainer)
    assert all(straight[name].tobytes() == again[name].tobytes() for name in straight)


def test_weights_that_a_strong_penalty_holds_at_zero_are_an_end(problem):
    """No parameter is worth working on: training ends at once, with an empty model."""
    trainer = OwlqnSpec(l1=1e5).make(1)
    state = trainer.start(problem)
    assert [report for report in trainer.passes(problem, state, 1) if report.pass_done] == []
    assert not state["w"].any()
