"""Comparing trainers: one table, curves that do not mix, the same after an interruption."""

from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.base.flat_file import CorruptFile
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.jobs.kinds import parse_job
from tagsmith.core.jobs.kinds.compare import CompareSpec
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.pipeline.experiments import compare as module
from tagsmith.core.pipeline.experiments.compare import passes_to_near
from tagsmith.core.pipeline.experiments.series import EveryRunFailed
from tests.core.pipeline.experiments import runs
from tests.training import train

TRAINERS: list[dict[str, Any]] = [
    {"kind": "averaged-perceptron", "passes": 4},
    {"kind": "sgd-l1", "passes": 3, "schedule": {"eta0": 0.5}, "name": "l1"},
    {"kind": "lbfgs", "passes": 5},
]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return runs.corpus()


def spec_of(**changes: Any) -> CompareSpec:
    body = {"kind": "compare", "corpus": "crp_a", "dev": {"fraction": 0.25}, "features": runs.FEATURES}
    spec = parse_job({**body, "trainers": TRAINERS, **changes})
    assert isinstance(spec, CompareSpec)
    return spec


@pytest.fixture(scope="module")
def straight(corpus: Corpus) -> tuple[list[Any], dict[str, Any]]:
    return runs.driven(runs.compare(spec_of(), corpus))


def test_each_row_is_what_training_alone_would_give(
    corpus: Corpus, straight: tuple[list[Any], dict[str, Any]]
) -> None:
    result = straight[1]
    assert [row["name"] for row in result["table"]] == ["averaged-perceptron", "l1", "lbfgs"]
    assert result["score"] == "f1"
    for row, curve, trainer in zip(result["table"], result["curves"], TRAINERS, strict=True):
        plain = {key: value for key, value in trainer.items() if key != "name"}
        body = {"kind": "train", "model": "m", "corpus": "crp_a", "dev": {"fraction": 0.25}, "trainer": plain}
        alone = runs.driven(
            train(TrainSpec.model_validate({**body, "features": runs.FEATURES}), corpus, None)
        )[1]
        assert (row["objective"], row["active_features"]) == (alone.objective, alone.active_features)
        assert (row["passes"], row["score"]) == (alone.passes, alone.metrics["dev"]["f1"])
        assert row["accuracy"] == alone.metrics["dev"]["accuracy"]
        assert curve["name"] == row["name"]
        assert runs.without_seconds(curve["points"]) == runs.without_seconds(alone.curve)
        assert row["passes_to_near"] == passes_to_near(alone.curve, row["score"])


def test_events_name_their_run_and_progress_never_falls(straight: tuple[list[Any], dict[str, Any]]) -> None:
    said = straight[0]
    passes = [(step.run.name, step.pass_number) for step in said if step.event == "pass"]
    expected = [("averaged-perceptron", i) for i in range(1, 5)] + [("l1", i) for i in range(1, 4)]
    assert passes[:7] == expected
    assert {name for name, _ in passes[7:]} == {"lbfgs"}
    ended = [step for step in said if step.event == "run"]
    assert [(step.run.name, step.run.number, step.run.of) for step in ended] == [
        ("averaged-perceptron", 1, 3), ("l1", 2, 3), ("lbfgs", 3, 3),
    ]  # fmt: skip
    assert ended[0].as_dict()["run"]["outcome"]["score"] > 20
    assert "curve" not in ended[0].as_dict()["run"]["outcome"]
    fractions = [step.fraction for step in said]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    # Told in whole milliseconds.
    assert ended[1].eta_seconds == pytest.approx(ended[1].seconds / 2, abs=0.0006)


