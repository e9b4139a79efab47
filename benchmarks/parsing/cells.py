"""Results that are measured and kept cell by cell: a run that was killed continues with the next cell.

A cell is a value at a path of keys in `benchmarks/results/NAME.json`, with the time, the load and the commit.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import common

Cell = dict[str, Any]

_ROOT = Path(__file__).parents[2]


def read(name: str) -> Cell:
    """Return what is recorded; empty if nothing is."""
    return common.recorded(name)


def at(result: Cell, *keys: str) -> Cell | None:
    """Return the cell at a path, or None."""
    found: Cell | None = result
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def filled(name: str, keys: tuple[str, ...], measure: Callable[[], Cell]) -> Cell:
    """Return a recorded cell, or measure and record it."""
    found = at(read(name), *keys)
    if found is None:
        found = {**measure(), "measured": {**common.moment(), "commit": commit()}}
        keep(name, keys, found)
    return found


def keep(name: str, keys: tuple[str, ...], value: Any) -> None:
    """Record a value, and keep those that other runs have recorded in the meantime."""
    result = read(name)
    inner = result
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = value
    _write(name, result)


def drop(name: str, keys: tuple[str, ...]) -> None:
    """Forget a cell, or all cells below a path."""
    result = read(name)
    inner = at(result, *keys[:-1])
    if inner is not None and inner.pop(keys[-1], None) is not None:
        _write(name, result)


def _write(name: str, result: Cell) -> None:
    """Replace the file at once, so that a killed run does not leave half of it."""
    common.RESULTS.mkdir(exist_ok=True)
    path = common.RESULTS / f"{name}.json"
    passing = path.with_suffix(f".{os.getpid()}.tmp")
    text = json.dumps({"machine": common.machine(), **result}, indent=2, ensure_ascii=False)
    passing.write_text(text + "\n", encoding="utf-8")
    passing.replace(path)


def commit() -> str:
    """Return the commit of the code, with a mark if `core` differs from it."""
    found = _git("describe", "--always", "--abbrev=10", "--exclude=*").stdout.strip()
    return found + ("+" if _git("diff", "--quiet", "HEAD", "--", "core").returncode else "")


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)


def apart(module: str, what: Cell) -> Cell:
    """Call `run` of a module in a new process, whose peak of memory is that of this call alone."""
    command = [sys.executable, "-m", module, "--run", json.dumps(what)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: Cell = json.loads(done.stdout.splitlines()[-1])
    return found
