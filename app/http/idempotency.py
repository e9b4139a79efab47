"""The part of idempotency that belongs to the change: its response is stored in the same transaction."""

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar

import orjson
from pydantic import BaseModel
from sqlalchemy.engine import Connection
from starlette.responses import Response
from starlette.types import Message, Receive, Scope

from tagsmith.core.store import idempotency
from tagsmith.core.store.idempotency import StoredResponse

T_co = TypeVar("T_co", bound=BaseModel, covariant=True)

_JSON = "application/json"
#: Headers that change the meaning of the bytes.
_HEADERS = (b"content-type", b"content-encoding")


@dataclass(frozen=True, slots=True)
class ChangeResponse(Generic[T_co]):
    """The response to a request that changed something, complete before the change is committed."""

    body: T_co
    status: int = 201
    #: The path of what was created, if anything was.
    location: str | None = None
    #: Further headers.
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_headers(self) -> dict[str, str]:
        """All headers of the response."""
        location = {} if self.location is None else {"location": self.location}
        return {"content-type": _JSON, **location, **self.headers}

    def content(self) -> bytes:
        """Return the body as JSON."""
        return self.body.model_dump_json(by_alias=True).encode()

    def response(self) -> Response:
        """Return what a route sends."""
        return Response(self.content(), self.status, self.all_headers)


class RequestHash:
    """Passes on the messages of a request and hashes their bytes."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._more = True
        self._ahead: deque[Message] = deque()
        self._hash = hashlib.sha256(scope["query_string"])
        for header in _HEADERS:
            value = next((value for name, value in scope["headers"] if name == header), b"")
            self._hash.update(b"\0" + value)
        self._hash.update(b"\0")

    @property
    def fingerprint(self) -> str:
        """A hash of the whole request."""
        assert not self._more, "the body is not read to its end"
        return self._hash.hexdigest()

    async def receive(self) -> Message:
        """Return the next message."""
        return self._ahead.popleft() if self._ahead else await self._next()

    async def read_ahead(self) -> None:
        """Read the rest of the body, and keep it for `receive`."""
        while self._more:
            self._ahead.append(await self._next())

    async def drop(self) -> None:
        """Read the rest of the body, and drop it."""
        while self._more:
            await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._hash.update(message.get("body", b""))
            self._more = message.get("more_body", False)
        else:
            self._more = False
        return message


class PendingRequest:
    """A request with an `Idempotency-Key` that is being executed. It holds a row until its response is stored."""

    def __init__(
        self, row_id: str, attempt: str, request: RequestHash, secret_fields: tuple[str, ...], kept: timedelta
    ) -> None:
        self.row_id = row_id
        self.attempt = attempt
        self._request = request
        self._secret_fields = secret_fields
        self._kept = kept
        #: Whether `store` was called. The transaction can still fail.
        self.is_stored = False

    def store(self, conn: Connection, response: ChangeResponse[BaseModel]) -> None:
        """Store the response in the transaction of the change.

        Raises `InProgress`, which undoes the change, if another request has taken over.
        """
        body = response.content()
        if self._secret_fields:
            body = orjson.dumps({**orjson.loads(body), **dict.fromkeys(self._secret_fields)})
        stored = StoredResponse(self._request.fingerprint, response.status, response.all_headers, body)
        idempotency.store(conn, self.row_id, self.attempt, stored, self._kept)
        self.is_stored = True
