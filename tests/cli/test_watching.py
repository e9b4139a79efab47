"""The lines of a run where there is no terminal."""

import pytest

from tagsmith.cli.runs.watching import ProgressLine


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.split("   ")[0].strip() for line in capsys.readouterr().out.splitlines()]


def test_the_end_is_printed_once_if_recorded_passes_come_after_live_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ProgressLine(live=False, stderr=False) as line:
        line.update({"fraction": 0.1, "pass": 1, "passes": 10}, pass_done=True)
        line.update({"fraction": 0.2, "pass": 2, "passes": 10}, pass_done=True)
        line.update({"fraction": 1.0, "pass": 10, "passes": 10})
        for number in range(3, 11):
            line.update({"fraction": number / 10, "pass": number, "passes": 10}, pass_done=True)
    assert printed(capsys) == ["pass  2/10", "pass 10/10"]


def test_each_part_of_the_work_prints_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine(live=False, stderr=False) as line:
        for _ in range(2):
            line.update({"fraction": 0.5, "pass": 1, "passes": 2}, pass_done=True, restart=True)
            line.update({"fraction": 1.0, "pass": 2, "passes": 2}, pass_done=True)
    assert printed(capsys) == ["pass 1/2", "pass 2/2"] * 2
