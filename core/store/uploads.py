"""Shared code for rows of uploads (corpora and lexicons): their blob, and the jobs that need them."""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.store import blobs, tables
from tagsmith.core.store.states import TERMINAL


def missing(table: sa.Table, row_id: str) -> NotFound:
    """Build the error for a row that does not exist."""
    return NotFound(f"There is no {table.name} {row_id}.", code=f"{table.name}_not_found")


def blob_id(conn: Connection, table: sa.Table, row_id: str) -> str:
    """Return the id of the text, for `blobs.stream`."""
    return _blob_id(conn, table, row_id, lock=False)


def hold(conn: Connection, table: sa.Table, row_ids: Iterable[str]) -> list[str]:
    """Keep rows from being deleted until the transaction ends; return their ids, each once."""
    # Pairs with `lock`.
    ids = list(dict.fromkeys(row_ids))
    query = sa.select(table.c.id).where(table.c.id.in_(ids))
    found = set(conn.scalars(query.with_for_update(read=True, key_share=True)))
    for row_id in ids:
        if row_id not in found:
            raise missing(table, row_id)
    return ids


def lock(conn: Connection, table: sa.Table, row_id: str) -> str:
    """Keep others from starting to use a row until the transaction ends; return the id of its text."""
    return _blob_id(conn, table, row_id, lock=True)


def delete(conn: Connection, table: sa.Table, uses: sa.Table, row_id: str) -> None:
    """Remove a row and its text, unless an unfinished job in `uses` needs it."""
    blob = lock(conn, table, row_id)
    job = tables.job
    users = (
        sa.select(job.c.id)
        .join(uses, uses.c.job_id == job.c.id)
        .where(uses.c[f"{table.name}_id"] == row_id, job.c.state.not_in(TERMINAL))
    )
    user = conn.execute(users.limit(1)).scalar_one_or_none()
    if user is not None:
        message = f"The {table.name} {row_id} is needed by {user}, which has not ended. Cancel the job or wait for it."
        raise Conflict(message, code=f"{table.name}_in_use")
    conn.execute(table.delete().where(table.c.id == row_id))
    _delete_unused(conn, table, blob)


def _delete_unused(conn: Connection, table: sa.Table, blob: str) -> None:
    """Delete a text that no row refers to any more."""
    # The lock waits for an upload that is about to share the text, and makes a later one write its own.
    conn.execute(sa.select(tables.blob.c.id).where(tables.blob.c.id == blob).with_for_update())
    shared = conn.execute(sa.select(table.c.id).where(table.c.blob_id == blob).limit(1)).first()
    if shared is None:
        blobs.delete(conn, blob)


def _blob_id(conn: Connection, table: sa.Table, row_id: str, *, lock: bool) -> str:
    query = sa.select(table.c.blob_id).where(table.c.id == row_id)
    found = conn.execute(query.with_for_update() if lock else query).scalar_one_or_none()
    if found is None:
        raise missing(table, row_id)
    return str(found)
