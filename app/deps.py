"""The components of an API process, as FastAPI dependencies."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from sqlalchemy.engine import Connection
from starlette.types import Scope as ASGIScope

from tagsmith.app.audit.entry import RequestAudit
from tagsmith.app.health.service import Health
from tagsmith.app.http import problems
from tagsmith.app.http.idempotency import ChangeResponse, PendingRequest
from tagsmith.app.http.limits import OpenStreams, OpenUploads, RateLimiter
from tagsmith.app.http.memory import RequestMemory
from tagsmith.app.jobs.live import LiveEvents
from tagsmith.app.jobs.sender import JobSender
from tagsmith.app.keys.cache import KeyCache
from tagsmith.app.metrics.meters import Meters
from tagsmith.app.metrics.sampler import MetricsSampler
from tagsmith.app.reading.stored import StoredTexts
from tagsmith.app.reading.uploads import Uploads
from tagsmith.app.tagging.service import Tagging
from tagsmith.app.tagging.serving import Serving
from tagsmith.core.registry.registry import Registry
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import KeyRow, Scope

if TYPE_CHECKING:
    from tagsmith.core.service.tracing.otel import Tracing

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Runtime:
    """The components of one API process. The lifespan of the application builds it."""

    settings: Settings
    database: Database
    #: Used for short calls after a commit; None without Redis.
    redis: Redis | None
    #: Used on the event loop: health checks, rate limits, live events, registry changes. None without Redis.
    async_redis: AsyncRedis | None
    #: Changes which model versions are served.
    registry: Registry
    serving: Serving
    tagging: Tagging
    memory: RequestMemory
    live: LiveEvents
    sender: JobSender
    health: Health
    key_cache: KeyCache
    rates: RateLimiter
    streams: OpenStreams
    open_uploads: OpenUploads
    meters: Meters
    sampler: MetricsSampler
    #: None when tracing is off.
    tracing: "Tracing | None"
    uploads: Uploads
    texts: StoredTexts
    #: Set when the process stops. From then on every response closes its connection.
    draining: asyncio.Event


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, its id, and its trace context."""

    #: The name and id of the key, or the client address if keys are not required.
    actor: str | None
    request_id: str
    #: None if keys are not required.
    key: KeyRow | None = None
    #: Records the changes of the request; None if the route is not audited.
    audit: RequestAudit | None = None
    #: W3C trace context; None when tracing is off.
    traceparent: str | None = None
    #: Stores the response of the request; None without an `Idempotency-Key`.
    pending: PendingRequest | None = None

    def record(
        self,
        conn: Connection,
        *,
        location: str | None = None,
        note: str | None = None,
        status: int | None = None,
    ) -> None:
        """Record the change in the audit log, in the same transaction as the change."""
        if self.audit is not None:
            self.audit.write(conn, location, note, status)

    def respond(self, conn: Connection, response: ChangeResponse[T]) -> ChangeResponse[T]:
        """Record the change, and store its response for a repeated request, in the same transaction as the change."""
        self.record(conn, location=response.location, status=response.status)
        if self.pending is not None:
            self.pending.store(conn, response)
        return response

    def require(self, scope: Scope) -> None:
        """Raise Forbidden if the key lacks `scope`. Used for scopes that a request needs beyond that of its route."""
        if self.key is not None and not self.key.allows(scope):
            raise problems.lacks(scope)


def of(request: Request) -> Runtime:
    """Return the runtime of the process that handles `request`."""
    runtime = request.app.state.runtime
    assert isinstance(runtime, Runtime)
    return runtime


async def _runtime(request: Request) -> Runtime:
    return of(request)


async def _database(request: Request) -> Database:
    return of(request).database


def caller_of(scope: ASGIScope) -> Caller:
    """Return the sender of a request, identified by the key that the `AccessControl` middleware found."""
    key = scope["state"].get("key")
    client = scope.get("client")
    actor = f"{key.name} ({key.id})" if key is not None else client[0] if client else None
    tracing = scope["app"].state.runtime.tracing
    traceparent = None if tracing is None else tracing.traceparent()
    state = scope["state"]
    return Caller(
        actor, problems.request_id(scope), key, state.get("audit"), traceparent, state.get("idempotency")
    )


async def _caller(request: Request) -> Caller:
    return caller_of(request.scope)


RuntimeDep = Annotated[Runtime, Depends(_runtime)]
DatabaseDep = Annotated[Database, Depends(_database)]
CallerDep = Annotated[Caller, Depends(_caller)]
