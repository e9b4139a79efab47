"""Every online learner against its literal twin: lazy sums by row equal dense vectors, averages equal means."""

import tracemalloc
from contextlib import suppress
from math import inf
from statistics import NormalDist
from types import MappingProxyType

import numpy as np
import pytest
from pydantic import TypeAdapter

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.trainers.adaptive.adf import AdfSpec
from tagsmith.core.learn.trainers.adaptive.madf import MadfSpec
from tagsmith.core.learn.trainers.margin.arow import ArowSpec
from tagsmith.core.learn.trainers.margin.averaged_perceptron import AveragedPerceptronSpec
from tagsmith.core.learn.trainers.margin.cw import CwSpec
from tagsmith.core.learn.trainers.margin.dca import DcaSpec
from tagsmith.core.learn.trainers.margin.mira import MiraSpec
from tagsmith.core.learn.trainers.margin.pa import PassiveAggressiveSpec
from tagsmith.core.learn.trainers.margin.perceptron import PerceptronSpec
from tagsmith.core.learn.trainers.order import pass_order
from tagsmith.core.learn.trainers.registry import AnyTrainerSpec
from tagsmith.core.learn.trainers.sgd.schedule import Schedule
from tagsmith.core.learn.weights.pairs import seen_marks
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.file import save
from tagsmith.core.model.tagger import Tagger
from tests import naive, naive_online
from tests.core.learn.runs import all_rows, assert_equal_but_for_rounding, resumed, trained
from tests.core.problems import random_problem
from tests.training import train

#: (spec, twin's rule, its limit, costs by label or none, averaged)
LEARNERS = {
    "perceptron": (PerceptronSpec(), "perceptron", 1.0, False, False),
    "averaged": (AveragedPerceptronSpec(), "perceptron", 1.0, False, True),
    "pa-1": (PassiveAggressiveSpec(C=0.2), "pa", 0.2, True, True),
    "pa-2": (PassiveAggressiveSpec(C=0.2, variant="II"), "pa-2", 0.2, True, True),
    "pa-predicted": (PassiveAggressiveSpec(C=0.2, update="prediction"), "pa", 0.2, True, True),
    "pa-root": (
        PassiveAggressiveSpec(C=0.2, update="prediction", total="root", averaged=False),
        "pa",
        0.2,
        True,
        False,
    ),
    "pa-one": (PassiveAggressiveSpec(C=0.2, update="prediction", total="one"), "pa", 0.2, True, True),
    "mira": (MiraSpec(), "pa", inf, True, True),
    "mira-2": (MiraSpec(C=0.3, variant="II"), "pa-2", 0.3, True, True),
    "dca-crf": (DcaSpec(l2=2.0), "dca-crf", 0.5, False, True),
    "dca-svm": (DcaSpec(l2=4.0, loss="svm"), "pa", 0.25, True, True),
    "arow": (ArowSpec(r=0.7), "arow", 0.7, True, False),
    "cw": (CwSpec(confidence=0.8), "cw", NormalDist().inv_cdf(0.8), True, False),
}


def _start(problem):
    """Random weights, which seldom let two labellings tie."""
    labels = len(problem.labels)
    start = np.random.default_rng(5).normal(0, 0.1, (problem.rows, labels))
    start[problem.attributes : problem.blocks] *= problem.edges
    values = np.zeros((len(start), problem.width))
    values[:, :labels] = start
    return start, Weights(problem, values.reshape(-1))


