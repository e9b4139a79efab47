import numpy as np
import pytest

from tagsmith.core.learn.trainers.sgd.schedule import Schedule, calibrate


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Schedule(kind="exponential", alpha=0.5), [0.4, 0.2, 0.1]),
        (Schedule(kind="inverse"), [0.4, 0.2, 0.4 / 3]),
        (Schedule(kind="bottou"), [0.4, 0.4 / 3, 0.4 / 5]),
    ],
)
def test_rates_follow_the_formulas(schedule, expected):
    rates = schedule.rates(0.4, np.array([0.0, 100.0, 200.0]), 100, l2=5.0)
    np.testing.assert_allclose(rates, expected)


@pytest.mark.parametrize("best", [0.0625, 0.5, 4.0])
def test_calibration_walks_to_the_best_rate(best):
    trials = list(calibrate(lambda eta0: abs(np.log2(eta0 / best))))
    assert min(trials, key=lambda trial: trial[1])[0] == best
    assert len(trials) <= 8


def test_calibration_passes_over_a_rate_that_looks_worse_by_chance():
    """Measured on generated references: 0.5 is far too hot, and 0.25 fell worse yet."""
    found = {1.0: 9, 0.5: 5, 0.25: 6, 0.125: 2, 0.0625: 1, 0.03125: 3, 0.015625: 4}
    trials = list(calibrate(found.__getitem__))
    assert min(trials, key=lambda trial: trial[1])[0] == 0.0625
    assert [eta0 for eta0, _ in trials] == [0.5, 1.0, 0.25, 0.125, 0.0625, 0.03125, 0.015625]


def test_calibration_survives_rates_that_blow_up():
    trials = list(calibrate(lambda eta0: float("nan") if eta0 > 0.1 else eta0))
    assert min(trials, key=lambda trial: trial[1])[0] < 0.1
