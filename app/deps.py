"""The parts of a running API process, and how routes ask for them."""

from dataclasses import dataclass
from typing import Annotated

import anyio
from fastapi import Depends, Request
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from app import errors
from app.health.service import Health
from app.jobs.live import LiveEvents
from app.jobs.sender import JobSender
from app.tagging.service import Tagging
from app.tagging.serving import Serving
from core.settings import Settings
from core.store.engine import Database


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
    #: Uploads have threads of their own, so that a few long ones cannot take those of all other routes.
    upload_threads: anyio.CapacityLimiter


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and the request's id."""

    actor: str | None
    request_id: str


def of(request: Request) -> Runtime:
    """Give the runtime of the process that handles `request`."""
    runtime = request.app.state.runtime
    assert isinstance(runtime, Runtime)
    return runtime


async def _runtime(request: Request) -> Runtime:
    return of(request)


async def _database(request: Request) -> Database:
    return of(request).database


async def _caller(request: Request) -> Caller:
    # There are no keys yet, so the address is all that is known of who calls.
    return Caller(request.client.host if request.client else None, errors.request_id(request.scope))


RuntimeDep = Annotated[Runtime, Depends(_runtime)]
DatabaseDep = Annotated[Database, Depends(_database)]
CallerDep = Annotated[Caller, Depends(_caller)]
