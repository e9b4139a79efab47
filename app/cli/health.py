"""`tagsmith health`: the health check of a container.

It runs every few seconds, so it makes its request with the standard library only.
"""

import urllib.error
import urllib.request

from tagsmith.app.cli import listen
from tagsmith.core.service.settings import Settings

TIMEOUT_S = 4.0


def check(settings: Settings) -> int:
    """Print the response of /readyz. Return 0 if the API is ready, else 1."""
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
