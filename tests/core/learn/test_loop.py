"""The pass loop on a generated corpus: progress, scores, every reason to stop, determinism."""

import time
from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.evaluate.segmentation import score_name
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.run.loop import Progress
from tagsmith.core.learn.run.stopping import is_flat
from tagsmith.core.learn.trainers.base import Diverged
from tagsmith.core.model.file import save
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.train import TrainResult
from tests.training import train


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_conll(generate("references", 500, 5), max_line_bytes=1 << 16)


def _spec(**changes: Any) -> TrainSpec:
    body = {"kind": "train", "model": "m", "corpus": "crp_a", "features": {"preset": "chunking"}, **changes}
    return TrainSpec.model_validate(body)


def _run(spec: TrainSpec, corpus: Corpus, dev: Corpus | None = None) -> tuple[list[Progress], TrainResult]:
    steps: list[Progress] = []
    return steps, finished(train(spec, corpus, dev), steps.append)


def test_a_run_reports_each_pass_and_learns(corpus: Corpus):
    steps, result = _run(_spec(trainer={"kind": "sgd-l1", "passes": 8}, dev={"fraction": 0.2}), corpus)
    passes = [step for step in steps if step.pass_done]
    assert [step.pass_number for step in passes] == list(range(1, 9))
    assert passes[-1].fraction == 1.0
    assert [step.phase for step in steps[:2]] == ["compile", "compile"]
    assert any(step.phase == "calibrate" for step in steps)
    assert passes[-1].objective < passes[0].objective / 3
    assert passes[-1].active_features == result.active_features
    assert result.metrics["dev"]["f1"] > 75
    assert result.stop_reason == "passes"
    assert result.passes == 8
    assert result.train_seconds > 0


def test_the_final_objective_is_exact(corpus: Corpus):
    steps, result = _run(_spec(trainer={"kind": "sgd-l1", "l1": 0.7, "passes": 20}), corpus)
    assert (steps[-1].objective, steps[-1].objective_kind) == (result.objective, "exact")
    estimate = next(step.objective for step in reversed(steps) if step.pass_done)
    assert result.objective == pytest.approx(estimate, rel=0.2)
    assert result.objective != estimate


def test_the_same_spec_and_seed_give_the_same_bytes(corpus: Corpus, tmp_path: Path):
    spec = _spec(trainer={"kind": "sgd-l1", "passes": 3}, dev={"fraction": 0.1}, seed=11)
    first, second = (save(_run(spec, corpus)[1].model, tmp_path / name) for name in "ab")
    other = save(
        _run(_spec(trainer={"kind": "sgd-l1", "passes": 3}, seed=12), corpus)[1].model, tmp_path / "c"
    )
    assert first == second != other


def _widths(values: list[float], window: int) -> list[float]:
    """How far apart the values of each so many adjacent passes lie."""
    return [
        max(values[i : i + window]) - min(values[i : i + window]) for i in range(len(values) - window + 1)
    ]


def test_flat_scores_end_training_with_the_last_pass(corpus: Corpus):
    stop = {"kind": "flat", "window": 4, "deviation": 0.3}
    spec = _spec(trainer={"kind": "averaged-perceptron", "passes": 200}, dev={"fraction": 0.3}, stop=stop)
    _, result = _run(spec, corpus)
    assert result.stop_reason == "flat"
    scores = [point["dev_score"] for point in result.curve]
    assert 4 <= len(scores) == result.passes < 200
    *before, last = _widths(scores, 4)
    assert last < 0.3
    assert all(width >= 0.3 for width in before)
    assert result.metrics["dev"]["f1"] == scores[-1]


def test_without_a_dev_set_a_flat_objective_ends_training(corpus: Corpus):
    stop = {"kind": "flat", "window": 3, "deviation": 0.1}
    _, result = _run(_spec(trainer={"kind": "sgd", "passes": 200}, stop=stop), corpus)
    assert result.stop_reason == "flat"
    objectives = [point["objective"] for point in result.curve]
    assert len(objectives) < 200
    flat = [w < 0.1 * objectives[i + 2] for i, w in enumerate(_widths(objectives, 3))]
    assert flat == [False] * (len(flat) - 1) + [True]


@pytest.mark.parametrize(
    ("scores", "objectives", "kinds", "expected"),
    [
        ([90.0, 90.005, 90.009], [3, 2, 1], "eee", True),
        ([90.0, 90.005, 90.01], [1, 1, 1], "eee", False),
        ([80.0, 90.0, 90.0, 90.0], [1, 1, 1, 1], "eeee", True),
        ([90.0, 90.0], [1, 1], "ee", False),
        ([None] * 3, [1.005, 1.0, 1.0], "eee", True),
        ([None] * 3, [1.01, 1.0, 1.0], "eee", False),
        ([None] * 3, [1.0, 1.0, 1.0], "eex", False),
        ([None] * 3, [0.0, 0.0, 0.0], "eee", False),
    ],
)
def test_what_counts_as_flat(scores: list[Any], objectives: list[float], kinds: str, expected: bool):
    curve = [
        {"dev_score": score, "objective": objective, "objective_kind": kind}
        for score, objective, kind in zip(scores, objectives, kinds, strict=True)
    ]
    assert is_flat(curve, 3, 0.01) is expected


