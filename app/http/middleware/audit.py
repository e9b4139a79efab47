"""The audit log of changes: every successful change is recorded before its response is sent."""

import logging

import anyio.to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagsmith.app import deps
from tagsmith.app.audit.entry import RequestAudit
from tagsmith.app.http.policy import policy_of
from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.store.audit import NewAuditEntry
from tagsmith.core.store.engine import Database

logger = logging.getLogger(__name__)


class Audit:
    """Ensures that requests to audited routes are recorded.

    The service that makes a change writes the entry in the same transaction. If a service does not write it, this
    middleware does, in a separate transaction.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not policy_of(scope).audit:
            await self.app(scope, receive, send)
            return
        entry = _entry(scope)
        audit = scope["state"]["audit"] = RequestAudit(scope, entry)

        async def recorded(message: Message) -> None:
            succeeded = message["type"] == "http.response.start" and 200 <= message["status"] < 300
            if succeeded and not audit.written:
                await _record_late(scope["app"].state.runtime.database, audit, entry, message)
            await send(message)

        await self.app(scope, receive, recorded)


def _entry(scope: Scope) -> NewAuditEntry:
    """Return an entry with the fields that are known before the request is executed."""
    caller = deps.caller_of(scope)
    return NewAuditEntry(
        actor=caller.actor,
        key_id=None if caller.key is None else caller.key.id,
        method=scope["method"],
        path=scope["path"],
        location=None,
        status=0,
        request_id=caller.request_id,
        note=None,
    )


async def _record_late(database: Database, audit: RequestAudit, entry: NewAuditEntry, start: Message) -> None:
    headers = {name.lower(): value.decode("latin-1") for name, value in start["headers"]}

    def write() -> None:
        with database.write() as conn:
            audit.write(conn, headers.get(b"location"), status=start["status"])

    extra = {"request_id": entry.request_id, "actor": entry.actor, "path": entry.path}
    logger.warning("change recorded apart from its transaction", extra=extra)
    try:
        await anyio.to_thread.run_sync(write)
    except TagsmithError as error:
        # The change is made, so its response is sent. The log contains the entry that is missing in the table.
        logger.exception("change not recorded in the audit", extra={**extra, "reason": error.message})
