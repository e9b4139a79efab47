"""Requests that create, sent twice with one `Idempotency-Key`: carried out once, answered alike."""

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

from app import errors
from core.errors import Conflict, Fault, Invalid, TagsmithError
from core.store import answers
from core.store.answers import Answer, InProgress
from core.store.engine import Database

logger = logging.getLogger(__name__)

T = TypeVar("T")

HEADER = "Idempotency-Key"
#: As they are sent: visible ASCII. UUIDs are what people use.
PATTERN = r"^[\x21-\x7e]{1,255}$"
#: What creates something.
CREATING = re.compile(r"/(corpora|lexicons|jobs|keys|jobs/[^/]+/retry|models/[^/]+/versions)")
#: Headers of an answer that are given again. The others belong to the one request.
KEPT_HEADERS = (b"content-type", b"location", b"etag", b"retry-after", b"cache-control")
#: Answers to what creates are short; a longer one is not kept, and the request can be made again.
MAX_BODY_BYTES = 1 << 20
#: Well within the time that a row is held without renewal.
RENEW_S = answers.HELD.total_seconds() / 3
RETRY_AFTER_S = "1"

_KEY = re.compile(PATTERN)


class Idempotency:
    """Keeps answers to requests with an `Idempotency-Key`, and gives them again."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = _given(scope)
        if given is None:
            await self.app(scope, receive, send)
            return
        try:
            if not _KEY.fullmatch(given):
                fault = Fault("must be 1 to 255 visible ASCII characters", parameter=HEADER)
                raise Invalid(f"The {HEADER} cannot be used.", [fault], code="invalid_idempotency_key")
            database: Database = scope["app"].state.runtime.database
            row, attempt = _row_id(scope, given), secrets.token_hex(16)
            kept = await _write(database, lambda conn: answers.begin(conn, row, attempt))
            if kept is not None:
                await (await _replay(scope, receive, kept))(scope, receive, send)
                return
        except InProgress as error:
            headers = {"Retry-After": RETRY_AFTER_S}
            busy = errors.problem_response(scope, 409, error.code, error.message, headers=headers)
            await busy(scope, receive, send)
            return
        except TagsmithError as error:
            await errors.from_error(scope, error)(scope, receive, send)
            return
        await self._first(scope, receive, send, _Held(database, row, attempt))

    async def _first(self, scope: Scope, receive: Receive, send: Send, held: "_Held") -> None:
        """Carry a request out, and keep its answer if that is a success before anybody sees it."""
        body = _Hashed(scope, receive)
        parts: list[Message] = []

        async def collect(message: Message) -> None:
            parts.append(message)

        async with held.renewed():
            try:
                await self.app(scope, body.receive, collect)
            except BaseException:
                await asyncio.shield(held.release())
                raise
            await held.settle(await _answer(scope, body, parts))
        for part in parts:
            await send(part)


class _Held:
    """The row of a request that is being answered."""

    def __init__(self, database: Database, row: str, attempt: str) -> None:
        self._database = database
        self._row = row
        self._attempt = attempt

    @contextlib.asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """Go on holding it for as long as the block takes."""
        renewing = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            renewing.cancel()

    async def settle(self, answer: Answer | None) -> None:
        """Keep the answer, or let the request be made again."""
        if answer is None:
            await self.release()
            return
        try:
            await _write(self._database, lambda conn: answers.finish(conn, self._row, self._attempt, answer))
        except TagsmithError as error:
            # It is done and must be told; only a repetition would now not be recognised.
            logger.warning("answer not kept", extra={"reason": error.message})

    async def release(self) -> None:
        """Let the request be made again."""
        with contextlib.suppress(TagsmithError):  # then it is, when the row runs out
            await _write(self._database, lambda conn: answers.release(conn, self._row, self._attempt))

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(TagsmithError):  # the next time may be in time
                await _write(self._database, lambda conn: answers.renew(conn, self._row, self._attempt))


class _Hashed:
    """The body of a request, whose fingerprint is taken as it is read."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._more = True
        self._hash = hashlib.sha256(scope["query_string"])
        for wanted in (b"content-type", b"content-encoding"):
            said = next((value for name, value in scope["headers"] if name == wanted), b"")
            self._hash.update(b"\0" + said)
        self._hash.update(b"\0")

    @property
    def fingerprint(self) -> str:
        """Of what was asked for, once all was read."""
        return self._hash.hexdigest()

    async def receive(self) -> Message:
        """Pass a message on."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._hash.update(message.get("body", b""))
            self._more = message.get("more_body", False)
        else:
            self._more = False
        return message

    async def rest(self) -> None:
        """Read what nobody wanted to read."""
        while self._more:
            await self.receive()


async def _replay(scope: Scope, receive: Receive, kept: Answer) -> Response:
    body = _Hashed(scope, receive)
    await body.rest()
    if body.fingerprint != kept.fingerprint:
        raise Conflict(f"Another request was made with this {HEADER}.", code="idempotency_key_reused")
    return Response(kept.body, kept.status, {**kept.headers, "Idempotency-Replayed": "true"})


async def _answer(scope: Scope, asked: _Hashed, parts: list[Message]) -> Answer | None:
    """The answer to keep: a whole and successful one, not too long."""
    status = parts[0]["status"] if parts else 0
    body = b"".join(part.get("body", b"") for part in parts[1:])
    if not 200 <= status < 300 or len(body) > MAX_BODY_BYTES:
        return None
    try:
        await asked.rest()
    except TagsmithError:
        return None  # nobody wanted the end of the body, and it is too long to be read
    headers = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in parts[0].get("headers", ())
        if name.lower() in KEPT_HEADERS
    }
    if scope["path"] == "/keys":
        # A secret is told once, and stored nowhere.
        body = orjson.dumps({**orjson.loads(body), "token": None})
    return Answer(asked.fingerprint, status, headers, body)


def _given(scope: Scope) -> str | None:
    """The key of a request that creates, if it has one."""
    if scope["type"] != "http" or scope["method"] != "POST" or not CREATING.fullmatch(scope["path"]):
        return None
    return next(
        (value.decode("latin-1") for name, value in scope["headers"] if name == b"idempotency-key"), None
    )


def _row_id(scope: Scope, given: str) -> str:
    """One caller's key says nothing about another's, nor about another route."""
    key = scope["state"].get("key")
    parts = ("" if key is None else key.id, scope["path"], given)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


async def _write(database: Database, work: Callable[..., T]) -> T:
    def run() -> T:
        with database.write() as conn:
            return work(conn)

    return await anyio.to_thread.run_sync(run)
