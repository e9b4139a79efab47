"""Every input that ever failed, and some that are interesting, are read or refused as they should be."""

import json
import subprocess
import sys

import pytest

from tests.fuzz import child, trial
from tests.fuzz.mutation import Mutator
from tests.fuzz.targets import Target, targets


def test_kept_inputs_are_read_or_refused_with_a_sentence() -> None:
    """In a process of its own, which may crash."""
    command = [sys.executable, "-m", "tests.fuzz.child", *targets()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    assert json.loads(done.stdout.splitlines()[-1])["failures"] == []


def test_every_kept_input_belongs_to_a_target() -> None:
    folders = {path.name for path in child.CORPUS.iterdir()}
    assert folders <= set(targets())


def read(pieces: list[bytes], _choice: int) -> int:
    text = b"".join(pieces)
    if b"!" in text:
        raise KeyError(text)
    if b"?" in text:
        while True:
            pass
    return len(text)


def test_another_exception_and_a_hang_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MAX_SECONDS", 0.05)
    target = Target("made", lambda: [b"some text"], read)
    assert trial.tried(target, b"\x00\xffabc").failure == ""
    assert "KeyError" in trial.tried(target, b"\x00\xffab!c").failure
    assert trial.tried(target, b"\x00\xffab?c").signature == "failed slow"


def test_a_failing_input_is_found_made_small_and_kept(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "CORPUS", tmp_path)
    target = Target("made", lambda: [b"some text", b"some more! " * 20], read)
    run = child.fuzz(target, 0.0, 1, lambda _: None)
    (stored,) = run.failures
    (path,) = child.kept(target)
    assert stored == f"made/{path.name}"
    assert path.read_bytes()[2:] == b"!"


def test_the_same_seed_makes_the_same_inputs() -> None:
    first, second = (Mutator(7, [b"a b 12"]) for _ in range(2))
    made = [first.mutated(b"a b 12", [b"other"]) for _ in range(200)]
    assert made == [second.mutated(b"a b 12", [b"other"]) for _ in range(200)]
    assert len(set(made)) > 150
