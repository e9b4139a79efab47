"""The application: its components, middleware and routes."""

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
from starlette.types import Scope as ASGIScope

from tagsmith.app import housekeeping, openapi
from tagsmith.app.audit.routes import router as audit
from tagsmith.app.catalogue.routes import router as catalogue
from tagsmith.app.corpora.routes import router as corpora
from tagsmith.app.deps import Runtime
from tagsmith.app.features.routes import router as features
from tagsmith.app.health.routes import router as health
from tagsmith.app.health.service import Health
from tagsmith.app.http import problems
from tagsmith.app.http.limits import OpenStreams, OpenUploads, RateLimiter
from tagsmith.app.http.memory import RequestMemory
from tagsmith.app.http.middleware.access_control import AccessControl
from tagsmith.app.http.middleware.attach_policy import AttachPolicy
from tagsmith.app.http.middleware.audit import Audit
from tagsmith.app.http.middleware.body_limit import BodyLimiter
from tagsmith.app.http.middleware.etags import ETags
from tagsmith.app.http.middleware.idempotency import Idempotency
from tagsmith.app.http.middleware.origin import OriginCheck
from tagsmith.app.http.middleware.query_parameters import QueryParameters
from tagsmith.app.http.middleware.request_log import RequestLog
from tagsmith.app.http.middleware.url_check import UrlCheck
from tagsmith.app.http.params import PROBLEM_RESPONSE
from tagsmith.app.http.policy import RoutePolicies
from tagsmith.app.jobs.live import LiveEvents
from tagsmith.app.jobs.routes import router as jobs
from tagsmith.app.jobs.sender import JobSender
from tagsmith.app.keys.cache import KeyCache
from tagsmith.app.keys.routes import router as keys
from tagsmith.app.lexicons.routes import router as lexicons
from tagsmith.app.metrics import service as metrics_service
from tagsmith.app.metrics.meters import Meters
from tagsmith.app.metrics.routes import router as metrics_router
from tagsmith.app.metrics.sampler import MetricsSampler
from tagsmith.app.models.routes import router as models
from tagsmith.app.page.routes import router as page
from tagsmith.app.policies.routes import router as policies
from tagsmith.app.reading.bounded import BoundedCalls
from tagsmith.app.reading.stored import StoredTexts
from tagsmith.app.reading.uploads import Uploads
from tagsmith.app.tagging import serving
from tagsmith.app.tagging.direct import DirectTagging
from tagsmith.app.tagging.routes import router as tagging
from tagsmith.app.tagging.service import Tagging
from tagsmith.app.tagging.serving import Serving
from tagsmith.app.tagging.turns import Turns
from tagsmith.core.model.cache import ModelCache
from tagsmith.core.pipeline import warm
from tagsmith.core.registry.registry import Registry
from tagsmith.core.service import messages, version
from tagsmith.core.service.settings import ANYONE, Settings
from tagsmith.core.store.engine import Database

if TYPE_CHECKING:
    from tagsmith.core.service.tracing.otel import Tracing

#: Threads of uploads mostly wait for the disk and for SQL.
EXTRA_UPLOAD_THREADS = 2
#: Interval between checks of an idle Redis connection.
HEALTH_CHECK_INTERVAL_S = 15


def create_app(settings: Settings, tracing: "Tracing | None" = None) -> FastAPI:
    """Build the application of one API process. Its lifespan opens all resources.

    The application closes `tracing` when it ends. Raises `PolicyError` for a route without a policy.
    """
    route_policies = RoutePolicies()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Compile again to include routes that were added after `create_app`.
        route_policies.compile(app.routes)
        async with _running(settings, tracing) as runtime:
            app.state.runtime = runtime
            yield

    app = FastAPI(
        title="Tagsmith",
        version=version.package_version(),
        description="Train sequence taggers, follow training, serve versions, and roll back.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"default": dict(PROBLEM_RESPONSE)},
        redirect_slashes=False,
        openapi_url=None,
        telemetry=_telemetry(tracing, route_policies),
    )
    problems.install(app)
    # The middleware that is added last is the outermost.
    app.add_middleware(ETags)
    app.add_middleware(Audit)
    app.add_middleware(Idempotency)
    app.add_middleware(DirectTagging)
    app.add_middleware(QueryParameters, policies=route_policies)
    app.add_middleware(AccessControl)
    app.add_middleware(UrlCheck)
    app.add_middleware(BodyLimiter, settings=settings)
    app.add_middleware(OriginCheck, allowed_hosts=settings.hosts)
    app.add_middleware(AttachPolicy, policies=route_policies)
    app.add_middleware(RequestLog)
    # Routes are matched in order, so the most frequent one comes first.
    resources = (corpora, lexicons, jobs, models, policies, features, catalogue, keys, audit)
    for router in (tagging, *resources, metrics_router, health, page):
        app.include_router(router)
    openapi.install(app, keys=settings.access != ANYONE)
    route_policies.compile(app.routes)
    return app


