"""Failed keys by address: an address that guesses is refused before SQL is asked."""

import time
from collections import OrderedDict

from tagsmith.app.http.problems import TooMany

#: Unknown keys that an address may send at once, and the seconds after which it may send one more.
BURST = 20
SECONDS_EACH = 1.0
#: Addresses that a process remembers. Those that failed least recently are forgotten first.
MAX_ADDRESSES = 4096


class FailedKeys:
    """Counts unknown keys per address. Use it on the event loop only."""

    def __init__(self) -> None:
        #: For each address, the time at which its failures are forgiven.
        self._forgiven_at: OrderedDict[str, float] = OrderedDict()

    def check(self, address: str) -> None:
        """Raise TooMany if the address has failed too often."""
        wait_s = self._forgiven_at.get(address, 0.0) - time.monotonic() - (BURST - 1) * SECONDS_EACH
        if wait_s > 0:
            raise TooMany("Too many unknown keys came from this address. Wait, and check the key.", wait_s)

    def count(self, address: str) -> None:
        """Count one unknown key."""
        now = time.monotonic()
        self._forgiven_at[address] = max(self._forgiven_at.get(address, now), now) + SECONDS_EACH
        self._forgiven_at.move_to_end(address)
        if len(self._forgiven_at) > MAX_ADDRESSES:
            self._forgiven_at.popitem(last=False)
