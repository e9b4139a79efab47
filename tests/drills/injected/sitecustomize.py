"""Faults inside a process of the service. Python imports this module at start, because drills put it on its path.

A fault waits for a file in the folder `DRILL_FAULTS`. `tests/drills/framework/inside.py` writes these files.
"""

import ctypes
import importlib.abc
import importlib.util
import os
import signal
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

_folder = Path(os.environ.get("DRILL_FAULTS", "/nonexistent"))


def _text(fault: str) -> str:
    try:
        return (_folder / fault).read_text()
    except OSError:
        return ""


def _take(fault: str) -> bool:
    """Whether the fault waits; only one process gets it."""
    try:
        (_folder / fault).unlink()
    except OSError:
        return False
    return True


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _sender(module: Any) -> None:
    """`before-send`: the process is killed after the commit of a job, before its message is sent."""
    send = module.JobSender.send

    def dying(self: Any, *args: Any) -> Any:
        if _take("before-send"):
            _die()
        return send(self, *args)

    module.JobSender.send = dying


def _run(module: Any) -> None:
    """`poison`, with a seed: native code of the job with this seed reads address 0."""
    start = module._start

    def crashing(kind: Any, resources: Any) -> Any:
        if str(resources.job.spec.get("seed")) == _text("poison"):
            ctypes.string_at(0)
        return start(kind, resources)

    module._start = crashing


def _checkpoints(module: Any) -> None:
    """`torn-row`: killed while a checkpoint is written to the database. `torn-file`: half of its file is lost."""
    chunks, store = module.Checkpoints._chunks, module.Checkpoints._store

    def torn_row(self: Any, *args: Any) -> Any:
        if not _take("torn-row"):
            yield from chunks(self, *args)
            return
        for chunk in chunks(self, *args):
            yield chunk[: len(chunk) // 2]
            _die()

    def torn_file(self: Any, *args: Any) -> None:
        torn = _take("torn-file")
        if torn:
            os.truncate(self._path, self._path.stat().st_size // 2)
        store(self, *args)
        if torn:
            _die()

    module.Checkpoints._chunks, module.Checkpoints._store = torn_row, torn_file


def _main(module: Any) -> None:
    """`same-identity`: every worker has the same host name, process id and token."""
    if _text("same-identity"):
        module.os = types.SimpleNamespace(getpid=lambda: 4711)
        module.secrets = types.SimpleNamespace(token_hex=lambda _: "same")


_CHANGES: dict[str, Callable[[Any], None]] = {
    "tagsmith.app.jobs.sender": _sender,
    "tagsmith.worker.run": _run,
    "tagsmith.worker.checkpoints": _checkpoints,
    "tagsmith.worker.main": _main,
}


class _Finder(importlib.abc.MetaPathFinder):
    """Changes some modules after they are executed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _CHANGES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            _CHANGES[name](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if _folder.is_dir():
    sys.meta_path.insert(0, _Finder())
