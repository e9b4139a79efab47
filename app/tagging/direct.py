"""A shortcut to the tagging endpoint that skips the routing of the framework."""

from collections.abc import Iterable

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagsmith.app.deps import Runtime
from tagsmith.app.http import problems
from tagsmith.app.tagging import respond
from tagsmith.app.tagging.serving import Served
from tagsmith.core.base.errors import TagsmithError


class DirectTagging:
    """Middleware that calls the tagging endpoint without the framework's routing, injection and exception handlers.

    These take longer than tagging a short sentence. The route is also registered with the framework, for other
    methods and for the OpenAPI document. The request log middleware, which is further out, handles unexpected
    exceptions.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/tag" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        runtime: Runtime = scope["app"].state.runtime
        if runtime.tracing is not None:
            runtime.tracing.name_route("POST", "/tag")
        try:
            if runtime.tracing is None and _is_plain_json(scope["headers"]):
                tagged = await runtime.tagging.answer(await _body(receive))
                respond.count(runtime.meters, tagged.served, tagged.amount, answers=1)
                start, end = _messages(tagged.served, tagged.body)
                await send(start)
                await send(end)
                return
            response = await respond.respond(Request(scope, receive, send))
        except ClientDisconnect:
            return
        except TagsmithError as error:
            response = problems.from_error(scope, error)
        await response(scope, receive, send)


def _is_plain_json(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the headers clearly declare plain JSON. The endpoint examines all other cases."""
    json = False
    for name, value in headers:
        if name == b"content-type":
            json = value == b"application/json"
        elif name == b"content-encoding":
            return False
    return json


async def _body(receive: Receive) -> bytes:
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        return bytes(message.get("body", b""))
    parts = []
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()
    raise ClientDisconnect


def _messages(served: Served, body: bytes) -> tuple[Message, Message]:
    """Build the two ASGI messages of a response."""
    headers = [
        (b"content-length", b"%d" % len(body)),
        (b"content-type", b"application/json"),
        (b"model-version", respond.version_of(served).encode()),
    ]
    start = {"type": "http.response.start", "status": 200, "headers": headers}
    return start, {"type": "http.response.body", "body": body}
