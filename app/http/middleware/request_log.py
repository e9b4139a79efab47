"""Request ids, one JSON log line per request, and a 500 response for exceptions that nothing else handles."""

import logging
import os
import re
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagsmith.app.deps import Runtime
from tagsmith.app.http import problems
from tagsmith.app.metrics import names
from tagsmith.core.service import logs

access = logging.getLogger("app.access")
faults = logging.getLogger("app.errors")

#: Request ids that callers may send. They are written to a header and to logs, so they must be short plain text.
REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


#: Header of every response of a process that is stopping. The server then closes the connection.
LAST = (b"connection", b"close")


class RequestLog:
    """Assigns an id to each request, responds with 500 to unhandled exceptions, and logs the outcome."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _given_id(scope) or os.urandom(8).hex()
        scope.setdefault("state", {})["request_id"] = request_id
        # Every log line of this request, in any thread, has the id.
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
        except Exception as error:  # noqa: BLE001  # the client gets a problem response in any case
            faults.exception("unhandled exception", extra={"request_id": request_id, "path": scope["path"]})
            problems.release(error)
            if status == 0:
                await problems.internal(scope)(scope, receive, named)
        finally:
            duration_s = time.perf_counter() - started
            runtime.meters.observe(
                names.REQUEST_SECONDS, scope["method"], _route(scope), str(status), seconds=duration_s
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
                logs.write_later(access, "request", line)


def _route(scope: Scope) -> str:
    """Return the path template of the route. Actual paths have too many values for a metric label."""
    route = scope.get("route")
    if route is None:  # /tag is served without the routing of the framework
        return "/tag" if scope["path"] == "/tag" else names.NO_ROUTE
    return str(route.path)


def _given_id(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text: str = value.decode("latin-1")
            return text if REQUEST_ID.fullmatch(text) else None
    return None
