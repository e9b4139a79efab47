"""The parts of a running API process, and how routes ask for them."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import anyio
from fastapi import Depends, Request
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from sqlalchemy.engine import Connection
from starlette.types import Scope as ASGIScope

from app import errors
from app.audit.entry import Entry
from app.health.service import Health
from app.jobs.live import LiveEvents
from app.jobs.sender import JobSender
from app.keys.ring import Keyring
from app.limits import OpenStreams, RateLimiter
from app.metrics.meters import Meters
from app.metrics.readings import Readings
from app.tagging.service import Tagging
from app.tagging.serving import Serving
from core.settings import Settings
from core.store.engine import Database
from core.store.keys import KeyRow, Scope

if TYPE_CHECKING:
    from core.tracing.otel import Tracing


@dataclass(frozen=True, slots=True)
class Runtime:
    """What one API process holds while it runs. Built by the lifespan, passed to whoever needs a part."""

    settings: Settings
    database: Database
    #: For short calls after a commit; None when the process runs without Redis.
    redis: Redis | None
    #: For the event loop: health and the two readers.
    async_redis: AsyncRedis | None
    serving: Serving
    tagging: Tagging
    live: LiveEvents
    sender: JobSender
    health: Health
    keyring: Keyring
    rates: RateLimiter
    streams: OpenStreams
    meters: Meters
    readings: Readings
    #: None where nothing is traced.
    tracing: "Tracing | None"
    #: Uploads have threads of their own, so that a few long ones cannot take those of all other routes.
    upload_threads: anyio.CapacityLimiter
    #: Set when the process stops: from then on every answer is the last on its connection.
    draining: asyncio.Event


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, the request's id, and its span where it is traced."""

    #: The name and id of the key, or the address where keys are not in force.
    actor: str | None
    request_id: str
    #: None where keys are not in force.
    key: KeyRow | None = None
    #: For what the request changes; None of one that changes nothing.
    entry: Entry | None = None
    #: W3C trace context, None where nothing is traced.
    traceparent: str | None = None

    def record(
        self,
        conn: Connection,
        *,
        location: str | None = None,
        note: str | None = None,
        status: int | None = None,
    ) -> None:
        """Put what the caller does into the audit, in the transaction that does it."""
        if self.entry is not None:
            self.entry.write(conn, location, note, status)

    def require(self, scope: Scope) -> None:
        """Refuse a caller whose key does not allow something that this request asks for beside its route."""
        if self.key is not None and not self.key.allows(scope):
            raise errors.lacks(scope)


def of(request: Request) -> Runtime:
    """Give the runtime of the process that handles `request`."""
    runtime = request.app.state.runtime
    assert isinstance(runtime, Runtime)
    return runtime


async def _runtime(request: Request) -> Runtime:
    return of(request)


async def _database(request: Request) -> Database:
    return of(request).database


def caller_of(scope: ASGIScope) -> Caller:
    """Say who sent a request, by what the gate found."""
    key = scope["state"].get("key")
    client = scope.get("client")
    actor = f"{key.name} ({key.id})" if key is not None else client[0] if client else None
    tracing = scope["app"].state.runtime.tracing
    traceparent = None if tracing is None else tracing.traceparent()
    return Caller(actor, errors.request_id(scope), key, scope["state"].get("entry"), traceparent)


async def _caller(request: Request) -> Caller:
    return caller_of(request.scope)


RuntimeDep = Annotated[Runtime, Depends(_runtime)]
DatabaseDep = Annotated[Database, Depends(_database)]
CallerDep = Annotated[Caller, Depends(_caller)]
