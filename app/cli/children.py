"""A supervised child process: forwards its output, restarts it when it dies, stops it within a time limit."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tagsmith.app.cli import process
from tagsmith.app.cli.console import Console
from tagsmith.app.cli.rundir import RunDir

MIN_RESTART_DELAY_S = 0.5
MAX_RESTART_DELAY_S = 5.0
#: A child that ran this long counts as healthy: after its next death the delay is the shortest one again.
HEALTHY_AFTER_S = 30.0
#: Longer lines are forwarded in pieces, so that output without newlines cannot fill the supervisor's memory.
MAX_LINE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """The command of a child process and how to run it."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    #: Time between SIGTERM and SIGKILL.
    stop_timeout_s: float
    pass_fds: tuple[int, ...] = field(default=())


class Child:
    """One supervised process."""

    def __init__(self, spec: ChildSpec, console: Console, rundir: RunDir | None) -> None:
        self.spec = spec
        self.restarts = 0
        self._console = console
        self._rundir = rundir
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[int] | asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_running(), name=self.spec.name)

    async def run_once(self) -> int:
        """Run the process once, without restarts, and return its exit code."""
        # A separate task: if the caller is cancelled, stop() can still find the process.
        task = self._task = asyncio.create_task(self._run(), name=self.spec.name)
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """Send SIGTERM, and kill the process after `stop_timeout_s`."""
        self._stopping.set()
        self._signal(signal.SIGTERM)
        if self._task is None:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._task), self.spec.stop_timeout_s)
            return
        self._console.line(f"{self.spec.name} did not stop in {self.spec.stop_timeout_s:g} s; killing it")
        self.kill()
        await self._task

    def kill(self) -> None:
        """Kill the process and its process group immediately."""
        self._stopping.set()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _keep_running(self) -> None:
        delay_s = MIN_RESTART_DELAY_S
        while not self._stopping.is_set():
            started_at = time.monotonic()
            code = await self._run()
            if self._stopping.is_set():
                return
            if time.monotonic() - started_at > HEALTHY_AFTER_S:
                delay_s = MIN_RESTART_DELAY_S
            self.restarts += 1
            self._console.line(f"{self.spec.name} {_ending(code)}; restarting in {delay_s:g} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay_s)
            delay_s = min(delay_s * 2, MAX_RESTART_DELAY_S)

    async def _run(self) -> int:
        self._process = await asyncio.create_subprocess_exec(
            *self.spec.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self.spec.environment,
            pass_fds=self.spec.pass_fds,
            # A separate session: Ctrl-C in the terminal reaches only the supervisor, which stops the children
            # in order.
            start_new_session=True,
            preexec_fn=process.die_with_parent(),
        )
        if self._rundir is not None:
            self._rundir.record(self.spec.name, self._process.pid)
        if self._stopping.is_set():
            self._signal(signal.SIGTERM)  # stop() was called before the process existed
        try:
            assert self._process.stdout is not None
            await _pump(self._process.stdout, lambda texts: self._console.child_lines(self.spec.name, texts))
            return await self._process.wait()
        finally:
            self._process = None
            if self._rundir is not None:
                self._rundir.forget(self.spec.name)

    def _signal(self, signum: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signum)


async def _pump(stream: asyncio.StreamReader, emit: Callable[[list[str]], None]) -> None:
    """Forward the lines of `stream` until its end, in batches of the lines that are available."""
    rest = b""
    while chunk := await stream.read(MAX_LINE_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        if lines:
            emit([line.decode(errors="replace").rstrip("\r") for line in lines])
    if rest:
        emit([rest.decode(errors="replace")])


def _ending(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
