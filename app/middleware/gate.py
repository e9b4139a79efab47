"""Who comes in: every request shows a key that allows what it asks for, where keys are in force."""

from starlette.types import ASGIApp, Receive, Scope, Send

from app import errors
from app.keys import scopes
from app.keys.ring import Keyring
from core.errors import TagsmithError
from core.store.keys import KeyRow


class Gate:
    """Lets a request in, with its key in the state of its scope, or answers 401 or 403."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                scope["state"]["key"] = await admitted(scope, scope["app"].state.runtime.keyring)
            except TagsmithError as error:
                await errors.from_error(scope, error)(scope, receive, send)
                return
        await self.app(scope, receive, send)


async def admitted(scope: Scope, keyring: Keyring) -> KeyRow | None:
    """Give the key of a request that may come in, None when it needs none; raises when it may not."""
    needed = scopes.needed(scope["method"], scope["path"])
    if needed is None or not await keyring.in_force():
        return None
    token = _bearer(scope)
    if token is None:
        raise errors.Unauthenticated(
            "This needs a key: send `Authorization: Bearer ...`.", code="key_missing"
        )
    key = await keyring.key_of(token)
    if key is None:
        raise errors.Unauthenticated("The key is unknown, expired or revoked.", code="key_not_valid")
    if not key.allows(needed):
        raise errors.lacks(needed)
    return key


def _bearer(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            return token.strip() if kind.lower() == "bearer" and token.strip() else None
    return None
