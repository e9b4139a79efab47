"""Which failures to repeat a call after, and how long to wait. Nothing here does any input or output."""

import random
from typing import Any

import httpx

from tagsmith.client.call import Call
from tagsmith.client.errors import ApiError

#: How often a call is repeated by default. With the delays below this takes 3 s at most, plus what the server requests.
RETRIES = 4
FIRST_DELAY_S = 0.2
#: A server that wants to be left alone for longer than this has the caller decide.
LONGEST_DELAY_S = 30.0

#: The server refused before it carried anything out.
REFUSED = frozenset({429, 503})
#: Someone on the way to the server gave up; the server may have carried the call out.
LOST = frozenset({502, 504})
#: The response to a repeated call whose first attempt is still being carried out.
IN_PROGRESS = "idempotency_key_in_use"
#: Failures before anything was sent, and failures after that.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
BROKEN = (httpx.NetworkError, httpx.RemoteProtocolError)

_jitter = random.Random()  # noqa: S311  # spreads clients over time


class Retries:
    """The attempts of one call."""

    def __init__(self, call: Call[Any], retries: int) -> None:
        self._repeatable = call.repeatable
        self._left = retries if call.patient else 0
        self._delay_s = FIRST_DELAY_S

    def delay_s(self, error: httpx.TransportError | ApiError) -> float | None:
        """How long to wait before the next attempt; None if there should be none."""
        given = error.retry_after_s if isinstance(error, ApiError) else None
        if self._left == 0 or not self._may_repeat(error) or (given or 0.0) > LONGEST_DELAY_S:
            return None
        self._left -= 1
        delay_s = self._delay_s * _jitter.uniform(0.5, 1.0)
        self._delay_s *= 2
        return delay_s + (given or 0.0)

    def _may_repeat(self, error: httpx.TransportError | ApiError) -> bool:
        if isinstance(error, NOT_SENT):
            return True
        if isinstance(error, ApiError):
            refused = error.status in REFUSED or error.code == IN_PROGRESS
            return refused or (self._repeatable and error.status in LOST)
        return self._repeatable and isinstance(error, BROKEN)
