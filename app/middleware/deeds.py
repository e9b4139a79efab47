"""The audit of changes: each that succeeded is recorded before its answer goes out."""

import logging

import anyio.to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import deps
from app.keys import scopes
from core.errors import TagsmithError
from core.store import audit
from core.store.audit import Deed
from core.store.engine import Database

logger = logging.getLogger(__name__)

#: What is posted and changes nothing.
UNRECORDED = frozenset({"tag", "features"})


class Deeds:
    """Records who changed what."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["method"] in scopes.READING
            or scopes.resource_of(scope["path"]) in UNRECORDED
        ):
            await self.app(scope, receive, send)
            return

        async def recorded(message: Message) -> None:
            if message["type"] == "http.response.start" and 200 <= message["status"] < 300:
                await _record(scope["app"].state.runtime.database, _deed(scope, message))
            await send(message)

        await self.app(scope, receive, recorded)


def _deed(scope: Scope, start: Message) -> Deed:
    caller = deps.caller_of(scope)
    location = next((value for name, value in start["headers"] if name.lower() == b"location"), None)
    return Deed(
        actor=caller.actor,
        key_id=None if caller.key is None else caller.key.id,
        method=scope["method"],
        path=scope["path"],
        location=None if location is None else location.decode("latin-1"),
        status=start["status"],
        request_id=caller.request_id,
    )


async def _record(database: Database, deed: Deed) -> None:
    def write() -> None:
        with database.write() as conn:
            audit.record(conn, deed)

    try:
        await anyio.to_thread.run_sync(write)
    except TagsmithError as error:
        # The change is made and must be told; the log has what the table lacks.
        extra = {
            "reason": error.message,
            "request_id": deed.request_id,
            "actor": deed.actor,
            "path": deed.path,
        }
        logger.exception("change not recorded in the audit", extra=extra)