@contextlib.asynccontextmanager
async def _running(settings: Settings, tracing: "Tracing | None") -> AsyncIterator[Runtime]:
    runtime = _runtime(settings, tracing)
    runtime.meters.open()
    registry_changed = asyncio.Event()
    tasks: list[Coroutine[Any, Any, None]] = [
        runtime.health.warm_up(),
        runtime.serving.follow(registry_changed),
        runtime.live.run(),
        runtime.key_cache.follow(),
        housekeeping.run_cleanup(runtime.database, runtime.settings),
        metrics_service.save_periodically(runtime.sampler),
    ]
    if runtime.async_redis is not None:
        tasks.append(serving.listen(runtime.async_redis, registry_changed))
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
    redis, async_redis = (messages.connect(url), _async_redis(url)) if url else (None, None)
    cache = ModelCache(settings.cache_dir, settings.model_cache_bytes, serving.open_warm)
    resolver = Serving(database, cache)
    health_checks = Health(database, async_redis, warm.serving, lambda: cache.usage.open_models)
    meters, streams = Meters(settings.data_dir / "metrics"), OpenStreams(settings)
    cores = os.cpu_count() or 1
    memory = RequestMemory(settings.request_memory)
    bounded = BoundedCalls(settings.read_memory)
    uploads = Uploads(settings.data_dir / "spool", bounded, cores + EXTRA_UPLOAD_THREADS)
    return Runtime(
        settings=settings,
        database=database,
        redis=redis,
        async_redis=async_redis,
        registry=Registry(redis),
        serving=resolver,
        tagging=Tagging(
            resolver, settings, anyio.CapacityLimiter(cores), lambda: health_checks.warmed, Turns(), memory
        ),
        memory=memory,
        live=LiveEvents(async_redis),
        sender=JobSender(url),
        health=health_checks,
        key_cache=KeyCache(database, settings),
        rates=RateLimiter(async_redis, settings),
        streams=streams,
        open_uploads=OpenUploads(),
        meters=meters,
        sampler=MetricsSampler(meters, streams, cache),
        tracing=tracing,
        uploads=uploads,
        texts=StoredTexts(database, uploads, settings),
        draining=asyncio.Event(),
    )


def _async_redis(url: str) -> AsyncRedis:
    """Create the Redis client of the event loop.

    Reads have no timeout, because the listener waits until something changes. Health checks detect a dead peer.
    The client does not retry. Every caller has a fallback without Redis, and should use it at once.
    """
    return AsyncRedis.from_url(
        url,
        socket_connect_timeout=messages.TIMEOUT_S,
        health_check_interval=HEALTH_CHECK_INTERVAL_S,
        retry=Retry(NoBackoff(), 0),
    )


async def _close(runtime: Runtime) -> None:
    if runtime.async_redis is not None:
        await runtime.async_redis.aclose()
    if runtime.redis is not None:
        runtime.redis.close()
    runtime.sender.close()
    runtime.uploads.close()
    runtime.sampler.sample()
    runtime.meters.close()
    runtime.database.dispose()
    if runtime.tracing is not None:
        await anyio.to_thread.run_sync(runtime.tracing.close)


def _telemetry(tracing: "Tracing | None", policies: RoutePolicies) -> TelemetryConfig:
    """Configure the framework to trace requests if tracing is on. The application has its own metrics and logs."""
    disabled = TelemetryConfig(
        tracing=False, metrics=False, logs=False, operation_spans=False, auto_configure=False
    )
    if tracing is None:
        return disabled

    def is_excluded(scope: ASGIScope) -> bool:
        return not policies.find(scope["method"], scope["path"]).traced

    return {**disabled, "tracing": True, "tracer_provider": tracing.provider, "exclude": is_excluded}