@pytest.mark.parametrize("where", ["in the second run", "between two runs", "after the last"])
def test_what_was_done_is_not_done_again(
    corpus: Corpus, straight: tuple[list[Any], dict[str, Any]], tmp_path: Path, where: str
) -> None:
    reached = {
        "in the second run": lambda step: (
            step.event == "pass" and step.run.number == 2 and step.pass_number == 2
        ),
        "between two runs": lambda step: step.event == "run" and step.run.number == 1,
        "after the last": lambda step: step.event == "run" and step.run.number == 3,
    }[where]
    step = runs.until(runs.compare(spec_of(), corpus), reached)
    assert step.checkpoint is not None
    step.checkpoint(tmp_path / "checkpoint")
    said, result = runs.driven(runs.compare(spec_of(), corpus, resume=tmp_path / "checkpoint"))
    assert runs.without_seconds(result) == runs.without_seconds(straight[1])
    again = [(each.run.number, each.pass_number) for each in said if each.event == "pass"]
    first = {"in the second run": [(2, 3)], "between two runs": [(2, 1)], "after the last": []}[where]
    assert again[:1] == first
    assert (
        said[0].fraction
        >= {"in the second run": 1 / 3, "between two runs": 1 / 3, "after the last": 1}[where]
    )


def test_a_checkpoint_of_another_job_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    step = runs.until(
        runs.compare(spec_of(), corpus), lambda step: step.event == "run" and step.run.number == 2
    )
    assert step.checkpoint is not None
    step.checkpoint(tmp_path / "checkpoint")
    fewer = spec_of(trainers=TRAINERS[:1])
    with pytest.raises(CorruptFile, match="another job"):
        runs.driven(runs.compare(fewer, corpus, resume=tmp_path / "checkpoint"))


def test_a_trainer_that_fails_leaves_the_others_their_rows(corpus: Corpus) -> None:
    strange = {"kind": "pa", "costs": {"B-NOWHERE": 2.0}, "passes": 2}
    said, result = runs.driven(runs.compare(spec_of(trainers=[strange, TRAINERS[0]]), corpus))
    failed, fine = result["table"]
    assert failed["error"]["code"] == "unknown_label"
    assert "score" not in failed
    assert fine["score"] > 20
    assert [curve["name"] for curve in result["curves"]] == ["averaged-perceptron"]
    assert any("pa failed" in step.message for step in said)
    with pytest.raises(EveryRunFailed, match="costs name labels"):
        runs.driven(runs.compare(spec_of(trainers=[strange]), corpus))


def test_the_flat_rule_ends_each_trainer_by_its_own_scores(corpus: Corpus) -> None:
    trainers = [{"kind": "averaged-perceptron", "passes": 60}, {"kind": "pa", "passes": 60}]
    stop = {"kind": "flat", "window": 3, "deviation": 0.5}
    _, result = runs.driven(runs.compare(spec_of(trainers=trainers, stop=stop), corpus))
    for row, curve in zip(result["table"], result["curves"], strict=True):
        assert row["stop_reason"] == "flat"
        scores = [point["dev_score"] for point in curve["points"]]
        windows = [max(scores[i : i + 3]) - min(scores[i : i + 3]) for i in range(len(scores) - 2)]
        assert windows[-1] < 0.5
        assert all(width >= 0.5 for width in windows[:-1])


@pytest.mark.parametrize(
    ("scores", "final", "expected"),
    [
        ([50, 60, 69.9, 70], 70, 3),
        ([70, 50, 69.95, 70], 70, 3),
        ([50, 60], 70, None),
        ([70], 70, 1),
        ([70.0, 70.1, 69.9], 70, 1),
        ([], 70, None),
    ],
)
def test_passes_to_near_is_where_the_score_comes_to_stay(
    scores: list[float], final: float, expected: int | None
) -> None:
    curve = [{"pass": i, "dev_score": score} for i, score in enumerate(scores, start=1)]
    assert passes_to_near(curve, final) == expected


def test_long_curves_are_thinned(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CURVE_POINTS", 4)
    monkeypatch.setattr(module, "MIN_POINTS", 2)
    _, result = runs.driven(runs.compare(spec_of(trainers=[{"kind": "perceptron", "passes": 9}]), corpus))
    assert [point["pass"] for point in result["curves"][0]["points"]] == [1, 3, 6, 9]