def _compared(spec, rule, passes, averaged=True, problem_options=MappingProxyType({}), **options):
    """The learner's weights and its twin's, on the first problem where nothing ties by rounding."""
    for seed in range(15, 35):
        problem, twins = random_problem(seed, sentences=9, labels=3, **problem_options)
        start, init = _start(problem)
        with suppress(naive.Tie):
            last, mean = naive_online.online(
                twins,
                (problem.attributes, 3, problem.edge_attributes),
                [pass_order(9, 3, number + 1) for number in range(passes)],
                rule,
                augmented=getattr(spec, "update", "max-loss") == "max-loss",
                total=getattr(spec, "total", "sum"),
                edges=problem.edges,
                batch=spec.batch,
                exists=seen_marks(problem) if problem.existing.seen_pairs else None,
                start=start,
                **options,
            )
            return trained(problem, passes, spec.make(1), init=init), mean if averaged else last
    raise AssertionError("something ties in every problem")


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(
    "variant",
    ["plain", "valued", "no-edges", "batch", "seen", "rich", "rich no-edges", "rich batch", "rich seen"],
)
def test_weights_equal_the_literal_learner(name, variant):
    spec, rule, limit, costly, averaged = LEARNERS[name]
    weights, expected = _compared(
        spec.model_copy(update={"batch": 4 if "batch" in variant else 1}),
        rule,
        3,
        averaged,
        {
            "edges": "no-edges" not in variant,
            "valued": variant == "valued",
            "seen_pairs": "seen" in variant,
            "edge_attributes": 4 if "rich" in variant else 0,
        },
        limit=limit,
        costs=[1.0] * 3 if costly else None,
    )
    assert np.abs(expected).max() > 0.05
    assert_equal_but_for_rounding(all_rows(weights), expected)
    assert "rich" not in variant or np.count_nonzero(weights.edge_blocks) > 10


@pytest.mark.parametrize("update", ["max-loss", "prediction"])
def test_costs_weigh_the_labels_that_must_not_be_missed(update):
    spec = PassiveAggressiveSpec(C=0.3, update=update, costs={"L0": 0.2, "L2": 5.0})
    weights, mean = _compared(spec, "pa", 2, limit=0.3, costs=[0.2, 1.0, 5.0])
    assert_equal_but_for_rounding(all_rows(weights), mean)


def test_a_cost_for_an_unknown_label_is_pointed_at():
    problem, _ = random_problem(16)
    with pytest.raises(Invalid) as raised:
        trained(problem, 1, PassiveAggressiveSpec(costs={"nose": 1.0}).make(1))
    assert raised.value.faults[0].pointer == "/trainer/costs/nose"


@pytest.mark.parametrize("edge_attributes", [0, 5])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_resumed_from_a_checkpoint_gives_the_same_weights(name, edge_attributes):
    spec, *_ = LEARNERS[name]
    problem, _ = random_problem(17, sentences=20, edge_attributes=edge_attributes)
    trainer = spec.make(1)
    straight, state = trained(problem, 4, trainer), resumed(problem, 2, 4, trainer)
    assert trainer.weights(problem, state).values.tobytes() == straight.values.tobytes()


@pytest.mark.parametrize("name", LEARNERS)
def test_state_is_at_most_two_vectors_over_the_parameters(name):
    spec, *_ = LEARNERS[name]
    problem, _ = random_problem(17, sentences=20)
    state = spec.make(1).start(problem)
    rows = (problem.attributes + len(problem.labels)) * problem.width
    assert sum(array.size for array in state.values()) <= 2 * rows + 8


