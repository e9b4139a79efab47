"""Access control: if keys are required, a request needs a key with the scope of its route. Callers have rate limits."""

import contextlib
import functools
import ipaddress

from starlette.types import ASGIApp, Receive, Scope, Send

from tagsmith.app.deps import Runtime
from tagsmith.app.http import problems
from tagsmith.app.http.policy import BodyLimit, RoutePolicy, policy_of
from tagsmith.app.keys.cache import KeyCache
from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.store import keys
from tagsmith.core.store.keys import KeyRow

EVENT_STREAM = b"text/event-stream"
#: For requests that are neither.
NOT_COUNTED = contextlib.nullcontext()


class AccessControl:
    """Accepts a request and stores its key in its state, or responds with 401, 403 or 429."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        policy = policy_of(scope) if scope["type"] == "http" else None
        if policy is None or policy.scope is None:
            await self.app(scope, receive, send)
            return
        runtime: Runtime = scope["app"].state.runtime
        try:
            key = scope["state"]["key"] = await authorise(scope, policy.scope, runtime.key_cache)
            caller = rate_limit_key(scope, key)
            if caller is not None:
                await runtime.rates.take(caller)
            opened = _opened(scope, policy, runtime, caller)
        except TagsmithError as error:
            await problems.from_error(scope, error)(scope, receive, send)
            return
        with opened:
            await self.app(scope, receive, send)


def _opened(
    scope: Scope, policy: RoutePolicy, runtime: Runtime, caller: str | None
) -> contextlib.AbstractContextManager[object]:
    """Count an upload, or a request for an event stream, as open until it ends."""
    opened = contextlib.ExitStack()
    if policy.body is BodyLimit.UPLOAD:
        opened.enter_context(runtime.open_uploads.opened(caller))
    elif policy.event_stream and EVENT_STREAM in _header(scope, b"accept"):
        opened.enter_context(runtime.streams.opened(caller))
    else:
        return NOT_COUNTED
    return opened


async def authorise(scope: Scope, needed: keys.Scope, key_cache: KeyCache) -> KeyRow | None:
    """Return the key of a request; None if keys are not required. Raises when the request is not allowed."""
    if not await key_cache.required():
        return None
    token = _header(scope, b"authorization")
    kind, _, secret = token.decode("latin-1").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise problems.Unauthenticated(
            "This needs a key: send `Authorization: Bearer ...`.", code="key_missing"
        )
    client = scope.get("client")
    key = await key_cache.key_of(secret.strip(), client[0] if client else "")
    if key is None:
        raise problems.Unauthenticated("The key is unknown, expired or revoked.", code="key_not_valid")
    if not key.allows(needed):
        raise problems.lacks(needed)
    return key


def rate_limit_key(scope: Scope, key: KeyRow | None) -> str | None:
    """Return the name under which a request counts for rate limits; None for a caller on this machine without a key."""
    if key is not None:
        return key.id
    client = scope.get("client")
    return None if client is None else _address_key(client[0])


@functools.lru_cache(4096)
def _address_key(host: str) -> str | None:
    """Return the name of an address. Cached, because parsing an address takes longer than the rest of the check."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"address:{host}"
    return None if address.is_loopback else f"address:{address}"


def _header(scope: Scope, name: bytes) -> bytes:
    value: bytes = next((value for each, value in scope["headers"] if each == name), b"")
    return value
