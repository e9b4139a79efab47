"""Tuning: every candidate on every fold, the best spec, and a version of it."""

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.jobs.kinds import parse_job
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.jobs.kinds.tune import TuneSpec
from tagsmith.core.learn.trainers.sgd import descent
from tagsmith.core.model.file import save
from tagsmith.core.pipeline.experiments import tune as module
from tagsmith.core.pipeline.experiments.folds import parts
from tagsmith.core.pipeline.experiments.series import EveryRunFailed
from tagsmith.core.pipeline.experiments.tune import Tuned
from tagsmith.core.pipeline.train import train as train_learning
from tests.core.pipeline.experiments import runs
from tests.training import train

FIELDS: dict[str, Any] = {"trainer.C": [0.01, 0.1], "features.cutoff": [1, 3]}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return runs.corpus(90)


def spec_of(**changes: Any) -> TuneSpec:
    body = {
        "kind": "tune",
        "corpus": "crp_a",
        "features": runs.FEATURES,
        "trainer": {"kind": "pa", "passes": 2},
        "search": {"kind": "grid", "fields": FIELDS},
        "folds": 3,
    }
    spec = parse_job({**body, **changes})
    assert isinstance(spec, TuneSpec)
    return spec


TRAINED = {"train": {"model": "m"}}


@pytest.fixture(scope="module")
def straight(corpus: Corpus) -> tuple[list[Any], Tuned]:
    return runs.driven(runs.tune(spec_of(**TRAINED), corpus))


def test_the_table_is_that_of_training_each_fold_alone(
    corpus: Corpus, straight: tuple[list[Any], Tuned]
) -> None:
    result = straight[1].result
    dealt = parts(corpus.sentences, 3, 1)
    for row in result["table"]:
        # Compiled anew, attributes are numbered differently, and float32 sums come in another order.
        scores = []
        for held_out in dealt:
            rest = np.setdiff1d(np.arange(corpus.sentences), held_out)
            body = {
                "kind": "train", "model": "m", "corpus": "crp_a", "dev": {"corpus": "crp_b"},
                "trainer": {"kind": "pa", "passes": 2, "C": row["values"]["trainer.C"]},
                "features": {**runs.FEATURES, "cutoff": row["values"]["features.cutoff"]},
            }  # fmt: skip
            alone = train(TrainSpec.model_validate(body), corpus.subset(rest), corpus.subset(held_out))
            scores.append(runs.driven(alone)[1].metrics["dev"]["f1"])
        assert row["scores"] == pytest.approx(scores, abs=0.5)
        assert row["mean"] == fmean(row["scores"])
        assert row["deviation"] == stdev(row["scores"])
        assert row["passes"] == 2
        assert row["seconds"] > 0
    assert [row["values"] for row in result["table"]] == [
        {"features.cutoff": cutoff, "trainer.C": c} for cutoff in (1, 3) for c in (0.01, 0.1)
    ]
    best = max(result["table"], key=lambda row: row["mean"])
    assert result["best"]["candidate"] == best["candidate"]
    assert result["best"]["spec"]["trainer"]["C"] == best["values"]["trainer.C"]
    assert (result["score"], result["folds"]) == ("f1", 3)


def test_the_version_is_that_of_a_train_job_with_the_best_spec(
    corpus: Corpus, straight: tuple[list[Any], Tuned], tmp_path: Path
) -> None:
    tuned = straight[1]
    assert tuned.trained is not None
    best = tuned.result["best"]["spec"]
    body = {"kind": "train", "model": "m", "corpus": "crp_a", **best}
    alone = runs.driven(train(TrainSpec.model_validate(body), corpus, None))[1]
    assert save(tuned.trained.model, tmp_path / "a") == save(alone.model, tmp_path / "b")
    assert tuned.best.model_dump(mode="json") == best


