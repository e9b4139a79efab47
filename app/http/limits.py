"""Limits per caller: requests per second, counted in Redis for all processes, and open event streams and uploads."""

import asyncio
import contextlib
import logging
import time
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tagsmith.app.http.problems import TooMany
from tagsmith.core.service.settings import Settings

logger = logging.getLogger(__name__)

#: The burst size: a caller can accumulate this many seconds of its rate.
BURST_S = 10.0
#: A process takes this many seconds of a caller's rate from Redis at once, so calls are rare. Unused requests expire.
LEASE_S = 0.05
MAX_LEASE = 100
LEASE_LIFE_S = 1.0
#: Redis normally responds within a millisecond. A request waits for it no longer than this.
TIMEOUT_S = 0.25
#: How long a process counts by itself before it tries Redis again.
OUTAGE_PAUSE_S = 2.0
#: Maximum number of callers that a process remembers. The least recently seen are dropped first.
MAX_CALLERS = 4096
#: Streams end with their job, which can take hours. A refused client should still try again soon.
STREAM_RETRY_S = 5.0
#: Uploads at once. Each can fill the disk with as many bytes as an upload may have.
MAX_UPLOADS = 64
#: Fewer for each caller, so that one with slow connections does not keep the others waiting.
MAX_UPLOADS_PER_CALLER = 16
UPLOAD_RETRY_S = 1.0

#: A token bucket. KEYS: the bucket; ARGV: rate, size, requested. Returns the number of granted tokens and, if 0, the
#: seconds until one is available. It uses the clock of Redis, which is the same for all machines.
BUCKET = """
local now = redis.call('TIME')
local at = tonumber(now[1]) + tonumber(now[2]) / 1e6
local rate, size, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local stored = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = math.min(size, (tonumber(stored[1]) or size) + math.max(0, at - (tonumber(stored[2]) or at)) * rate)
local granted = math.min(requested, math.floor(level))
redis.call('HSET', KEYS[1], 'level', string.format('%.6f', level - granted), 'at', string.format('%.6f', at))
redis.call('EXPIRE', KEYS[1], math.ceil(size / rate) + 1)
return {granted, granted > 0 and '0' or string.format('%.6f', (1 - level) / rate)}
"""


@dataclass(slots=True)
class _Wallet:
    """The requests that this process may still accept from a caller."""

    left: int
    until: float
    #: Level of the local bucket, used while Redis is unavailable.
    level: float
    at: float
    lock: asyncio.Lock


class RateLimiter:
    """Counts the requests of each caller. Use it on the event loop only."""

    def __init__(self, redis: Redis | None, settings: Settings) -> None:
        self._redis = redis
        self._rate = settings.max_requests_per_second
        self._size = max(1.0, self._rate * BURST_S)
        self._lease = max(1, min(MAX_LEASE, int(self._rate * LEASE_S)))
        # Without Redis each process grants its share of the rate. The local bucket can hold at least one request, so
        # no caller is locked out.
        self._local_rate = self._rate / settings.api_processes
        self._wallets: OrderedDict[str, _Wallet] = OrderedDict()
        self._retry_redis_at = float("-inf")

    async def take(self, caller: str) -> None:
        """Count one request of a caller. Raises TooMany when none is left."""
        wallet = self._wallets.get(caller)
        if wallet is None:
            now = time.monotonic()
            wallet = self._wallets[caller] = _Wallet(0, now, max(1.0, self._local_rate), now, asyncio.Lock())
            if len(self._wallets) > MAX_CALLERS:
                self._wallets.popitem(last=False)
        if wallet.left > 0 and time.monotonic() < wallet.until:
            wallet.left -= 1
            return
        self._wallets.move_to_end(caller)
        # When several requests find the wallet empty, one of them fills it.
        async with wallet.lock:
            if wallet.left <= 0 or time.monotonic() >= wallet.until:
                await self._fill(caller, wallet)
            wallet.left -= 1

    async def _fill(self, caller: str, wallet: _Wallet) -> None:
        now = time.monotonic()
        granted: tuple[int, float] | None = None
        if self._redis is not None and now >= self._retry_redis_at:
            granted = await self._grant(self._redis, caller)
        if granted is None:
            granted = self._local(wallet, now)
        count, wait_s = granted
        if count == 0:
            raise TooMany(f"More than {self._rate:g} requests per second. Wait for Retry-After.", wait_s)
        wallet.left, wallet.until = count, now + LEASE_LIFE_S

    async def _grant(self, redis: Redis, caller: str) -> tuple[int, float] | None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                # The script is sent each time, because Redis loses cached scripts when it restarts.
                granted = await redis.eval(BUCKET, 1, f"rate:{caller}", self._rate, self._size, self._lease)
            return int(granted[0]), float(granted[1])
        except (RedisError, OSError, TimeoutError) as error:
            if self._retry_redis_at == float("-inf"):
                logger.warning(
                    "Redis is unavailable: each process limits rates on its own", extra={"reason": str(error)}
                )
            self._retry_redis_at = time.monotonic() + OUTAGE_PAUSE_S
            return None

    def _local(self, wallet: _Wallet, now: float) -> tuple[int, float]:
        size = max(1.0, self._local_rate * BURST_S)
        wallet.level = min(size, wallet.level + (now - wallet.at) * self._local_rate)
        wallet.at = now
        granted = min(self._lease, int(wallet.level))
        wallet.level -= granted
        return granted, 0.0 if granted else (1 - wallet.level) / self._local_rate


class _OpenRequests(ABC):
    """Counts the open requests of one kind in this process."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._open: Counter[str | None] = Counter()

    @property
    def count(self) -> int:
        """The number of open requests."""
        return self._open.total()

    @contextlib.contextmanager
    def opened(self, caller: str | None) -> Iterator[None]:
        """Count a request of a caller while the context is open. Raises TooMany when there are too many.

        `caller` is None for a caller that has no individual limit.
        """
        if self.count >= self._most:
            raise self._refused(self._most, "of all callers")
        if caller is not None and self._open[caller] >= self._most_each:
            raise self._refused(self._most_each, "of one caller")
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if self._open[caller] <= 0:
                del self._open[caller]

    @abstractmethod
    def _refused(self, most: int, whose: str) -> TooMany:
        """Build the error for a request that is one too many."""


class OpenStreams(_OpenRequests):
    """Counts the open event streams of this process."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.max_streams, settings.max_streams_per_caller)

    def _refused(self, most: int, whose: str) -> TooMany:
        reason = f"{most} event streams {whose} are open. Try again when one has ended."
        return TooMany(reason, STREAM_RETRY_S, code="too_many_streams")


class OpenUploads(_OpenRequests):
    """Counts the uploads that this process receives."""

    def __init__(self) -> None:
        super().__init__(MAX_UPLOADS, MAX_UPLOADS_PER_CALLER)

    def _refused(self, most: int, whose: str) -> TooMany:
        reason = f"{most} uploads {whose} are being received. Try again when one has ended."
        return TooMany(reason, UPLOAD_RETRY_S, code="too_many_uploads")
