"""A whole stack as one child process that runs for the duration of a `with` block."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tagsmith.app.cli import process
from tagsmith.app.cli.rundir import RunDir
from tagsmith.core.base.errors import Unavailable
from tagsmith.core.service.settings import Settings

#: Longer than the supervisor's own time limits for a start that compiles kernels and for a graceful stop.
START_TIMEOUT_S = 330.0
STOP_TIMEOUT_S = 60.0
POLL_S = 0.05
#: Number of log lines that an error shows.
TAIL_LINES = 40


class BackgroundStack:
    """Runs `tagsmith up` and writes its output to a file. Use it as a context manager."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.log_path = settings.data_dir / "stack.log"
        self.url = ""
        self.redis_url = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the stack and wait until the API is ready."""
        self.settings.data_dir.mkdir(parents=True, exist_ok=True)
        state_path = RunDir(self.settings.data_dir).state_path
        # A state file of an earlier, killed supervisor would look as if this stack were ready.
        state_path.unlink(missing_ok=True)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "tagsmith.cli", "up"),
                env=self.settings.child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # Safe in a process with threads: it only makes system calls that are resolved before the fork.
                preexec_fn=process.die_with_parent(),  # noqa: PLW1509
            )
        self._wait_for(state_path)

    def stop(self) -> int:
        """Stop everything as Ctrl-C does, and return the exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """Kill the supervisor without stopping its children first."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_for(self, state_path: Path) -> None:
        assert self._process is not None
        end = time.monotonic() + START_TIMEOUT_S
        while not state_path.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                tail = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
                raise Unavailable(
                    "\n".join(["The stack did not start. Its last log lines:", *tail]), code="start_failed"
                )
            time.sleep(POLL_S)
        state = json.loads(state_path.read_text(encoding="utf-8"))
        self.url, self.redis_url = state["url"], state["redis_url"]