def test_the_corpus_is_compiled_once_whatever_the_cutoff(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []
    real = module.compile_corpus
    monkeypatch.setattr(module, "compile_corpus", lambda *args: compiled.append(args) or real(*args))
    runs.driven(runs.tune(spec_of(), corpus))
    assert len(compiled) == 1
    compiled.clear()
    fields = {"features.templates": ["U:%x[0,0]\nB", "U:%x[0,1]\nB"], "trainer.C": [0.1, 1.0]}
    _, tuned = runs.driven(runs.tune(spec_of(search={"kind": "grid", "fields": fields}), corpus))
    assert len(compiled) == 2
    assert len(tuned.result["table"]) == 4


def test_runs_are_told_one_by_one_and_passes_are_not(straight: tuple[list[Any], Tuned]) -> None:
    said = straight[0]
    ended = [step.run for step in said if step.event == "run"]
    assert [run.number for run in ended] == list(range(1, 13))
    assert {run.of for run in ended} == {13}
    assert ended[0].name == "candidate 1, fold 1"
    assert not any(step.event == "pass" for step in said)
    fractions = [step.fraction for step in said]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


@pytest.mark.parametrize("number", [5, 12, 13])
def test_what_was_done_is_not_done_again(
    corpus: Corpus, straight: tuple[list[Any], Tuned], tmp_path: Path, number: int
) -> None:
    """In the middle of a fold, and of the last training."""
    step = runs.until(
        runs.tune(spec_of(**TRAINED), corpus),
        lambda step: step.checkpoint is not None and step.run.number == number and step.pass_number == 1,
    )
    assert step.checkpoint is not None
    step.checkpoint(tmp_path / "checkpoint")
    said, tuned = runs.driven(runs.tune(spec_of(**TRAINED), corpus, resume=tmp_path / "checkpoint"))
    assert [each.run.number for each in said if each.event == "run"] == list(range(number, 13))
    assert runs.without_seconds(tuned.result) == runs.without_seconds(straight[1].result)
    assert tuned.trained is not None
    assert straight[1].trained is not None
    assert save(tuned.trained.model, tmp_path / "a") == save(straight[1].trained.model, tmp_path / "b")


def test_training_on_everything_takes_as_many_passes_as_the_folds_took(corpus: Corpus) -> None:
    trainer = {"kind": "averaged-perceptron", "passes": 40}
    fields = {"stop.patience": [2, 4]}
    spec = spec_of(
        trainer=trainer, stop={"patience": 1}, search={"kind": "grid", "fields": fields}, **TRAINED
    )
    _, tuned = runs.driven(runs.tune(spec, corpus))
    best = tuned.result["table"][tuned.result["best"]["candidate"] - 1]
    assert best["best_pass"] < best["passes"] < 40
    assert tuned.trained is not None
    assert tuned.trained.passes == round(best["best_pass"])
    assert tuned.result["best"]["spec"]["stop"] == {"kind": "patience", "patience": None, "max_seconds": None}


#: Trainers of several stages, with a best pass that comes before the last stage.
STAGED: list[tuple[dict[str, Any], int]] = [
    ({"kind": "two-stage", "passes": 12, "first": {"kind": "sgd-l1", "passes": 10}}, 3),
    ({"kind": "asgd", "passes": 12, "start": 8}, 3),
    ({"kind": "sparseptron", "passes": 2, "refit": {"kind": "mira", "passes": 9}}, 5),
]


@pytest.mark.parametrize(
    ("trainer", "early"), STAGED, ids=lambda value: value["kind"] if isinstance(value, dict) else ""
)
def test_the_best_spec_of_trainers_of_several_stages_can_be_trained(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, trainer: dict[str, Any], early: int
) -> None:
    entry = module._entry
    monkeypatch.setattr(module, "_entry", lambda learned: {**entry(learned), "best_pass": early})
    spec = spec_of(
        trainer=trainer,
        stop={"patience": 2},
        search={"kind": "grid", "fields": {"features.cutoff": [1]}},
        folds=2,
        **TRAINED,
    )
    _, tuned = runs.driven(runs.tune(spec, corpus))
    assert tuned.trained is not None
    assert tuned.trained.passes == early
    # The spec that the result shows can be posted.
    body = {"kind": "train", "model": "m", "corpus": "crp_a", **tuned.result["best"]["spec"]}
    assert TrainSpec.model_validate(body).trainer.total_passes == early


def test_a_candidate_that_fails_is_passed_over(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    # No rate that a spec may ask for makes the loss infinite: what counts as infinite is lowered to what one reaches.
    monkeypatch.setattr(descent, "isfinite", lambda loss: loss < 1e6)
    trainer = {"kind": "sgd", "passes": 2}
    fields: dict[str, Any] = {"trainer.schedule.eta0": [1e6, 0.5]}
    said, tuned = runs.driven(
        runs.tune(spec_of(trainer=trainer, search={"kind": "grid", "fields": fields}), corpus)
    )
    wild, fine = tuned.result["table"]
    assert (wild["mean"], wild["error"]["code"], fine["error"]) == (None, "diverged", None)
    assert tuned.result["best"]["candidate"] == 2
    assert sum("failed" in step.message for step in said) == 3
    with pytest.raises(EveryRunFailed, match="finite"):
        runs.driven(
            runs.tune(
                spec_of(trainer=trainer, search={"kind": "grid", "fields": {"trainer.schedule.eta0": [1e6]}}),
                corpus,
            )
        )


def test_on_a_dev_corpus_the_scores_are_those_of_training_with_it_and_so_is_the_version(
    corpus: Corpus,
) -> None:
    learn, dev = corpus.split(0.25, seed=3)
    spec = spec_of(**TRAINED, folds=None, dev={"corpus": "crp_b"})
    said, tuned = runs.driven(runs.tune(spec, learn, dev))
    assert tuned.result["folds"] is None
    scores = []
    for candidate, row in zip(spec.candidates, tuned.result["table"], strict=True):
        _, alone = runs.driven(train_learning(candidate.learning, learn, dev))
        assert row["scores"] == [alone.metrics["dev"]["f1"]]
        assert (row["mean"], row["deviation"]) == (row["scores"][0], None)
        scores.append(row["mean"])
    assert tuned.result["best"]["mean"] == max(scores)
    assert tuned.trained is not None
    assert tuned.trained.metrics["dev"]["f1"] == max(scores)
    assert max(report.run.of for report in said if report.run is not None) == len(scores) + 1


@pytest.mark.parametrize(
    ("given", "folds", "dev"),
    [
        ({}, 4, None),
        ({"folds": 3}, 3, None),
        ({"dev": {"corpus": "d"}}, None, "d"),
        ({"folds": None, "dev": {"corpus": "d"}}, None, "d"),
        ({"folds": None, "dev": None}, 4, None),
    ],
)
def test_a_search_has_folds_or_a_dev_corpus_and_says_so_when_stored(
    given: dict[str, Any], folds: int | None, dev: str | None
) -> None:
    body = spec_of().model_dump(mode="json", exclude={"folds", "dev"})
    spec = parse_job({**body, **given})
    assert isinstance(spec, TuneSpec)
    assert (spec.folds, spec.dev and spec.dev.corpus) == (folds, dev)
    assert parse_job(spec.model_dump(mode="json")) == spec


def test_folds_and_a_dev_corpus_exclude_each_other() -> None:
    with pytest.raises(Invalid) as caught:
        spec_of(dev={"corpus": "crp_b"})
    (fault,) = caught.value.faults
    assert (fault.pointer, "not both" in fault.reason) == ("/folds", True)
