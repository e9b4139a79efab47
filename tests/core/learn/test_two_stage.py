"""SGD, then OWL-QN from where it stopped."""

from itertools import takewhile

import numpy as np
import pytest

from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.learn.trainers.batch.owlqn import OwlqnSpec
from tagsmith.core.learn.trainers.sgd.sgd_l1 import SgdL1Spec
from tagsmith.core.learn.trainers.staged.two_stage import TwoStage, TwoStageSpec
from tests.core.learn.runs import resumed, trained


@pytest.fixture(scope="module")
def problem() -> Problem:
    corpus = read_conll(generate("references", 120, 3), max_line_bytes=1 << 16)
    return compile_corpus(FeatureSpec(preset="chunking", pairs="seen").resolve(2), corpus).problem


def _objectives(trainer, problem):
    state = trainer.start(problem)
    return {r.pass_number: r.objective for r in trainer.passes(problem, state, 1) if r.pass_done}, state


def test_the_second_stage_goes_on_where_the_first_stopped_and_ends_where_owlqn_does(problem: Problem):
    spec = TwoStageSpec(l1=0.5, first=SgdL1Spec(passes=3), second=OwlqnSpec(tolerance=1e-4))
    objectives, _ = _objectives(TwoStage(spec, 1), problem)
    alone, _ = _objectives(OwlqnSpec(l1=0.5, tolerance=1e-4).make(1), problem)
    assert list(objectives) == list(range(1, len(objectives) + 1))
    assert [objectives[i] for i in (1, 2, 3)] == [None] * 3
    final = alone[len(alone)]
    assert objectives[len(objectives)] == pytest.approx(final, rel=1e-2)

    def passes_to_within(curve, share):
        return next(
            number for number, value in curve.items() if value is not None and value < final * (1 + share)
        )

    assert passes_to_within(objectives, 0.05) < 0.9 * passes_to_within(alone, 0.05)


def test_a_run_resumed_in_either_stage_gives_the_same_weights(problem: Problem):
    spec = TwoStageSpec(l1=0.5, first=SgdL1Spec(passes=3))
    for stop in (2, 3, 9):
        trainer = TwoStage(spec, 1)
        straight, state = trained(problem, 15, trainer, seed=1), resumed(problem, stop, 15, trainer, seed=1)
        assert trainer.weights(problem, state).values.tobytes() == straight.values.tobytes()


def test_weights_are_those_of_the_stage_that_runs(problem: Problem):
    trainer = TwoStageSpec(first=SgdL1Spec(passes=2)).make(1)
    state = trainer.start(problem)
    reports = trainer.passes(problem, state, 1)
    list(takewhile(lambda r: not (r.pass_done and r.pass_number == 1), reports))
    first = trainer.weights(problem, state).values
    assert np.count_nonzero(first) > 0
    assert not state["second.w"].any()
    list(takewhile(lambda r: not (r.pass_done and r.pass_number == 4), reports))
    assert np.count_nonzero(trainer.weights(problem, state).values) == np.count_nonzero(state["second.w"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"l1": 0.0}, "greater than 0"),
        ({"l1": 0.5, "first": {"kind": "sgd-l1", "l1": 0.7}}, "use the same penalty"),
        ({"l1": 0.5, "second": {"kind": "owlqn", "l1": 0.7}}, "use the same penalty"),
        ({"passes": 5}, "greater than `first.passes`"),
        ({"first": {"kind": "owlqn"}}, "sgd-l1"),
    ],
)
def test_stages_that_cannot_be_are_refused(body, reason):
    with pytest.raises(ValueError, match=reason):
        TwoStageSpec.model_validate(body)


def test_a_spec_that_was_stored_is_read_again():
    spec = TwoStageSpec(l1=0.7)
    assert TwoStageSpec.model_validate(spec.model_dump(mode="json")) == spec
