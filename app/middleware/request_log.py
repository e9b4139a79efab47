"""Request ids, one JSON log line a request, and the last net under every exception."""

import logging
import os
import re
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import errors
from app.deps import Runtime
from app.metrics import names
from core import logs

access = logging.getLogger("app.access")
faults = logging.getLogger("app.errors")

#: What callers may hand us: it is echoed in a header and written to logs, so it must be plain and short.
REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


#: What a process that stops says with every answer; the server then closes the connection behind it.
LAST = (b"connection", b"close")


class RequestLog:
    """Names each request, answers 500 for what nobody caught, and logs the outcome."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _given_id(scope) or os.urandom(8).hex()
        scope.setdefault("state", {})["request_id"] = request_id
        # Whatever is logged on the way, in whichever thread, has the id.
        logs.bind(request_id=request_id)
        runtime: Runtime = scope["app"].state.runtime
        if runtime.tracing is not None:
            logs.bind_also(**runtime.tracing.ids())
        header = (b"x-request-id", request_id.encode())
        started = time.perf_counter()
        status, sent_bytes = 0, 0

        async def named(message: Message) -> None:
            nonlocal status, sent_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), header]
                if runtime.draining.is_set():
                    headers.append(LAST)
                message["headers"] = headers
            elif message["type"] == "http.response.body":
                sent_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, named)
        except Exception:  # noqa: BLE001  # the last net: whatever it was, the client gets a problem
            faults.exception("unhandled exception", extra={"request_id": request_id, "path": scope["path"]})
            if status == 0:
                await errors.internal(scope)(scope, receive, named)
        finally:
            duration_s = time.perf_counter() - started
            runtime.meters.observe(
                names.REQUESTS, scope["method"], _route(scope), str(status), seconds=duration_s
            )
            if access.isEnabledFor(logging.INFO):
                line = {
                    "request_id": request_id,
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "duration_ms": round(duration_s * 1e3, 3),
                    "sent_bytes": sent_bytes,
                }
                logs.tell(access, "request", line)


def _route(scope: Scope) -> str:
    """The route with its parameters' names in it: addresses themselves are too many to count by."""
    route = scope.get("route")
    if route is None:  # the one route that is reached without the framework's routing
        return "/tag" if scope["path"] == "/tag" else names.NO_ROUTE
    return str(route.path)


def _given_id(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text: str = value.decode("latin-1")
            return text if REQUEST_ID.fullmatch(text) else None
    return None
