"""Runs the whole stack under one process: Redis, migrations, workers and the API.

Children start in the order of their dependencies. The API stops before the workers, so no job is accepted after the
workers are gone.
"""

import asyncio
import contextlib
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Sequence

import httpx
import redis.asyncio

from tagsmith.app.cli import listen, private_redis
from tagsmith.app.cli.children import Child, ChildSpec
from tagsmith.app.cli.console import Console
from tagsmith.app.cli.rundir import RunDir
from tagsmith.core.base.errors import Unavailable
from tagsmith.core.service import data_dir, queues
from tagsmith.core.service.settings import DEFAULT_PORT, Settings

API_STOP_S = 15.0
#: A worker releases its job between two slices of a kernel. A slice takes a fraction of a second.
WORKER_STOP_S = 20.0
REDIS_STOP_S = 10.0

REDIS_START_S = 20.0
#: The first start on a machine compiles every kernel.
FIRST_START_S = 300.0
#: If a child dies this often before the stack is ready, a restart does not help and the start fails.
DEATHS_BEFORE_READY = 3
POLL_S = 0.1
#: After this time without a response, the console explains why the start takes long.
SLOW_START_NOTICE_S = 4.0

#: Log lines that a quiet console shows when the start fails.
TAIL_LINES = 20

WELCOME = """
Tagsmith is ready at {url}

  page   {url}
  API    {url}/docs
  data   {data_dir}
  logs   {logs}

  Train a model:  tagsmith train data.conll --model ner --dev 0.1{option}
  No data yet?    tagsmith corpus generate --out refs.conll
  Ctrl-C stops everything.
"""


