"""Runs a function of a test module on a disk that is really small: a tmpfs in a mount namespace of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_MOUNT = 'mount -t tmpfs -o "size=$1,mode=700" none "$2" && shift 2 && exec "$@"'
_CALL = """
import importlib, pathlib, sys
module, function, folder, *arguments = sys.argv[1:]
getattr(importlib.import_module(module), function)(pathlib.Path(folder), *arguments)
"""
_FILLER = "filler"


def run_on_small_disk(scene: Callable[..., None], folder: Path, size: str, *arguments: str) -> None:
    """Call `scene(folder, *arguments)` in a process that sees an empty disk of `size` at `folder`."""
    folder.mkdir(exist_ok=True)
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    shell = [*namespace, "sh", "-c", _MOUNT, "sh", size, str(folder)]
    if subprocess.run([*shell, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let the tests mount a small disk")
    call = [sys.executable, "-c", _CALL, scene.__module__, scene.__name__, str(folder), *arguments]
    done = subprocess.run([*shell, *call], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def fill(folder: Path) -> None:
    """Use up all room of a disk."""
    with (folder / _FILLER).open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue


def make_room(folder: Path) -> None:
    """Undo `fill`."""
    (folder / _FILLER).unlink()
