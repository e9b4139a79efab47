"""The console of `tagsmith up`: on a terminal the output of children goes to a file."""

import io
from pathlib import Path

import pytest

from tagsmith.app.cli import console
from tagsmith.app.cli.console import Console, LogFile


def test_the_output_of_children_goes_to_the_file_and_own_lines_to_the_terminal(tmp_path: Path) -> None:
    shown, logs = io.StringIO(), LogFile(tmp_path / "up.log")
    quiet = Console(shown, logs=logs)
    quiet.line("starting ...")
    quiet.child_lines("api-1", ["first", "second"])
    quiet.flush()
    assert shown.getvalue() == "starting ...\n"
    assert logs.path.read_text() == "api-1    | first\napi-1    | second\n"
    assert logs.tail(1) == ["api-1    | second"]


def test_without_a_file_every_line_is_shown(tmp_path: Path) -> None:
    shown = io.StringIO()
    loud = Console(shown)
    loud.child_lines("api-1", ["first"])
    loud.flush()
    assert shown.getvalue() == "api-1    | first\n"


def test_a_large_log_file_is_renamed_and_one_earlier_file_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "LOG_BYTES", 10)
    logs = LogFile(tmp_path / "up.log")
    for text in ("a" * 11, "b" * 11, "c" * 11):
        logs.write(f"{text}\n")
    assert logs.path.read_text() == "c" * 11 + "\n"
    assert (tmp_path / "up.log.1").read_text() == "b" * 11 + "\n"
    assert LogFile(tmp_path / "none").tail(3) == []
