"""Templates chosen by a perceptron with proximal steps, then another trainer with those alone."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.kinds import parse_job
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.learn.run.progress import Progress
from tagsmith.core.learn.trainers.margin.mira import MiraSpec
from tagsmith.core.learn.trainers.proximal.prox_grad import ProxGrad, ProxGradSpec
from tagsmith.core.learn.trainers.sizes import sizes_of
from tagsmith.core.learn.trainers.stage_specs import SINGLES
from tagsmith.core.learn.trainers.staged.sparseptron import SparseptronSpec
from tagsmith.core.learn.weights.pairs import existing_marks
from tagsmith.core.model.file import load, save
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.train import TrainResult
from tests.core.learn.runs import all_rows, resumed, run_to, trained
from tests.training import train

#: 11 templates of words and classes around a token, one of pairs of labels, and one of these joined with the class.
FEATURES = {
    "templates": [
        {"grams": 2, "columns": ["word", "1"], "window": 1},
        {"join": ["1[0]"], "edge": True},
        "shape[0]",
        {"edge": True},
    ],
    "derived": {"shape": {"kind": "shape"}},
}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_conll(generate("references", 150, 3), max_line_bytes=1 << 16)


@pytest.fixture(scope="module")
def problem(corpus: Corpus) -> Problem:
    return compile_corpus(FeatureSpec.model_validate(FEATURES).resolve(2), corpus).problem


def spec_of(trainer: dict[str, Any], **more: Any) -> TrainSpec:
    body = {
        "kind": "train",
        "model": "m",
        "corpus": "crp_a",
        "dev": {"fraction": 0.2},
        "trainer": {"kind": "sparseptron", **trainer},
        "features": FEATURES,
        **more,
    }
    return TrainSpec.model_validate(body)


def short(**more: Any) -> SparseptronSpec:
    how = {} if more.get("groups") == "lasso" else {"budget": 4}
    return SparseptronSpec(passes=2, every=40, refit=MiraSpec(passes=3), **{**how, **more})


#: A spec of every kind of groups, with enough of them to learn from.
GROUPS: dict[str, dict[str, Any]] = {
    "template": {},
    "coarse-to-fine": {"budget": 5},
    "label": {"budget": 60},
    "sparse-group": {"budget": 5},
    "elastic-net": {"budget": 60},
    "lasso": {"strength": 3.0},
}


def both_stages(problem: Problem, spec: SparseptronSpec) -> tuple[NDArray[Any], NDArray[Any]]:
    """The weights after the selection and those after the refit."""
    trainer = spec.make(1)
    state = run_to(problem, trainer.start(problem), spec.passes, trainer)
    first = all_rows(trainer.weights(problem, state)).copy()
    last = run_to(problem, state, spec.total_passes, trainer)
    return first, all_rows(trainer.weights(problem, last))


#: Readings, and the F1 that they reach at least. Plain norms prefer large templates, which 120 sentences are few for.
SCORES = [
    ({}, 45),
    ({"rank": "scaled", "shrink": "scaled", "refit_features": "template"}, 60),
]


@pytest.mark.parametrize(("reading", "least"), SCORES, ids=["default", "scaled"])
def test_the_model_has_the_chosen_templates_and_no_others(
    corpus: Corpus, tmp_path: Path, reading: dict[str, Any], least: float
):
    steps: list[Progress] = []
    trainer = {"budget": 4, "every": 40, "passes": 3, "refit": {"kind": "mira", "passes": 5}, **reading}
    result: TrainResult = finished(train(spec_of(trainer), corpus, None), steps.append)
    told = result.metrics["selection"]
    kept = [each["name"] for each in told["templates"] if each["kept"]]
    assert [each["edge"] for each in told["templates"]] == [False] * 11 + [True] * 2
    assert len(told["templates"]) == 13
    assert 2 <= len(kept) <= 4
    assert kept == told["path"][-1]["kept"]
    assert [each["pass"] for each in told["path"]] == [1, 2, 3]
    assert all(each["size"] >= each["features"] for each in told["templates"])
    assert all((each["norm"] > 0) == each["kept"] for each in told["templates"])
    assert sum(each["features"] for each in told["templates"]) == result.active_features
    assert len(told["instantiated_by_pass"]) == 8
    assert told["peak_instantiated"] == max(told["instantiated_by_pass"])
    assert told["instantiated_by_pass"][-1] == result.active_features
    messages = [step.message for step in steps if step.pass_done]
    assert "stage 2: mira" in messages[2]
    assert len(messages) == result.passes == 8
    assert result.metrics["dev"]["f1"] > least
    # What was dropped is not computed when the model is served.
    save(result.model, tmp_path / "model")
    served = load(tmp_path / "model").features
    assert sorted(t.name for t in served.templates if t.slots) == sorted(set(kept) - {"B"})
    tagger = Tagger.open(tmp_path / "model")
    assert len(tagger.weights.lookup.slots.seeds) == len(served.unigrams)
    assert len(tagger.tag([[["Smith", "CAP"], ["1999", "NUM"]]])[0]) == 2


@pytest.mark.parametrize("more", [{}, {"refit_features": "template"}, {"groups": "lasso"}], ids=str)
@pytest.mark.parametrize("stop", [1, 2, 4])
def test_a_run_resumed_in_either_stage_gives_the_same_weights(
    problem: Problem, stop: int, more: dict[str, Any]
):
    straight = trained(problem, 5, short(**more).make(1))
    trainer = short(**more).make(1)
    state = resumed(problem, stop, 5, trainer)
    assert trainer.weights(problem, state).values.tobytes() == straight.values.tobytes()
    # By another process, which has selected nothing itself.
    assert short(**more).make(1).weights(problem, state).values.tobytes() == straight.values.tobytes()


@pytest.mark.parametrize("more", [{"budget": 4}, {"groups": "lasso", "strength": 2.0}], ids=str)
@pytest.mark.parametrize("refit_features", ["nonzero", "template"])
@pytest.mark.parametrize("stop", [2, 4])
def test_a_job_resumed_from_a_file_gives_the_same_model(
    corpus: Corpus, tmp_path: Path, stop: int, refit_features: str, more: dict[str, Any]
):
    trainer = {"every": 40, "passes": 2, "refit": {"kind": "mira", "passes": 3}, **more}
    spec = spec_of({**trainer, "refit_features": refit_features})

    def keep(step: Progress) -> None:
        if step.pass_done and step.pass_number == stop:
            assert step.checkpoint is not None
            step.checkpoint(tmp_path / "checkpoint")

    straight = finished(train(spec, corpus, None), keep)
    again = finished(train(spec, corpus, None, resume=tmp_path / "checkpoint"))
    assert save(straight.model, tmp_path / "a") == save(again.model, tmp_path / "b")
    assert straight.metrics == again.metrics


@pytest.mark.parametrize(
    "stop", [{"patience": 1}, {"kind": "flat", "window": 2, "deviation": 100.0}], ids=["patience", "flat"]
)
def test_rules_to_stop_early_count_the_passes_of_the_refit_alone(corpus: Corpus, stop: dict[str, Any]):
    trainer = {"budget": 2, "every": 10, "passes": 8, "refit": {"kind": "perceptron", "passes": 30}}
    result = finished(train(spec_of(trainer, stop=stop), corpus, None))
    assert result.stop_reason == ("flat" if "kind" in stop else "patience")
    assert result.passes >= 10


@pytest.mark.parametrize("groups", GROUPS)
def test_a_refit_of_whole_templates_uses_all_their_features_and_no_others(problem: Problem, groups: str):
    spec = short(groups=groups, refit_features="template", **GROUPS[groups])
    first, last = both_stages(problem, spec)
    assert problem.templates is not None
    of_rows = problem.templates.of_rows(len(problem.labels))
    before, after = np.unique(of_rows[first.any(axis=1)]), np.unique(of_rows[last.any(axis=1)])
    assert set(after) <= set(before)
    assert (last[first == 0] != 0).any()
    if groups not in ("template", "coarse-to-fine"):
        attributes = slice(0, problem.attributes)
        assert not last[attributes][~first[attributes].any(axis=1)].any()


@pytest.mark.parametrize("groups", GROUPS)
def test_a_refit_of_non_zero_features_leaves_the_others_at_zero(problem: Problem, groups: str):
    first, last = both_stages(problem, short(groups=groups, **GROUPS[groups]))
    # Some attributes have weights for some labels only.
    assert ((first != 0).any(axis=1) & (first == 0).any(axis=1)).any()
    assert not last[first == 0].any()
    assert np.count_nonzero(last) > 0.5 * np.count_nonzero(first) > 0


@pytest.mark.parametrize("refit", [each.model_fields["kind"].default for each in SINGLES])
def test_any_trainer_may_refit_and_leaves_what_was_not_selected_at_zero(problem: Problem, refit: str):
    body = {**short().model_dump(mode="json"), "refit": {"kind": refit, "passes": 2}}
    spec = SparseptronSpec.model_validate(body)
    assert spec.uses_threads == (refit in ("lbfgs", "owlqn"))
    first, last = both_stages(problem, spec)
    assert not last[first == 0].any()
    assert np.count_nonzero(last)


def test_of_features_seen_in_the_corpus_the_refit_has_the_selected_ones(corpus: Corpus):
    seen = {**FEATURES, "pairs": "seen"}
    problem = compile_corpus(FeatureSpec.model_validate(seen).resolve(2), corpus).problem
    first, last = both_stages(problem, short())
    assert not first[~existing_marks(problem)].any()
    assert not last[first == 0].any()
    assert np.count_nonzero(last)


def test_the_message_of_the_last_pass_of_selection_counts_the_features_of_the_refit(problem: Problem):
    for refit_features in ("nonzero", "template"):
        trainer = short(refit_features=refit_features).make(1)
        state = trainer.start(problem)
        reports = (each for each in trainer.passes(problem, state, 3) if each.pass_done)
        _, last = islice(reports, 2)
        weights = all_rows(trainer.weights(problem, state))
        rows = problem.templates.of_rows(len(problem.labels))
        whole = int(np.isin(rows, np.unique(rows[weights.any(axis=1)])).sum()) * len(problem.labels)
        expected = np.count_nonzero(weights) if refit_features == "nonzero" else whole
        assert f"{expected} features; stage 2: mira" in last.message


def test_a_run_that_is_stopped_inside_a_pass_has_the_weights_at_that_point(problem: Problem):
    """Storage grows inside a pass, in either stage."""
    spec = SparseptronSpec(passes=1, every=40, refit=ProxGradSpec(passes=2, loss="perceptron"))
    trainer, alone = spec.make(1), ProxGrad(spec.selection())
    state, own = trainer.start(problem), alone.start(problem)
    inside = islice(zip(trainer.passes(problem, state, 3), alone.passes(problem, own, 3), strict=False), 3)
    for _ in inside:
        found = trainer.weights(problem, state).values
        assert np.count_nonzero(found)
        assert found.tobytes() == alone.weights(problem, own).values.tobytes()
    for report in trainer.passes(problem, run_to(problem, state, 2, trainer), 3):
        assert np.count_nonzero(trainer.weights(problem, state).values)
        if report.pass_done:
            break


def test_a_trainer_of_several_runs_does_not_mix_their_selections(problem: Problem):
    """Runs of other seeds keep the same templates, but other features of them."""
    spec = short(budget=13)
    shared = spec.make(1)
    states = [run_to(problem, shared.start(problem), 5, shared, seed) for seed in (3, 4)]
    for seed, state in zip((3, 4), states, strict=True):
        alone = trained(problem, 5, spec.make(1), seed)
        assert shared.weights(problem, state).values.tobytes() == alone.values.tobytes()


def test_of_a_template_given_twice_one_is_kept_and_with_nothing_to_learn_nothing_is(corpus: Corpus):
    trainer = {"budget": 1, "passes": 2, "refit": {"kind": "lbfgs", "passes": 2}}
    twice = finished(train(spec_of(trainer, features={"templates": "U0:%x[0,1]\nU1:%x[0,1]"}), corpus, None))
    assert [each["kept"] for each in twice.metrics["selection"]["templates"]] == [True, False]
    single = read_conll([b"a N X\n\nb N X\n\n"], max_line_bytes=1 << 16)
    assert finished(train(spec_of(trainer, dev=None), single, None)).active_features == 0


@pytest.mark.parametrize(
    ("trainer", "pointer", "reason"),
    [
        ({"budget": 0}, "/trainer/budget", "greater than or equal to 1"),
        ({"strength": 3.0}, "/trainer/strength", 'only to groups "lasso"'),
        ({"groups": "lasso", "budget": 3}, "/trainer/budget", "Set `strength` instead"),
        ({"groups": "lasso", "strength": 3.0, "budget": 3}, "/trainer/budget", "Set `strength` instead"),
        ({"groups": "lasso", "strength": -3.0}, "/trainer/strength", "greater than or equal to 0"),
        ({"groups": "lasso", "shrink": "scaled"}, "/trainer/shrink", "applies only to a `budget`"),
        ({"rank": "scaled"}, "/trainer/rank", "more groups than the budget"),
        ({"refit_features": "all"}, "/trainer/refit_features", "Known: nonzero, template"),
        ({"loss": "crf"}, "/trainer/loss", "Unknown field"),
        ({"l1": 1.0}, "/trainer/l1", "sparse-group"),
        ({"passes": 0}, "/trainer/passes", "greater than or equal to 1"),
        ({"refit": {"kind": "sparseptron"}}, "/trainer/refit/kind", "sgd"),
        ({"refit": {"kind": "mira", "C": -1.0}}, "/trainer/refit/C", "greater than 0"),
    ],
)
def test_specs_that_cannot_be_are_pointed_at(trainer, pointer, reason):
    body = {"kind": "train", "model": "m", "corpus": "crp_a", "trainer": {"kind": "sparseptron", **trainer}}
    with pytest.raises(Invalid) as raised:
        parse_job(body)
    assert pointer in [fault.pointer for fault in raised.value.faults]
    assert any(reason in fault.reason for fault in raised.value.faults)


@pytest.mark.parametrize(
    "trainer",
    [
        {"budget": 7, "refit": {"kind": "sgd-l1"}},
        {"rank": "scaled", "shrink": "scaled", "refit_features": "template"},
        {"groups": "lasso", "strength": 2.0},
    ],
    ids=str,
)
def test_a_spec_that_was_stored_is_read_again(trainer: dict[str, Any]):
    spec = spec_of(trainer)
    assert parse_job(spec.model_dump(mode="json")) == spec


def test_a_spec_that_was_stored_before_there_were_readings_is_read():
    added = {"rank", "shrink", "refit_features", "strength"}
    stored = spec_of({"budget": 30}).model_dump(mode="json")
    stored["trainer"] = {name: value for name, value in stored["trainer"].items() if name not in added}
    assert parse_job(stored) == spec_of({"budget": 30})


def test_the_defaults_are_a_budget_of_30_and_a_strength_of_1(problem: Problem):
    assert SparseptronSpec().selection() == SparseptronSpec(budget=30).selection()
    one, other = (short(groups="lasso", **how).make(1) for how in ({}, {"strength": 1.0}))
    assert trained(problem, 3, one).values.tobytes() == trained(problem, 3, other).values.tobytes()


def test_a_stronger_lasso_leaves_fewer_features(problem: Problem):
    counts = [
        np.count_nonzero(both_stages(problem, short(groups="lasso", strength=strength))[0])
        for strength in (0.0, 1.0, 5.0)
    ]
    assert counts[0] > counts[1] > counts[2] > 0


def test_the_bits_of_trainable_features_are_in_the_estimate_of_memory(problem: Problem):
    sizes = sizes_of(problem)
    whole, frozen = short(refit_features="template"), short()
    bits = 2 * problem.rows * problem.width // 8
    assert frozen.state_bytes(sizes, 1) - whole.state_bytes(sizes, 1) == bits
    assert frozen.held_bytes(sizes) == frozen.state_bytes(sizes, 1)
