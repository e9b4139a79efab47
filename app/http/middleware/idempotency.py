"""Idempotency: a request repeated with the same `Idempotency-Key` is executed once and gets the same response."""

import asyncio
import contextlib
import hashlib
import re
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import anyio.to_thread
from sqlalchemy.engine import Connection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagsmith.app.http import problems
from tagsmith.app.http.idempotency import PendingRequest, RequestHash
from tagsmith.app.http.policy import BodyLimit, policy_of
from tagsmith.core.base.errors import Conflict, Fault, Invalid, TagsmithError
from tagsmith.core.store import idempotency
from tagsmith.core.store.engine import Database
from tagsmith.core.store.idempotency import StoredResponse

T = TypeVar("T")

HEADER = "Idempotency-Key"
#: Visible ASCII. Most clients send a UUID.
PATTERN = r"^[\x21-\x7e]{1,255}$"
#: A third of the time for which a row is held without renewal.
RENEW_INTERVAL_S = idempotency.HELD.total_seconds() / 3

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
            request = RequestHash(scope, receive)
            if policy_of(scope).body is BodyLimit.JSON:
                await request.read_ahead()  # not every route reads its body
            runtime = scope["app"].state.runtime
            pending = PendingRequest(
                _row_id(scope, key),
                secrets.token_hex(16),
                request,
                policy_of(scope).secret_fields,
                timedelta(days=runtime.settings.keep_responses_days),
            )
            row = _Row(runtime.database, pending)
            stored = await row.begin()
            if stored is not None:
                await (await _replay(request, stored))(scope, receive, send)
                return
        except TagsmithError as error:
            await problems.from_error(scope, error)(scope, receive, send)
            return
        scope["state"]["idempotency"] = pending

        async def released(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Before the client knows: it may repeat a refused request at once.
                await row.end(succeeded=200 <= message["status"] < 300)
            await send(message)

        try:
            await self.app(scope, request.receive, released)
        finally:
            await asyncio.shield(row.end(succeeded=False))


class _Row:
    """The row of a request. The service that makes the change stores the response in it."""

    def __init__(self, database: Database, pending: PendingRequest) -> None:
        self._database = database
        self._pending = pending
        self._renewing: asyncio.Task[None] | None = None

    async def begin(self) -> StoredResponse | None:
        """Hold the row and return None, or return the response to an earlier request."""
        stored = await self._write(idempotency.begin)
        if stored is None:
            self._renewing = asyncio.create_task(self._renew())
        return stored

    async def end(self, *, succeeded: bool) -> None:
        """Stop renewing the hold, and release the key of a request that changed nothing."""
        renewing, self._renewing = self._renewing, None
        if renewing is None:
            return
        renewing.cancel()
        if succeeded and self._pending.is_stored:
            return
        with contextlib.suppress(TagsmithError):  # on failure the key is free when the row expires
            await self._write(idempotency.release)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_INTERVAL_S)
            with contextlib.suppress(TagsmithError):  # the next renewal may still be in time
                await self._write(idempotency.renew)

    async def _write(self, work: Callable[[Connection, str, str], T]) -> T:
        def run() -> T:
            with self._database.write() as conn:
                return work(conn, self._pending.row_id, self._pending.attempt)

        return await anyio.to_thread.run_sync(run)


async def _replay(request: RequestHash, stored: StoredResponse) -> Response:
    await request.drop()
    if request.fingerprint != stored.fingerprint:
        raise Conflict(
            f"A different request already used this {HEADER}. Choose a new one.",
            code="idempotency_key_reused",
        )
    return Response(stored.body, stored.status, {**stored.headers, "Idempotency-Replayed": "true"})


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
