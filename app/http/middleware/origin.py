"""Protection against requests that a web page of another site makes the browser send.

A foreign page can reach a service on the user's own machine or network in two ways:

- DNS rebinding: the host name of the page resolves to our address. The browser then sees a single site, and `Host`
  contains the foreign name. If keys are required, the page has no key, so `Host` is checked only without keys.
- A cross-site request: the page sends a request to our address. `Origin` then names the foreign site, or
  `Sec-Fetch-Site` is `cross-site`. For every method that can change something, such requests are refused, with and
  without keys.

Programs that are not browsers send neither `Origin` nor `Sec-Fetch-Site`.
"""

import functools
import ipaddress
import re
from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from tagsmith.app.deps import Runtime
from tagsmith.app.http import problems
from tagsmith.core.base.errors import TagsmithError

#: Methods that change nothing (RFC 9110, section 9.2.1).
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Load balancers call these by IP address. They need no key and show no stored data.
_PROBES = frozenset({"/livez", "/readyz"})

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/@\s]+)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}

_SET_HOSTS = "To allow it, list the host in TAGSMITH_ALLOWED_HOSTS."


class OriginCheck:
    """Responds with 403 to a request with a foreign `Host` or `Origin`."""

    def __init__(self, app: ASGIApp, *, allowed_hosts: Collection[str]) -> None:
        self.app = app
        self._allowed = frozenset(allowed_hosts)
        # Cached: callers use few host names, and parsing one takes longer than the rest of the check.
        self._is_own_host = functools.lru_cache(256)(self._check_host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await self._check(scope)
            except TagsmithError as error:
                await problems.from_error(scope, error)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    async def _check(self, scope: Scope) -> None:
        hosts: list[bytes] = []
        origin = site = b""
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not self._is_own_host(host) and scope["path"] not in _PROBES and await self._host_matters(scope):
            raise problems.Forbidden(
                f"The host {host[:255]!r} is not one of this service. {_SET_HOSTS}", code="host_not_allowed"
            )
        if scope["method"] in _SAFE_METHODS:
            return
        if site.strip().lower() == b"cross-site":
            raise problems.Forbidden(
                "A page of another site may not make this request. Make it from the server of that page.",
                code="origin_not_allowed",
            )
        if origin and not self._is_own_origin(origin.decode("latin-1"), host):
            shown = origin.decode("latin-1")[:255]
            raise problems.Forbidden(
                f"The origin {shown!r} is not the host of the request. If this service has both names, list the host "
                "of the origin in TAGSMITH_ALLOWED_HOSTS. A page of another site calls the API from its own server.",
                code="origin_not_allowed",
            )

    async def _host_matters(self, scope: Scope) -> bool:
        runtime: Runtime = scope["app"].state.runtime
        return bool(self._allowed) or not await runtime.key_cache.required()

    def _check_host(self, host: str) -> bool:
        parsed = _split(host)
        return parsed is not None and (_is_loopback(parsed[0]) or self._is_allowed(*parsed))

    def _is_own_origin(self, origin: str, host: str) -> bool:
        scheme, _, authority = origin.strip().lower().partition("://")
        parsed, own = _split(authority), _split(host)
        default = _DEFAULT_PORTS.get(scheme)
        if parsed is None or default is None:  # `null`, or not a web origin
            return False
        name, port = parsed[0], parsed[1] or default
        # A proxy may terminate TLS, so our own scheme is unknown. A Host without a port therefore gets the default port
        # of the origin's scheme.
        return (own is not None and (name, port) == (own[0], own[1] or default)) or self._is_allowed(
            name, port
        )

    def _is_allowed(self, name: str, port: str | None) -> bool:
        return name in self._allowed or f"{name}:{port}" in self._allowed


def _split(authority: str) -> tuple[str, str | None] | None:
    """Split `name:port` or `name`; None if the text has neither form."""
    found = _AUTHORITY.fullmatch(authority.strip().lower())
    return None if found is None else (found[1], found[2])


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