class Supervisor:
    """Runs the stack of one data directory until it receives a signal to stop."""

    def __init__(self, settings: Settings, console: Console) -> None:
        self._settings = settings
        self._console = console
        self._rundir = RunDir(settings.data_dir)
        self._stop = asyncio.Event()
        self._groups: list[list[Child]] = []

    async def run(self) -> int:
        """Start the stack, wait for a signal, stop the stack. Return the exit code."""
        data_dir.keep_files_private()
        data_dir.prepare(self._settings.data_dir)
        with self._rundir.claimed(), listen.opened(self._settings.host, self._settings.port) as listener:
            self._handle_signals()
            if self._console.logs is not None:
                self._console.line("starting ...")
            try:
                await self._run_unless_stopped(self._start(listener))
                await self._stop.wait()
                self._console.line("stopping ...")
            except Unavailable:
                self._show_logs()
                raise
            finally:
                listener.close()  # so that the port closes when the last API process stops
                await self._stop_all()
        self._console.line("stopped")
        return 0

    def _show_logs(self) -> None:
        """Print the end of the log file, where the reason of a failed start is."""
        if self._console.logs is not None:
            for line in self._console.logs.tail(TAIL_LINES):
                self._console.line(line)

    async def _start(self, listener: socket.socket) -> None:
        settings = await self._start_redis()
        await self._migrate(settings)
        url = listen.address(listener)
        command = (sys.executable, "-m", "tagsmith.cli", "api", "--fd", str(listener.fileno()))
        apis = [
            self._child(
                settings,
                f"api-{n + 1}",
                command,
                API_STOP_S + settings.drain_seconds,
                pass_fds=(listener.fileno(),),
            )
            for n in range(settings.api_processes)
        ]
        workers = [
            self._child(
                self._worker_settings(settings, n),
                f"worker-{n + 1}",
                (sys.executable, "-m", "tagsmith.worker"),
                WORKER_STOP_S,
            )
            for n in range(settings.workers)
        ]
        # Groups stop in reverse order: the API stops before the workers.
        self._groups += [workers, apis]
        # One process of each kind compiles its kernels. Processes that start later load them from the cache.
        for first in (*apis[:1], *workers[:1]):
            first.start()
        await self._wait_for_api(url, apis[0])
        if workers:
            await self._wait_for_worker(workers[0])
        for other in (*apis[1:], *workers[1:]):
            other.start()
        self._rundir.write_state(
            {"url": url, "redis_url": settings.redis_url, "data_dir": str(settings.data_dir)}
        )
        self._welcome(url)

    def _worker_settings(self, settings: Settings, index: int) -> Settings:
        """Return the settings of one worker.

        The last `quick_workers` workers take only quick jobs, so that these do not wait. The first one takes all jobs.
        """
        if index == 0:
            return settings.replace(worker_ready_file=self._rundir.worker_ready)
        takes_all = max(1, settings.workers - settings.quick_workers)
        return settings if index < takes_all else settings.replace(worker_queues=queues.QUICK)

    async def _start_redis(self) -> Settings:
        settings = self._settings
        if settings.redis_url is not None:
            return settings
        private = private_redis.prepare(settings.data_dir / "redis")
        child = self._child(settings, "redis", private.command, REDIS_STOP_S)
        self._groups.append([child])
        child.start()
        async with contextlib.aclosing(redis.asyncio.Redis.from_url(private.url)) as client:
            async for _ in self._polls("redis-server", REDIS_START_S, child):
                with contextlib.suppress(redis.exceptions.ConnectionError):
                    await client.ping()
                    break
        return settings.replace(redis_url=private.url)

    async def _migrate(self, settings: Settings) -> None:
        child = self._child(
            settings, "migrate", (sys.executable, "-m", "tagsmith.cli", "migrate"), API_STOP_S
        )
        self._groups.append([child])
        code = await child.run_once()
        self._groups.remove([child])
        if code != 0:
            raise Unavailable(
                "The database could not be migrated. See the log lines above for the reason.",
                code="migration_failed",
            )

    async def _wait_for_api(self, url: str, child: Child) -> None:
        notified = False
        started_at = time.monotonic()
        async with httpx.AsyncClient(timeout=2.0) as client:
            async for _ in self._polls("the API", FIRST_START_S, child):
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get(f"{url}/readyz")).status_code == httpx.codes.OK:
                        return
                if not notified and time.monotonic() - started_at > SLOW_START_NOTICE_S:
                    notified = True
                    self._console.line(
                        "still starting; the first start of a version compiles the kernels, one to two minutes"
                    )

    async def _wait_for_worker(self, child: Child) -> None:
        async for _ in self._polls("the worker", FIRST_START_S, child):
            if self._rundir.worker_ready.exists():
                return

    async def _polls(self, what: str, timeout_s: float, child: Child) -> AsyncIterator[None]:
        """Yield every POLL_S. Raise Unavailable after `timeout_s`, or if `child` keeps dying."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            yield
            if child.restarts >= DEATHS_BEFORE_READY:
                break
            await asyncio.sleep(POLL_S)
        raise Unavailable(
            f"{what[:1].upper()}{what[1:]} did not become ready. See the log lines above for the reason.",
            code="start_failed",
        )

    async def _run_unless_stopped(self, start: Coroutine[None, None, None]) -> None:
        """Run `start` to completion, or cancel it when a stop signal arrives first."""
        starting = asyncio.ensure_future(start)
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if starting.done():
            starting.result()
            return
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting

    async def _stop_all(self) -> None:
        for group in reversed(self._groups):
            await asyncio.gather(*(child.stop() for child in group))

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(signum, self._on_signal)

    def _on_signal(self) -> None:
        if self._stop.is_set():  # second signal: kill instead of waiting
            for child in (child for group in self._groups for child in group):
                child.kill()
        self._stop.set()

    def _child(
        self,
        settings: Settings,
        name: str,
        command: Sequence[str],
        stop_timeout_s: float,
        pass_fds: tuple[int, ...] = (),
    ) -> Child:
        environment = settings.child_environment() | {"TMPDIR": str(self._rundir.scratch)}
        spec = ChildSpec(name, tuple(command), environment, stop_timeout_s, pass_fds)
        return Child(spec, self._console, self._rundir)

    def _welcome(self, url: str) -> None:
        logs = self._console.logs
        text = WELCOME.format(
            url=url,
            data_dir=self._settings.data_dir,
            logs="this output" if logs is None else f"{logs.path}   (`tagsmith up -v` prints them)",
            option="" if self._settings.port == DEFAULT_PORT else f" --url {url}",
        )
        for line in text.splitlines():
            self._console.line(line)
