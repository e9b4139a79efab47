"""`tagsmith health`: what a container's health check runs every few seconds, so standard library only."""

import urllib.error
import urllib.request

from app.cli import listen
from core.settings import Settings

TIMEOUT_S = 4.0


def check(settings: Settings) -> int:
    """Print what /readyz says, and give 0 when it says yes."""
    address = f"{listen.url(settings.host, settings.port)}/readyz"
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as response:  # noqa: S310  # always http
            print(response.read().decode())
            return 0
    except urllib.error.HTTPError as error:
        print(error.read().decode())
    except OSError as error:
        print(f"{address}: {error}")
    return 1
