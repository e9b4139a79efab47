"""Health checks of the components that serving needs."""

import asyncio
import logging
import platform
import time
from collections.abc import Callable

import anyio.to_thread
from redis.asyncio import Redis
from redis.exceptions import RedisError

from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.registry import generations
from tagsmith.core.service import version
from tagsmith.core.store import migrate
from tagsmith.core.store.engine import Database
from tagsmith.wire import HealthCheck, ServerVersion

logger = logging.getLogger(__name__)

#: Timeout of a probe. A probe that takes longer fails.
PROBE_S = 2.0


class Health:
    """Runs the health checks concurrently, each for at most `PROBE_S`."""

    def __init__(
        self,
        database: Database,
        redis: Redis | None,
        warm: Callable[[], float],
        open_models: Callable[[], int],
    ) -> None:
        self._database = database
        self._open_models = open_models
        self._redis = redis
        self._warm = warm
        self._warmed = False
        self._warm_error: str | None = None
        self._migrated = False
        #: Set when the process stops, so that proxies send it no more requests.
        self.stopping = False
        # Separate threads: probes must work even if all other threads are busy.
        self._threads = anyio.CapacityLimiter(2)

    @property
    def warmed(self) -> bool:
        """Whether every kernel is compiled."""
        return self._warmed

    async def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache, in a thread."""
        started = time.monotonic()
        try:
            await anyio.to_thread.run_sync(self._warm)
        except Exception:
            self._warm_error = "compiling the kernels failed; see the log"
            logger.exception("kernels not compiled")
            return
        self._warmed = True
        logger.info("kernels ready", extra={"seconds": round(time.monotonic() - started, 3)})

    async def checks(self) -> dict[str, HealthCheck]:
        """Check every component."""
        database, migrations, redis = await asyncio.gather(
            self._database_check(), self._migrations_check(), self._redis_check()
        )
        checks = {
            "database": database,
            "migrations": migrations,
            "redis": redis,
            "kernels": self._kernels_check(),
        }
        if self.stopping:
            checks["process"] = HealthCheck(ok=False, fatal=True, detail="the process is stopping")
        return checks

    async def _database_check(self) -> HealthCheck:
        def probe() -> None:
            with self._database.read() as conn:
                generations.generation(conn)

        failure = "the database does not respond"
        tags_on = self._open_models() > 0
        if tags_on:
            failure += ": open models keep tagging; uploads, jobs and other models are unavailable"
        return await self._probe(probe, "the database responds", failure, fatal=not tags_on)

    async def _migrations_check(self) -> HealthCheck:
        if not self._migrated:
            try:
                async with asyncio.timeout(PROBE_S):
                    # A schema is never downgraded while a process runs, so a positive result is cached.
                    self._migrated = await anyio.to_thread.run_sync(
                        migrate.at_head, self._database, limiter=self._threads, abandon_on_cancel=True
                    )
            except migrate.SchemaTooNew as error:
                return HealthCheck(ok=False, fatal=True, detail=error.message)
            except (TagsmithError, TimeoutError):
                return HealthCheck(ok=False, fatal=True, detail="the database schema cannot be read")
        wrong = "the database schema is not the newest; run the migrations"
        return HealthCheck(
            ok=self._migrated, fatal=True, detail="the schema is the newest" if self._migrated else wrong
        )

    async def _probe(
        self, probe: Callable[[], None], detail: str, failure: str, *, fatal: bool
    ) -> HealthCheck:
        try:
            async with asyncio.timeout(PROBE_S):
                await anyio.to_thread.run_sync(probe, limiter=self._threads, abandon_on_cancel=True)
        except Exception as error:  # noqa: BLE001  # any error means that the check fails
            logger.warning(failure, extra={"reason": str(error)})
            return HealthCheck(ok=False, fatal=fatal, detail=failure)
        return HealthCheck(ok=True, fatal=True, detail=detail)

    async def _redis_check(self) -> HealthCheck:
        without = "tagging and stored data work without it; jobs start later, and live events are polled"
        if self._redis is None:
            return HealthCheck(ok=False, fatal=False, detail=f"no Redis is configured: {without}")
        try:
            async with asyncio.timeout(PROBE_S):
                await self._redis.ping()
        except (RedisError, OSError, TimeoutError):
            return HealthCheck(ok=False, fatal=False, detail=f"Redis does not respond: {without}")
        return HealthCheck(ok=True, fatal=False, detail="Redis responds")

    def _kernels_check(self) -> HealthCheck:
        detail = "compiled" if self._warmed else self._warm_error or "the kernels are being compiled"
        return HealthCheck(ok=self._warmed, fatal=True, detail=detail)


def code() -> ServerVersion:
    """Return the version of the running code."""
    return ServerVersion(
        version=version.package_version(),
        revision=version.git_revision(),
        code_version=version.code_version(),
        python=platform.python_version(),
    )
