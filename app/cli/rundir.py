"""The `run` folder of a data directory: who runs on it, and what they left behind."""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from app.cli import process
from core.errors import Conflict

#: Clocks are set now and then, and process start times with them; pids are not reused so soon.
SAME_START_S = 2.0
SWEEP_DEADLINE_S = 10.0


class RunDir:
    """Lock, pid files and state of the one supervisor that may use a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "run"
        self.state_path = self._path / "state.json"
        #: For temporary files of the children: what a killed one leaves there goes with the next start.
        self.scratch = data_dir / "tmp"

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the directory; refuse when another supervisor does. End what a crashed one left running."""
        self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Opened to append: truncating would wipe the holder's pid before the lock is known to be free.
        with (self._path / "lock").open("a+", encoding="ascii") as lock:
            self._lock(lock)
            self._sweep()
            self._clear_scratch()
            self.scratch.mkdir(mode=0o700, exist_ok=True)
            try:
                yield
            finally:
                self.state_path.unlink(missing_ok=True)
                self._clear_scratch()

    def record(self, name: str, pid: int) -> None:
        """Note that child `name` runs as `pid`."""
        self._pid_path(name).write_text(json.dumps([pid, process.started_at(pid)]), encoding="ascii")

    def forget(self, name: str) -> None:
        self._pid_path(name).unlink(missing_ok=True)

    def write_state(self, state: dict[str, object]) -> None:
        """Publish where the stack answers: whole when seen, and for the owner only (it has a password)."""
        draft = self.state_path.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(state), encoding="utf-8")
        draft.replace(self.state_path)

    def _lock(self, lock: IO[str]) -> None:
        try:
            # The kernel drops this lock with the process, also after kill -9: children do not inherit it.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise Conflict(
                f"another tagsmith (pid {holder}) runs on {self._path.parent}; "
                "stop it or choose another --data-dir",
                code="data_dir_in_use",
            ) from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()

    def _sweep(self) -> None:
        self.state_path.unlink(missing_ok=True)
        for path in self._path.glob("*.pid"):
            with contextlib.suppress(ValueError, TypeError):
                pid, started_at = json.loads(path.read_text(encoding="ascii"))
                alive_since = process.started_at(pid)
                if alive_since is not None and abs(alive_since - started_at) < SAME_START_S:
                    process.end_group(pid, SWEEP_DEADLINE_S)
            path.unlink()

    def _clear_scratch(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _pid_path(self, name: str) -> Path:
        return self._path / f"{name}.pid"
