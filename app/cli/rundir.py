"""The `run` directory of a data directory: the lock of its supervisor, and pid files to find leftover processes."""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tagsmith.app.cli import process
from tagsmith.core.base.errors import Conflict

#: Tolerance between two start times of one process: a clock adjustment shifts them. Pids are not reused this quickly.
SAME_START_S = 2.0
SWEEP_TIMEOUT_S = 10.0


class RunDir:
    """Lock, pid files and state of the one supervisor that may use a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "run"
        self.state_path = self._path / "state.json"
        #: Temporary files of the children. The next start removes the files that a killed child leaves.
        self.scratch = data_dir / "tmp"
        #: Exists when the first worker takes jobs.
        self.worker_ready = self.scratch / "worker-1.ready"

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Lock the directory and end processes that a crashed supervisor left. Raise Conflict if it is locked."""
        with self.locked():
            self._sweep()
            self._clear_scratch()
            self.scratch.mkdir(mode=0o700, exist_ok=True)
            try:
                yield
            finally:
                self.state_path.unlink(missing_ok=True)
                self._clear_scratch()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every supervisor out of the directory. Raise Conflict if one uses it."""
        self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Append mode: truncating on open would erase the pid of a supervisor that holds the lock.
        with (self._path / "lock").open("a+", encoding="ascii") as lock:
            self._lock(lock)
            yield

    def record(self, name: str, pid: int) -> None:
        """Write the pid file of child `name`."""
        self._pid_path(name).write_text(json.dumps([pid, process.started_at(pid)]), encoding="ascii")

    def forget(self, name: str) -> None:
        self._pid_path(name).unlink(missing_ok=True)

    def write_state(self, state: dict[str, object]) -> None:
        """Publish the URLs of the stack with an atomic write. Only the owner can read them: they may hold passwords."""
        draft = self.state_path.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(state), encoding="utf-8")
        draft.replace(self.state_path)

    def _lock(self, lock: IO[str]) -> None:
        try:
            # The kernel releases this lock when the process ends, also after kill -9. Children do not inherit it.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise Conflict(
                f"Another tagsmith (pid {holder}) uses {self._path.parent}. Stop it or choose another --data-dir.",
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
                    process.end_group(pid, SWEEP_TIMEOUT_S)
            path.unlink()

    def _clear_scratch(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _pid_path(self, name: str) -> Path:
        return self._path / f"{name}.pid"
