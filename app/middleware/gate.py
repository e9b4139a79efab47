"""Who comes in: requests show a key that allows what they ask for, where keys are in force, and keep to their share."""

import contextlib
import functools
import ipaddress

from starlette.types import ASGIApp, Receive, Scope, Send

from app import errors
from app.deps import Runtime
from app.keys import scopes
from app.keys.ring import Keyring
from core.errors import TagsmithError
from core.store import keys
from core.store.keys import KeyRow

EVENT_STREAM = b"text/event-stream"
#: What most requests hold.
NOTHING = contextlib.nullcontext()


class Gate:
    """Lets a request in, with its key in the state of its scope, or answers 401, 403 or 429."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        needed = scopes.needed(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if needed is None:
            await self.app(scope, receive, send)
            return
        runtime: Runtime = scope["app"].state.runtime
        try:
            key = scope["state"]["key"] = await admitted(scope, needed, runtime.keyring)
            caller = counted(scope, key)
            if caller is not None:
                await runtime.rates.take(caller)
            held = _held(scope, runtime, caller)
        except TagsmithError as error:
            await errors.from_error(scope, error)(scope, receive, send)
            return
        with held:
            await self.app(scope, receive, send)


def _held(scope: Scope, runtime: Runtime, caller: str | None) -> contextlib.AbstractContextManager[object]:
    """What a request holds to its end: an event stream is one of so many."""
    if not _is_stream(scope):
        return NOTHING
    held = contextlib.ExitStack()
    held.enter_context(runtime.streams.opened(caller))
    return held


async def admitted(scope: Scope, needed: keys.Scope, keyring: Keyring) -> KeyRow | None:
    """Give the key of a request that may come in, None where keys are not in force; raises when it may not."""
    if not await keyring.in_force():
        return None
    token = _header(scope, b"authorization")
    kind, _, secret = token.decode("latin-1").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise errors.Unauthenticated(
            "This needs a key: send `Authorization: Bearer ...`.", code="key_missing"
        )
    key = await keyring.key_of(secret.strip())
    if key is None:
        raise errors.Unauthenticated("The key is unknown, expired or revoked.", code="key_not_valid")
    if not key.allows(needed):
        raise errors.lacks(needed)
    return key


def counted(scope: Scope, key: KeyRow | None) -> str | None:
    """Say under which name a request is counted; a caller on this machine that needs no key is not."""
    if key is not None:
        return key.id
    client = scope.get("client")
    return None if client is None else _counted_address(client[0])


@functools.lru_cache(4096)
def _counted_address(host: str) -> str | None:
    """Remembered, because reading an address takes longer than all the rest of the gate."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"address:{host}"
    return None if address.is_loopback else f"address:{address}"


def _is_stream(scope: Scope) -> bool:
    return scope["path"].endswith("/events") and EVENT_STREAM in _header(scope, b"accept")


def _header(scope: Scope, wanted: bytes) -> bytes:
    value: bytes = next((value for name, value in scope["headers"] if name == wanted), b"")
    return value