@pytest.mark.parametrize(
    ("kind", "vectors"),
    [("averaged-perceptron", 2), ("pa", 2), ("mira", 2), ("dca", 2), ("asgd", 2), ("adf", 1)],
)
def test_a_run_holds_at_most_three_vectors_with_the_one_that_is_read_out(kind, vectors):
    problem, _ = random_problem(17, sentences=400, attributes=2000, labels=20)
    spec = TypeAdapter(AnyTrainerSpec).validate_python({"kind": kind})
    if "schedule" in type(spec).model_fields:
        spec = spec.model_copy(update={"schedule": Schedule(eta0=0.1)})
    elif kind == "adf":
        spec = spec.model_copy(update={"c": 0.1})
    trainer = spec.make(1)
    vector = 4 * (problem.attributes + len(problem.labels)) * problem.width
    trained(problem, 1, trainer)  # loads the kernels, whose memory is not the trainer's
    tracemalloc.start()
    weights = trained(problem, 1, spec.make(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert weights.values.nbytes == vector
    # Besides: counts by row, and the chains, sums and orders of a few sentences.
    assert (vectors + 1) * vector <= peak <= (vectors + 1) * vector + 0.75 * vector
    assert vectors + 1 <= 3


@pytest.mark.parametrize(("costs", "expected"), [({}, "A"), ({"B": 5.0}, "B"), ({"A": 0.5, "B": 0.5}, "A")])
@pytest.mark.parametrize(
    "trainer",
    [{"kind": "mira"}, {"kind": "pa", "variant": "II", "C": 10.0}, {"kind": "dca", "loss": "svm", "l2": 0.1}],
)
def test_costs_in_a_spec_decide_what_is_said_of_an_ambiguous_word(trainer, costs, expected, tmp_path):
    """Three in five are A. To miss a B that costs five times as much is still the worse mistake."""
    corpus = read_conll([b"x A\n\nx B\n\nx A\n\nx A\n\nx B\n\n" * 20], max_line_bytes=1 << 16)
    spec = TrainSpec.model_validate(
        {
            "kind": "train",
            "model": "m",
            "corpus": "crp_a",
            "features": {"templates": "U:%x[0,0]"},
            "trainer": {**trainer, "costs": costs},
        }
    )
    save(finished(train(spec, corpus, None)).model, tmp_path / "model")
    assert Tagger.open(tmp_path / "model").tag([["x"]]) == [[expected]]


#: (sentences of a batch, sentences in all): whole batches, and a last one that is smaller.
BATCHES = [(1, 24), (2, 24), (5, 23), (40, 23)]


@pytest.mark.parametrize(("valued", "rich"), [(False, 0), (True, 0), (False, 4)])
@pytest.mark.parametrize(("batch", "count"), BATCHES)
def test_adf_paid_lazily_equals_adf_swept(valued, rich, batch, count):
    problem, twins = random_problem(31, sentences=count, attributes=12, valued=valued, edge_attributes=rich)
    spec = AdfSpec(l2=3.0, c=0.3, alpha=0.9, beta=0.5, window=4 * batch, batch=batch)
    weights = trained(problem, 3, spec.make(1))
    orders = [pass_order(count, 3, number) for number in (1, 2, 3)]
    expected = naive_online.adf(twins, (12, 3, rich), orders, 0.3, 3.0, q=4, alpha=0.9, beta=0.5, batch=batch)
    assert_equal_but_for_rounding(all_rows(weights), expected)


@pytest.mark.parametrize("rich", [0, 4])
@pytest.mark.parametrize(("batch", "count"), BATCHES)
def test_madf_paid_lazily_equals_madf_swept(batch, count, rich):
    problem, twins = random_problem(32, sentences=count, attributes=12, edge_attributes=rich)
    spec = MadfSpec(l2=3.0, a=0.1, b=0.8, schedule=Schedule(kind="bottou", eta0=0.4), batch=batch)
    weights = trained(problem, 3, spec.make(1))
    frequency = np.zeros((problem.rows, 3))
    for sentence in twins:
        frequency += naive_online.features(sentence, sentence.gold, (12, 3, rich), edges=True)
    b = 1 / (1 / 0.8 + (1 / 0.1 - 1 / 0.8) * frequency / problem.tokens)
    etas = [[0.4 / (1 + 3.0 / count * 0.4 * (p * count + k)) for k in range(count)] for p in range(3)]
    orders = [pass_order(count, 3, number) for number in (1, 2, 3)]
    expected = naive_online.madf(twins, (12, 3, rich), orders, etas, 3.0, b=b, batch=batch)
    assert_equal_but_for_rounding(all_rows(weights), expected)


def test_the_decay_of_adf_is_the_published_one_to_the_second_order():
    problem, twins = random_problem(31, sentences=23, attributes=12)
    weights = trained(problem, 3, AdfSpec(l2=0.01, c=0.3, window=20, batch=5).make(1))
    orders = [pass_order(23, 3, number) for number in (1, 2, 3)]
    expected = naive_online.adf(
        twins,
        (12, 3, 0),
        orders,
        0.3,
        0.01,
        q=4,
        alpha=0.995,
        beta=0.6,
        batch=5,
        shrink=naive_online.published,
    )
    np.testing.assert_allclose(all_rows(weights), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("spec", [AdfSpec(), MadfSpec()], ids=["adf", "madf"])
def test_adaptive_runs_resume_and_find_their_rate(spec):
    problem, _ = random_problem(33, sentences=30, edge_attributes=3)
    trainer = spec.make(1)
    straight, state = trained(problem, 4, trainer), resumed(problem, 2, 4, trainer)
    assert state["eta0"][0] > 0
    assert trainer.weights(problem, state).values.tobytes() == straight.values.tobytes()
