"""The audit of changes: each that succeeded is recorded, at the latest before its answer goes out."""

import logging

import anyio.to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import deps
from app.audit.entry import Entry
from app.keys import scopes
from core.errors import TagsmithError
from core.store.audit import Deed
from core.store.engine import Database

logger = logging.getLogger(__name__)

#: What is posted and changes nothing.
UNRECORDED = frozenset({"tag", "features"})


class Deeds:
    """Sees to it that who changed what is recorded.

    The entry is for the service that makes the change, which writes it in the same transaction. What a service has
    forgotten is recorded here, apart from the change: better late than never.
    """

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
        deed = _deed(scope)
        entry = scope["state"]["entry"] = Entry(scope, deed)

        async def recorded(message: Message) -> None:
            succeeded = message["type"] == "http.response.start" and 200 <= message["status"] < 300
            if succeeded and not entry.written:
                await _record_late(scope["app"].state.runtime.database, entry, deed, message)
            await send(message)

        await self.app(scope, receive, recorded)


def _deed(scope: Scope) -> Deed:
    """What is known of it before it is done."""
    caller = deps.caller_of(scope)
    return Deed(
        actor=caller.actor,
        key_id=None if caller.key is None else caller.key.id,
        method=scope["method"],
        path=scope["path"],
        location=None,
        status=0,
        request_id=caller.request_id,
        note=None,
    )


async def _record_late(database: Database, entry: Entry, deed: Deed, start: Message) -> None:
    headers = {name.lower(): value.decode("latin-1") for name, value in start["headers"]}

    def write() -> None:
        with database.write() as conn:
            entry.write(conn, headers.get(b"location"), status=start["status"])

    extra = {"request_id": deed.request_id, "actor": deed.actor, "path": deed.path}
    logger.warning("change recorded apart from its transaction", extra=extra)
    try:
        await anyio.to_thread.run_sync(write)
    except TagsmithError as error:
        # It is done and must be told; the log has what the table lacks.
        logger.exception("change not recorded in the audit", extra={**extra, "reason": error.message})
