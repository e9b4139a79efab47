"""Looking after the parts that serving needs."""

import asyncio
import logging
import platform
import time
from collections.abc import Callable

import anyio.to_thread
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.health.schemas import Check, Version
from core import version
from core.errors import TagsmithError
from core.store import migrate, registry
from core.store.engine import Database

logger = logging.getLogger(__name__)

#: A probe that takes longer is as good as no answer.
PROBE_S = 2.0


class Health:
    """Knows what is ready. The checks run side by side, each for at most `PROBE_S`."""

    def __init__(self, database: Database, redis: Redis | None, warm: Callable[[], float]) -> None:
        self._database = database
        self._redis = redis
        self._warm = warm
        self._warmed = False
        self._warm_error: str | None = None
        self._migrated = False
        # Its own thread: probes must answer also when every other thread is busy.
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

    async def checks(self) -> dict[str, Check]:
        """Look at every part."""
        database, migrations, redis = await asyncio.gather(
            self._database_check(), self._migrations_check(), self._redis_check()
        )
        return {
            "database": database,
            "migrations": migrations,
            "redis": redis,
            "kernels": self._kernels_check(),
        }

    async def _database_check(self) -> Check:
        def probe() -> None:
            with self._database.read() as conn:
                registry.generation(conn)

        return await self._probe(probe, "the database answers", "the database does not answer")

    async def _migrations_check(self) -> Check:
        if not self._migrated:
            try:
                async with asyncio.timeout(PROBE_S):
                    # A schema is never taken back under a running process, so yes is remembered.
                    self._migrated = await anyio.to_thread.run_sync(
                        migrate.at_head, self._database, limiter=self._threads, abandon_on_cancel=True
                    )
            except (TagsmithError, TimeoutError):
                return Check(ok=False, fatal=True, detail="the database schema cannot be read")
        wrong = "the database schema is not the newest; run the migrations"
        return Check(
            ok=self._migrated, fatal=True, detail="the schema is the newest" if self._migrated else wrong
        )

    async def _probe(self, probe: Callable[[], None], right: str, wrong: str) -> Check:
        try:
            async with asyncio.timeout(PROBE_S):
                await anyio.to_thread.run_sync(probe, limiter=self._threads, abandon_on_cancel=True)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with it, that is what the check says
            logger.warning(wrong, extra={"reason": str(error)})
            return Check(ok=False, fatal=True, detail=wrong)
        return Check(ok=True, fatal=True, detail=right)

    async def _redis_check(self) -> Check:
        without = (
            "tagging and every stored record work without it; jobs start later, live events come by polling"
        )
        if self._redis is None:
            return Check(ok=False, fatal=False, detail=f"no Redis is configured: {without}")
        try:
            async with asyncio.timeout(PROBE_S):
                await self._redis.ping()
        except (RedisError, OSError, TimeoutError):
            return Check(ok=False, fatal=False, detail=f"Redis does not answer: {without}")
        return Check(ok=True, fatal=False, detail="Redis answers")

    def _kernels_check(self) -> Check:
        detail = "compiled" if self._warmed else self._warm_error or "the kernels are being compiled"
        return Check(ok=self._warmed, fatal=True, detail=detail)


def code() -> Version:
    """Say which code runs."""
    return Version(
        version=version.package_version(),
        revision=version.git_revision(),
        code_version=version.code_version(),
        python=platform.python_version(),
    )
