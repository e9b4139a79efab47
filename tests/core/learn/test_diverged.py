"""A run whose objective is not finite fails."""

from collections.abc import Iterator

import pytest

from tagsmith.core.jobs.kinds import parse_job
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import Diverged
from tagsmith.core.learn.weights.scoring import Weights
from tests.core.pipeline.experiments import runs
from tests.training import train


@pytest.mark.parametrize("objective", ["estimate", "exact"])
@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_run_that_diverges_fails_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, loss: float, objective: str
) -> None:
    def broken(_: Weights, __: Problem) -> Iterator[float]:
        yield loss

    monkeypatch.setattr(Weights, "loss", broken)
    body = {"kind": "train", "model": "m", "corpus": "c", "trainer": {"kind": "pa", "passes": 2}}
    spec = parse_job({**body, "features": runs.FEATURES, "objective": objective})
    with pytest.raises(Diverged, match="Choose a smaller learning rate") as caught:
        runs.driven(train(spec, runs.corpus(30)))
    assert caught.value.code == "diverged"
