"""What one caller may take: requests a second, counted in Redis for all processes together, and open streams."""

import asyncio
import contextlib
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.errors import TooMany
from core.settings import Settings

logger = logging.getLogger(__name__)

#: How much of its rate a caller may save up: who sends in bursts is not punished for it.
BURST_S = 10.0
#: Requests are taken from Redis for this long at a time, so that asking costs little; what is left over is lost.
LEASE_S = 0.05
MAX_LEASE = 100
LEASE_LIFE_S = 1.0
#: Redis answers in a millisecond or is away; a request does not wait for it longer.
TIMEOUT_S = 0.25
#: How long a process counts for itself before it asks Redis again.
AWAY_S = 2.0
#: Callers remembered by a process; the ones not seen for longest go first.
REMEMBERED = 4096
#: Streams end when their job does, which may take hours; who is told to come back tries again soon.
STREAM_RETRY_S = 5.0

#: A bucket that fills at a rate up to a size. KEYS: the bucket; ARGV: rate, size, wanted. Gives how many of the wanted
#: are granted and, when none is, the seconds until one is there. The clock is that of Redis: one for all machines.
BUCKET = """
local now = redis.call('TIME')
local at = tonumber(now[1]) + tonumber(now[2]) / 1e6
local rate, size, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = math.min(size, (tonumber(kept[1]) or size) + math.max(0, at - (tonumber(kept[2]) or at)) * rate)
local granted = math.min(wanted, math.floor(level))
redis.call('HSET', KEYS[1], 'level', string.format('%.6f', level - granted), 'at', string.format('%.6f', at))
redis.call('EXPIRE', KEYS[1], math.ceil(size / rate) + 1)
return {granted, granted > 0 and '0' or string.format('%.6f', (1 - level) / rate)}
"""


@dataclass(slots=True)
class _Wallet:
    """What a caller may still do in this process without anybody being asked."""

    left: int
    until: float
    #: Of the process's own bucket, for when Redis is away.
    level: float
    at: float
    lock: asyncio.Lock


class RateLimiter:
    """Counts the requests of each caller. Lives on the event loop."""

    def __init__(self, redis: Redis | None, settings: Settings) -> None:
        self._redis = redis
        self._rate = settings.max_requests_per_second
        self._size = max(1.0, self._rate * BURST_S)
        self._lease = max(1, min(MAX_LEASE, int(self._rate * LEASE_S)))
        # Alone, each process gives its share; at least so much that a caller is not locked out.
        self._local_rate = self._rate / settings.api_processes
        self._wallets: OrderedDict[str, _Wallet] = OrderedDict()
        self._away_until = float("-inf")

    async def take(self, caller: str) -> None:
        """Count one request of a caller; raises TooMany when it has no more."""
        wallet = self._wallets.get(caller)
        if wallet is None:
            now = time.monotonic()
            wallet = self._wallets[caller] = _Wallet(0, now, max(1.0, self._local_rate), now, asyncio.Lock())
            if len(self._wallets) > REMEMBERED:
                self._wallets.popitem(last=False)
        if wallet.left > 0 and time.monotonic() < wallet.until:
            wallet.left -= 1
            return
        self._wallets.move_to_end(caller)
        # Of many requests that find it empty, one fills it.
        async with wallet.lock:
            if wallet.left <= 0 or time.monotonic() >= wallet.until:
                await self._fill(caller, wallet)
            wallet.left -= 1

    async def _fill(self, caller: str, wallet: _Wallet) -> None:
        now = time.monotonic()
        granted: tuple[int, float] | None = None
        if self._redis is not None and now >= self._away_until:
            granted = await self._ask(self._redis, caller)
        if granted is None:
            granted = self._local(wallet, now)
        count, wait_s = granted
        if count == 0:
            raise TooMany(f"More than {self._rate:g} requests a second.", wait_s)
        wallet.left, wallet.until = count, now + LEASE_LIFE_S

    async def _ask(self, redis: Redis, caller: str) -> tuple[int, float] | None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                # A script that Redis forgot in a restart costs more than sending it each time.
                answer = await redis.eval(BUCKET, 1, f"rate:{caller}", self._rate, self._size, self._lease)
            return int(answer[0]), float(answer[1])
        except (RedisError, OSError, TimeoutError) as error:
            if self._away_until == float("-inf"):
                logger.warning("Redis is away: each process limits for itself", extra={"reason": str(error)})
            self._away_until = time.monotonic() + AWAY_S
            return None

    def _local(self, wallet: _Wallet, now: float) -> tuple[int, float]:
        size = max(1.0, self._local_rate * BURST_S)
        wallet.level = min(size, wallet.level + (now - wallet.at) * self._local_rate)
        wallet.at = now
        granted = min(self._lease, int(wallet.level))
        wallet.level -= granted
        return granted, 0.0 if granted else (1 - wallet.level) / self._local_rate


class OpenStreams:
    """Counts the event streams that are open in this process."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.max_streams
        self._most_each = settings.max_streams_per_caller
        self._open: Counter[str | None] = Counter()

    @property
    def count(self) -> int:
        """All that are open."""
        return self._open.total()

    @contextlib.contextmanager
    def opened(self, caller: str | None) -> Iterator[None]:
        """Hold one, for a caller or for one who is not counted; raises TooMany when there are too many."""
        if self.count >= self._most:
            raise TooMany("Too many event streams are open.", STREAM_RETRY_S, code="too_many_streams")
        if caller is not None and self._open[caller] >= self._most_each:
            reason = f"More than {self._most_each} event streams at a time."
            raise TooMany(reason, STREAM_RETRY_S, code="too_many_streams")
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if self._open[caller] <= 0:
                del self._open[caller]
