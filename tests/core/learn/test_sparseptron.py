"""Templates chosen by a perceptron with proximal steps, then another trainer with those alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
from tagsmith.core.learn.trainers.staged.sparseptron import SparseptronSpec
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
    return SparseptronSpec(budget=4, passes=2, every=40, refit=MiraSpec(passes=3), **more)


def test_the_model_has_the_chosen_templates_and_no_others(corpus: Corpus, tmp_path: Path):
    steps: list[Progress] = []
    trainer = {"budget": 4, "every": 40, "passes": 3, "refit": {"kind": "mira", "passes": 5}}
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
    assert result.metrics["dev"]["f1"] > 60
    # What was dropped is not computed when the model is served.
    save(result.model, tmp_path / "model")
    served = load(tmp_path / "model").features
    assert sorted(t.name for t in served.templates if t.slots) == sorted(set(kept) - {"B"})
    tagger = Tagger.open(tmp_path / "model")
    assert len(tagger.weights.lookup.slots.seeds) == len(served.unigrams)
    assert len(tagger.tag([[["Smith", "CAP"], ["1999", "NUM"]]])[0]) == 2


@pytest.mark.parametrize("stop", [1, 2, 4])
def test_a_run_resumed_in_either_stage_gives_the_same_weights(problem: Problem, stop: int):
    straight = trained(problem, 5, short().make(1))
    trainer = short().make(1)
    state = resumed(problem, stop, 5, trainer)
    assert trainer.weights(problem, state).values.tobytes() == straight.values.tobytes()


@pytest.mark.parametrize("stop", [2, 4])
def test_a_job_resumed_from_a_file_gives_the_same_model(corpus: Corpus, tmp_path: Path, stop: int):
    spec = spec_of({"budget": 4, "every": 40, "passes": 2, "refit": {"kind": "mira", "passes": 3}})

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


@pytest.mark.parametrize("groups", ["coarse-to-fine", "label", "sparse-group", "elastic-net"])
def test_the_second_stage_knows_only_what_was_selected(problem: Problem, groups: str):
    spec = short(groups=groups).model_copy(update={"budget": 60 if groups in ("label", "elastic-net") else 5})
    trainer = spec.make(1)
    state = run_to(problem, trainer.start(problem), 2, trainer)
    first = all_rows(trainer.weights(problem, state)).copy()
    last = all_rows(trainer.weights(problem, run_to(problem, state, 5, trainer)))
    assert problem.templates is not None
    of_rows = problem.templates.of_rows(len(problem.labels))
    kept, dropped = np.unique(of_rows[first.any(axis=1)]), np.unique(of_rows[last.any(axis=1)])
    assert set(dropped) <= set(kept)
    assert np.count_nonzero(last) > 0
    if groups not in ("coarse-to-fine", "sparse-group"):
        attributes = slice(0, problem.attributes)
        assert not last[attributes][~first[attributes].any(axis=1)].any()


def test_any_trainer_may_refit(problem: Problem):
    for refit in ({"kind": "sgd-l1"}, {"kind": "lbfgs"}, {"kind": "prox-grad", "strength": 0.1}):
        spec = SparseptronSpec.model_validate({**short().model_dump(mode="json"), "refit": refit})
        assert spec.uses_threads == (refit["kind"] == "lbfgs")
        assert np.count_nonzero(trained(problem, 4, spec.make(1)).values)


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
        ({"strength": 3.0}, "/trainer/strength", "Unknown field"),
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


def test_a_spec_that_was_stored_is_read_again():
    spec = spec_of({"budget": 7, "refit": {"kind": "sgd-l1"}})
    assert parse_job(spec.model_dump(mode="json")) == spec