def test_patience_ends_training_and_keeps_the_best_pass(corpus: Corpus):
    steps, result = _run(
        _spec(trainer={"kind": "sgd-l1", "passes": 200}, dev={"fraction": 0.3}, stop={"patience": 3}), corpus
    )
    scores = [step.dev["f1"] for step in steps if step.pass_done]
    assert result.stop_reason == "patience"
    assert len(scores) == scores.index(max(scores)) + 1 + 3
    assert result.metrics["dev"]["f1"] == max(scores)


def test_a_time_budget_ends_training_with_what_was_learned(corpus: Corpus):
    spec = _spec(trainer={"kind": "sgd-l1", "passes": 100_000}, stop={"max_seconds": 0.4})
    _, result = _run(spec, corpus)
    assert result.stop_reason == "max_seconds"
    assert result.train_seconds >= 0.4
    assert result.passes < 100_000
    assert result.active_features > 0


def test_a_tolerance_ends_training_when_the_objective_stands_still(corpus: Corpus):
    _, result = _run(_spec(trainer={"kind": "sgd-l1", "passes": 500, "tolerance": 0.01}), corpus)
    assert result.stop_reason == "tolerance"
    assert result.passes < 100


def test_a_run_can_be_stopped_between_any_two_steps_within_a_second(corpus: Corpus):
    big = corpus.subset(list(range(corpus.sentences)) * 60)
    run = train(_spec(trainer={"kind": "sgd-l1", "passes": 3}), big, None)
    # Of this thread's own time: what else runs on the machine is not the loop's doing.
    slowest, began = 0.0, time.thread_time()
    for step in run:
        now = time.thread_time()
        if step.phase == "train":
            slowest = max(slowest, now - began)
        began = now
        if step.pass_number == 1 and step.pass_done:
            break
    run.close()
    assert slowest < 1.0


def test_dev_labels_that_training_never_saw_count_as_wrong(corpus: Corpus):
    dev = read_conll([b"Smith CAP B-NEW\n, PUNCT O\n"], max_line_bytes=100)
    _, result = _run(_spec(trainer={"kind": "sgd-l1", "passes": 1}), corpus, dev)
    assert result.metrics["dev"]["gold"] == 1
    assert result.metrics["dev"]["correct"] == 0


@pytest.mark.parametrize(
    ("labels", "score"),
    [
        ("B-X I-X O", "f1"),
        ("B I O", "f1"),
        ("B I E S O", "f1"),
        ("B M E S", "f1"),
        ("NN VB O", "accuracy"),
        ("B N V", "accuracy"),
    ],
)
def test_the_score_is_f1_where_labels_code_spans_or_words(labels: str, score: str):
    assert score_name(tuple(labels.split())) == score


def test_untyped_spans_are_scored_by_f1():
    text = b"a B\nb I\nc O\n\nd O\ne O\n"
    dev = read_conll([b"a B\nc I\nb O\n\nd O\n"], max_line_bytes=100)
    features = {"templates": "U:%x[0,0]"}
    spec = _spec(features=features, trainer={"kind": "averaged-perceptron", "passes": 2})
    _, result = _run(spec, read_conll([text], max_line_bytes=100), dev)
    found = result.metrics["dev"]
    assert found["f1"] != found["accuracy"]
    assert result.curve[-1]["dev_score"] == found["f1"]


def test_an_unlabelled_corpus_cannot_be_trained_on():
    plain = read_conll([b"a b\nc d\n"], max_line_bytes=100, labelled=False)
    with pytest.raises(Invalid) as raised:
        _run(_spec(features={"templates": "U:%x[0,0]"}), plain)
    assert raised.value.code == "unlabelled_corpus"


@pytest.mark.parametrize("text", [b"a O\n", b"a O\n\nb O\n\nc O\n", b"a X\n\na X\n"])
def test_the_smallest_corpora_train_and_tag(text: bytes, tmp_path: Path):
    tiny = read_conll([text], max_line_bytes=100)
    _, result = _run(
        _spec(features={"templates": "U:%x[0,0]\nB"}, trainer={"kind": "sgd-l1", "passes": 2}), tiny
    )
    save(result.model, tmp_path / "m")
    assert Tagger.open(tmp_path / "m").tag([["a", "zzz"]])[0][0] in ("O", "X")


