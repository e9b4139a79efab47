"""Idempotency: a request repeated with the same `Idempotency-Key` is executed once and gets the same response."""

import asyncio
import contextlib
import hashlib
import logging
import re
import secrets
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import anyio.to_thread
import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagsmith.app.http import problems
from tagsmith.app.http.policy import policy_of
from tagsmith.core.base.errors import Conflict, Fault, Invalid, TagsmithError
from tagsmith.core.store import idempotency
from tagsmith.core.store.engine import Database
from tagsmith.core.store.idempotency import InProgress, StoredResponse

logger = logging.getLogger(__name__)

T = TypeVar("T")

HEADER = "Idempotency-Key"
#: Visible ASCII. Most clients send a UUID.
PATTERN = r"^[\x21-\x7e]{1,255}$"
#: Response headers that are replayed. All others belong to one request only.
KEPT_HEADERS = (b"content-type", b"location", b"etag", b"retry-after", b"cache-control")
#: Responses of idempotent routes are short. A longer response is not stored, and a repeated request is executed again.
MAX_BODY_BYTES = 1 << 20
#: A third of the time for which a row is held without renewal.
RENEW_INTERVAL_S = idempotency.HELD.total_seconds() / 3
RETRY_AFTER_S = "1"

_KEY = re.compile(PATTERN)


class Idempotency:
    """Stores the responses to requests with an `Idempotency-Key`, and replays them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = _key_of(scope)
        if key is None:
            await self.app(scope, receive, send)
            return
        try:
            if not _KEY.fullmatch(key):
                fault = Fault("The key must be 1 to 255 visible ASCII characters.", parameter=HEADER)
                raise Invalid(f"The {HEADER} is not valid.", [fault], code="invalid_idempotency_key")
            database: Database = scope["app"].state.runtime.database
            row, attempt = _row_id(scope, key), secrets.token_hex(16)
            stored = await _write(database, lambda conn: idempotency.begin(conn, row, attempt))
            if stored is not None:
                await (await _replay(scope, receive, stored))(scope, receive, send)
                return
        except InProgress as error:
            headers = {"Retry-After": RETRY_AFTER_S}
            busy = problems.problem_response(scope, 409, error.code, error.message, headers=headers)
            await busy(scope, receive, send)
            return
        except TagsmithError as error:
            await problems.from_error(scope, error)(scope, receive, send)
            return
        await self._first(scope, receive, send, _PendingRow(database, row, attempt))

    async def _first(self, scope: Scope, receive: Receive, send: Send, pending: "_PendingRow") -> None:
        """Execute a request. A successful response is stored before it is sent."""
        body = _HashedRequest(scope, receive)
        parts: list[Message] = []

        async def collect(message: Message) -> None:
            parts.append(message)

        async with pending.renewed():
            try:
                await self.app(scope, body.receive, collect)
            except BaseException:
                await asyncio.shield(pending.release())
                raise
            await pending.finish(await _response(scope, body, parts))
        for part in parts:
            await send(part)


class _PendingRow:
    """The row of a request in progress."""

    def __init__(self, database: Database, row: str, attempt: str) -> None:
        self._database = database
        self._row = row
        self._attempt = attempt

    @contextlib.asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """Renew the row while the block runs."""
        renewing = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            renewing.cancel()

    async def finish(self, response: StoredResponse | None) -> None:
        """Store the response. If it is None, release the key so that the request can be repeated."""
        if response is None:
            await self.release()
            return
        try:
            row, attempt = self._row, self._attempt
            await _write(self._database, lambda conn: idempotency.finish(conn, row, attempt, response))
        except TagsmithError as error:
            # The request is executed, so its response is sent. A repeated request is not recognised.
            logger.warning("response not stored", extra={"reason": error.message})

    async def release(self) -> None:
        """Release the key, so that the request can be repeated."""
        with contextlib.suppress(TagsmithError):  # on failure the key is free when the row expires
            await _write(self._database, lambda conn: idempotency.release(conn, self._row, self._attempt))

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_INTERVAL_S)
            with contextlib.suppress(TagsmithError):  # the next renewal may still be in time
                await _write(self._database, lambda conn: idempotency.renew(conn, self._row, self._attempt))


class _HashedRequest:
    """The body of a request, hashed as it is read."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._more = True
        self._hash = hashlib.sha256(scope["query_string"])
        for header in (b"content-type", b"content-encoding"):
            value = next((value for name, value in scope["headers"] if name == header), b"")
            self._hash.update(b"\0" + value)
        self._hash.update(b"\0")

    @property
    def fingerprint(self) -> str:
        """A hash of the request, valid after the whole body is read."""
        return self._hash.hexdigest()

    async def receive(self) -> Message:
        """Pass a message on and hash its bytes."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._hash.update(message.get("body", b""))
            self._more = message.get("more_body", False)
        else:
            self._more = False
        return message

    async def rest(self) -> None:
        """Read the part of the body that the route has not read."""
        while self._more:
            await self.receive()


async def _replay(scope: Scope, receive: Receive, stored: StoredResponse) -> Response:
    body = _HashedRequest(scope, receive)
    await body.rest()
    if body.fingerprint != stored.fingerprint:
        raise Conflict(
            f"A different request already used this {HEADER}. Choose a new one.",
            code="idempotency_key_reused",
        )
    return Response(stored.body, stored.status, {**stored.headers, "Idempotency-Replayed": "true"})


async def _response(scope: Scope, request: _HashedRequest, parts: list[Message]) -> StoredResponse | None:
    """Return the response to store; None if it is not successful or too long."""
    status = parts[0]["status"] if parts else 0
    body = b"".join(part.get("body", b"") for part in parts[1:])
    if not 200 <= status < 300 or len(body) > MAX_BODY_BYTES:
        return None
    try:
        await request.rest()
    except TagsmithError:
        return None  # the unread rest of the body exceeds the body limit
    headers = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in parts[0].get("headers", ())
        if name.lower() in KEPT_HEADERS
    }
    if secret_fields := policy_of(scope).secret_fields:
        body = orjson.dumps({**orjson.loads(body), **dict.fromkeys(secret_fields)})
    return StoredResponse(request.fingerprint, status, headers, body)


def _key_of(scope: Scope) -> str | None:
    """Return the idempotency key of a request; None if it has none or the route is not idempotent."""
    if scope["type"] != "http" or not policy_of(scope).idempotent:
        return None
    return next(
        (value.decode("latin-1") for name, value in scope["headers"] if name == b"idempotency-key"), None
    )


def _row_id(scope: Scope, key: str) -> str:
    """Return the row id of a key. It includes caller and path, because keys are unique only within these."""
    caller = scope["state"].get("key")
    parts = ("" if caller is None else caller.id, scope["path"], key)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


async def _write(database: Database, work: Callable[..., T]) -> T:
    def run() -> T:
        with database.write() as conn:
            return work(conn)

    return await anyio.to_thread.run_sync(run)
