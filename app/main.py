"""The application: its parts, its middleware, its routes."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from starlette.types import Scope

from app import errors, housekeeping, openapi
from app.audit.routes import router as audit
from app.corpora.routes import router as corpora
from app.deps import Runtime
from app.features.routes import router as features
from app.health.routes import router as health
from app.health.service import Health
from app.jobs.live import LiveEvents
from app.jobs.routes import router as jobs
from app.jobs.sender import JobSender
from app.keys import scopes
from app.keys.ring import Keyring
from app.keys.routes import router as keys
from app.lexicons.routes import router as lexicons
from app.limits import OpenStreams, RateLimiter
from app.metrics import service as metrics
from app.metrics.meters import Meters
from app.metrics.readings import Readings
from app.metrics.routes import router as metric
from app.middleware.address import PlainAddress
from app.middleware.body_limit import BodyLimit
from app.middleware.deeds import Deeds
from app.middleware.gate import Gate
from app.middleware.idempotency import Idempotency
from app.middleware.request_log import RequestLog
from app.middleware.validators import Validators
from app.models.routes import router as models
from app.page.routes import router as page
from app.params import PROBLEM_RESPONSE
from app.policies.routes import router as policies
from app.tagging import lines, serving
from app.tagging.routes import DirectTagging
from app.tagging.routes import router as tagging
from app.tagging.service import Tagging
from app.tagging.serving import Serving
from app.tagging.turns import Turns
from core import version, warm, wire
from core.model.cache import ModelCache
from core.settings import ANYONE, Settings
from core.store.engine import Database

if TYPE_CHECKING:
    from core.tracing.otel import Tracing

#: Uploads parse with the GIL released, so two more than cores keep them busy while some wait for SQL.
EXTRA_UPLOAD_THREADS = 2
#: How often a connection to Redis that waits for news is asked whether it still stands.
HEALTH_CHECK_S = 15


def create_app(settings: Settings, tracing: "Tracing | None" = None) -> FastAPI:
    """Build the application of one API process. Nothing is opened before its lifespan begins.

    It closes `tracing` when it ends.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with _running(settings, tracing) as runtime:
            app.state.runtime = runtime
            yield

    app = FastAPI(
        title="Tagsmith",
        version=version.package_version(),
        description="Train sequence taggers, watch them learn, serve them, and go back when you must.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"default": dict(PROBLEM_RESPONSE)},
        redirect_slashes=False,
        telemetry=_telemetry(tracing),
    )
    errors.install(app)
    # The last added is the outermost.
    app.add_middleware(Validators)
    app.add_middleware(Deeds)
    app.add_middleware(Idempotency)
    app.add_middleware(DirectTagging)
    app.add_middleware(Gate)
    app.add_middleware(PlainAddress)
    app.add_middleware(BodyLimit, limit_of=_limits(settings))
    app.add_middleware(RequestLog)
    # Routes are tried in order, so the one that is called most comes first.
    stored = (corpora, lexicons, jobs, models, policies, features, keys, audit)
    for router in (tagging, *stored, metric, health, page):
        app.include_router(router)
    openapi.install(app, keys=settings.access != ANYONE)
    return app


@contextlib.asynccontextmanager
async def _running(settings: Settings, tracing: "Tracing | None") -> AsyncIterator[Runtime]:
    runtime = _runtime(settings, tracing)
    runtime.meters.open()
    nudged = asyncio.Event()
    tasks: list[Coroutine[Any, Any, None]] = [
        runtime.health.warm_up(),
        runtime.serving.follow(nudged),
        runtime.live.run(),
        runtime.keyring.follow(),
        housekeeping.keep_clean(runtime.database),
        metrics.keep_saved(runtime.readings),
    ]
    if runtime.async_redis is not None:
        tasks.append(serving.listen(runtime.async_redis, nudged))
    running = [asyncio.create_task(task) for task in tasks]
    try:
        yield runtime
    finally:
        runtime.live.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await _close(runtime)


def _runtime(settings: Settings, tracing: "Tracing | None") -> Runtime:
    database = Database(settings.database_url)
    url = settings.redis_url
    async_redis = _async_redis(url) if url else None
    cache = ModelCache(settings.cache_dir, settings.model_cache_bytes, serving.open_warm)
    known = Serving(database, cache)
    checks = Health(database, async_redis, warm.serving)
    meters, streams = Meters(settings.data_dir / "metrics"), OpenStreams(settings)
    cores = os.cpu_count() or 1
    return Runtime(
        settings=settings,
        database=database,
        redis=wire.connect(url) if url else None,
        async_redis=async_redis,
        serving=known,
        tagging=Tagging(known, settings, anyio.CapacityLimiter(cores), lambda: checks.warmed, Turns()),
        live=LiveEvents(async_redis),
        sender=JobSender(url),
        health=checks,
        keyring=Keyring(database, settings),
        rates=RateLimiter(async_redis, settings),
        streams=streams,
        meters=meters,
        readings=Readings(meters, streams, cache),
        tracing=tracing,
        upload_threads=anyio.CapacityLimiter(cores + EXTRA_UPLOAD_THREADS),
        draining=asyncio.Event(),
    )


def _async_redis(url: str) -> AsyncRedis:
    """Make the client of the event loop.

    Reads have no timeout, since the listener waits for as long as nothing changes; health checks find a dead peer.
    Nothing is retried: each user of it knows what to do without Redis, and should do it at once.
    """
    return AsyncRedis.from_url(
        url,
        socket_connect_timeout=wire.TIMEOUT_S,
        health_check_interval=HEALTH_CHECK_S,
        retry=Retry(NoBackoff(), 0),
    )


async def _close(runtime: Runtime) -> None:
    if runtime.async_redis is not None:
        await runtime.async_redis.aclose()
    if runtime.redis is not None:
        runtime.redis.close()
    runtime.sender.close()
    runtime.readings.take()
    runtime.meters.close()
    runtime.database.dispose()
    if runtime.tracing is not None:
        await anyio.to_thread.run_sync(runtime.tracing.close)


def _telemetry(tracing: "Tracing | None") -> TelemetryConfig:
    """What the framework traces: requests, where anything is traced; metrics and logs are our own."""
    made = TelemetryConfig(
        tracing=False, metrics=False, logs=False, operation_spans=False, auto_configure=False
    )
    if tracing is None:
        return made
    return {**made, "tracing": True, "tracer_provider": tracing.provider, "exclude": _is_probe}


def _is_probe(scope: Scope) -> bool:
    """Whether a request is one of those that come every few seconds and say nothing."""
    return scopes.resource_of(scope["path"]) in ("livez", "readyz", "metrics")


def _limits(settings: Settings) -> Any:
    def limit_of(scope: Scope) -> int:
        path = scope["path"]
        model = path.startswith("/models/") and path.endswith("/versions")
        # Streams of lines to tag are as long as uploads; they are never held whole.
        streams = path == "/tag" and (b"content-type", lines.MEDIA_TYPE.encode()) in scope["headers"]
        uploads = model or streams or path in ("/corpora", "/lexicons")
        return settings.max_upload_bytes if uploads else settings.max_json_bytes

    return limit_of