def test_a_cutoff_that_drops_everything_still_gives_a_model(corpus: Corpus):
    _, result = _run(
        _spec(
            features={"templates": "U:%x[0,0]\nB", "cutoff": 1_000_000},
            trainer={"kind": "sgd-l1", "passes": 1},
        ),
        corpus,
    )
    assert result.model.attributes.size == 0


TRAINERS = [
    {"kind": "sgd-l1", "passes": 8},
    {"kind": "sgd-l1", "passes": 8, "penalty": "clipping"},
    {"kind": "sgd-l1", "passes": 8, "line_search": "heuristic"},
    {"kind": "sgd", "passes": 8},
    {"kind": "lbfgs", "passes": 30},
    {"kind": "owlqn", "passes": 30},
    {"kind": "two-stage", "passes": 20},
    {"kind": "averaged-perceptron", "passes": 8},
    {"kind": "pa", "passes": 8},
    {"kind": "mira", "passes": 8},
    {"kind": "dca", "passes": 8},
    {"kind": "arow", "passes": 8},
    {"kind": "cw", "passes": 8},
    {"kind": "adf", "passes": 8},
    {"kind": "madf", "passes": 8},
    {"kind": "prox-grad", "passes": 8},
    {"kind": "sparseptron", "budget": 4, "refit": {"kind": "mira", "passes": 5}},
    {"kind": "sparseptron", "groups": "lasso", "refit": {"kind": "mira", "passes": 5}},
]


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda t: "-".join(map(str, t.values())))
@pytest.mark.parametrize("pairs", ["all", "seen"])
def test_every_trainer_learns_and_resumes_to_the_same_bytes(corpus: Corpus, tmp_path: Path, trainer, pairs):
    features = {"templates": "U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-1,1]\nU03:%x[1,1]\nB", "pairs": pairs}
    spec = _spec(trainer=trainer, features=features, dev={"fraction": 0.2}, stop={"patience": 6})
    checkpoint = tmp_path / "checkpoint"

    def keep(step: Progress) -> None:
        if step.pass_done and step.pass_number == 4:
            assert step.checkpoint is not None
            step.checkpoint(checkpoint)

    straight = finished(train(spec, corpus, None), keep)
    assert straight.metrics["dev"]["f1"] > 60
    steps: list[Progress] = []
    resumed = finished(train(spec, corpus, None, resume=checkpoint), steps.append)
    assert next(step.pass_number for step in steps if step.pass_done) == 5
    assert save(straight.model, tmp_path / "a") == save(resumed.model, tmp_path / "b")
    assert straight.objective == resumed.objective
    strip = [{k: x for k, x in point.items() if k != "seconds"} for point in straight.curve]
    assert strip == [{k: x for k, x in point.items() if k != "seconds"} for point in resumed.curve]


def test_a_checkpoint_of_another_run_is_refused(corpus: Corpus, tmp_path: Path):
    for step in train(_spec(trainer={"kind": "sgd", "passes": 2}), corpus, None):
        if step.pass_done:
            step.checkpoint(tmp_path / "c")
            break
    with pytest.raises(Invalid, match="another run"):
        list(train(_spec(trainer={"kind": "lbfgs"}), corpus, None, resume=tmp_path / "c"))


def test_training_starts_from_another_models_weights(corpus: Corpus):
    _, first = _run(_spec(trainer={"kind": "owlqn", "passes": 30}), corpus)
    spec = _spec(trainer={"kind": "owlqn", "passes": 1}, init="m:1")
    steps: list[Progress] = []
    second = finished(train(spec, corpus, None, init=first.model), steps.append)
    assert f"{first.active_features} weights carry over from m:1" in [step.message for step in steps]
    assert second.objective <= first.objective * (1 + 1e-6)


def test_the_objective_is_exact_at_every_pass_when_asked(corpus: Corpus):
    steps, result = _run(_spec(trainer={"kind": "sgd-l1", "passes": 3}, objective="exact"), corpus)
    done = [step for step in steps if step.pass_done]
    assert {step.objective_kind for step in done} == {"exact"}
    assert done[-1].objective == pytest.approx(result.objective, rel=1e-9)
    assert [point["objective"] for point in result.curve] == [step.objective for step in done]


def test_a_batch_trainer_stops_when_it_has_converged(corpus: Corpus):
    steps, result = _run(_spec(trainer={"kind": "owlqn", "tolerance": 0.01}), corpus)
    assert result.stop_reason == "converged"
    assert result.passes < 100
    assert {step.objective_kind for step in steps if step.pass_done} == {"exact"}


def test_a_run_that_ends_far_above_the_objective_of_no_training_has_diverged(corpus: Corpus):
    bold = {"kind": "exponential", "eta0": 1e6, "alpha": 1.0}
    with pytest.raises(Diverged, match="without any training"):
        _run(_spec(trainer={"kind": "sgd", "passes": 1, "schedule": bold}), corpus)
