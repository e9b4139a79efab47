"""Runs the whole stack under one process: Redis, migrations, workers and the API.

Children start in the order of their dependencies. They stop in an order that ends the API before the workers, so that
the API accepts no request that no worker would handle.
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

from tagsmith.app.cli import embedded_redis, listen
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
API_START_S = 300.0
#: If a child dies this often before the stack is ready, a restart does not help and the start fails.
DEATHS_BEFORE_READY = 3
POLL_S = 0.1
#: After this time without a response, the console explains why the start takes long.
PATIENCE_S = 4.0

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
        data_dir.prepare(self._settings.data_dir)
        with self._rundir.claimed(), listen.opened(self._settings.host, self._settings.port) as listener:
            self._handle_signals()
            if self._console.logs is not None:
                self._console.line("starting ...")
            try:
                await self._until_stopped(self._start(listener))
                await self._stop.wait()
                self._console.line("stopping ...")
            except Unavailable:
                self._show_logs()
                raise
            finally:
                listener.close()  # refuses new clients at once instead of queueing them
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
            self._child(settings, f"api-{n + 1}", command, API_STOP_S, pass_fds=(listener.fileno(),))
            for n in range(settings.api_processes)
        ]
        # The first API process compiles the kernels. Processes that start later load them from the cache.
        self._groups.append(apis)
        apis[0].start()
        await self._wait_for_api(url, apis[0])
        for api in apis[1:]:
            api.start()
        workers = [
            self._child(
                self._of_worker(settings, n),
                f"worker-{n + 1}",
                (sys.executable, "-m", "tagsmith.worker"),
                WORKER_STOP_S,
            )
            for n in range(settings.workers)
        ]
        self._groups.insert(-1, workers)
        for worker in workers:
            worker.start()
        self._rundir.write_state(
            {"url": url, "redis_url": settings.redis_url, "data_dir": str(settings.data_dir)}
        )
        self._welcome(url)

    @staticmethod
    def _of_worker(settings: Settings, place: int) -> Settings:
        """Return the settings of one worker.

        The last `quick_workers` workers take only quick jobs, so that these do not wait. The first one takes all jobs.
        """
        takes_all = max(1, settings.workers - settings.quick_workers)
        return settings if place < takes_all else settings.replace(worker_queues=queues.QUICK)

    async def _start_redis(self) -> Settings:
        settings = self._settings
        if settings.redis_url is not None:
            return settings
        embedded = embedded_redis.prepare(settings.data_dir / "redis")
        child = self._child(settings, "redis", embedded.command, REDIS_STOP_S)
        self._groups.append([child])
        child.start()
        async with contextlib.aclosing(redis.asyncio.Redis.from_url(embedded.url)) as client:
            async for _ in self._polls("redis-server to answer", REDIS_START_S, child):
                with contextlib.suppress(redis.exceptions.ConnectionError):
                    await client.ping()
                    break
        return settings.replace(redis_url=embedded.url)

    async def _migrate(self, settings: Settings) -> None:
        child = self._child(
            settings, "migrate", (sys.executable, "-m", "tagsmith.cli", "migrate"), API_STOP_S
        )
        self._groups.append([child])
        code = await child.run_once()
        self._groups.remove([child])
        if code != 0:
            raise Unavailable(
                "the database could not be migrated; see the lines above", code="migration_failed"
            )

    async def _wait_for_api(self, url: str, child: Child) -> None:
        told = False
        began = time.monotonic()
        async with httpx.AsyncClient(timeout=2.0) as client:
            async for _ in self._polls("the API to be ready", API_START_S, child):
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get(f"{url}/readyz")).status_code == httpx.codes.OK:
                        return
                if not told and time.monotonic() - began > PATIENCE_S:
                    told = True
                    self._console.line("compiling the kernels; only the first start on a machine does this")

    async def _polls(self, what: str, deadline_s: float, child: Child) -> AsyncIterator[None]:
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            yield
            if child.restarts >= DEATHS_BEFORE_READY:
                break
            await asyncio.sleep(POLL_S)
        raise Unavailable(f"gave up waiting for {what}; see the lines above", code="start_failed")

    async def _until_stopped(self, start: Coroutine[None, None, None]) -> None:
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
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(name, self._on_signal)

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
        stop_deadline_s: float,
        pass_fds: tuple[int, ...] = (),
    ) -> Child:
        environment = settings.child_environment() | {"TMPDIR": str(self._rundir.scratch)}
        spec = ChildSpec(name, tuple(command), environment, stop_deadline_s, pass_fds)
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
