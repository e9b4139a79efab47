"""Operations on lexicons."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import anyio.to_thread

from tagsmith.app.deps import Caller
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.app.http.uploads import UNNAMED, Declared, Upload
from tagsmith.core.features.lexicon.lexicon import Lexicon, LexiconReader, id_of, known_kind
from tagsmith.core.service.settings import MIB, Settings
from tagsmith.core.store import blobs, lexicons
from tagsmith.core.store.engine import Database
from tagsmith.core.store.lexicons import LexiconRow
from tagsmith.core.store.paging import Page
from tagsmith.wire import LexiconInfo

#: After decompression. A lexicon is read as a whole into Python strings, which take about ten times as much memory.
MAX_LEXICON_BYTES = 64 * MIB


async def create(
    body: AsyncIterator[bytes],
    declared: Declared,
    name: str | None,
    *,
    settings: Settings,
    database: Database,
    threads: anyio.CapacityLimiter,
    caller: Caller,
) -> ChangeResponse[LexiconInfo]:
    """Read a whole body and store it as a lexicon, or raise and store nothing. Its status is 200 if it existed."""
    reader = LexiconReader(known_kind(declared.format), max_line_bytes=settings.max_line_bytes)
    limit = min(MAX_LEXICON_BYTES, settings.max_corpus_bytes)
    with Upload(reader, declared, max_decoded_bytes=limit, spool_dir=settings.data_dir / "spool") as upload:
        await upload.receive(body, threads)

        def store() -> ChangeResponse[LexiconInfo]:
            row = _row(upload, name or upload.filename or UNNAMED)
            with database.write() as conn:
                stored, new = lexicons.insert(conn, row, upload.chunks())
                body = LexiconInfo.model_validate(stored)
                return caller.respond(conn, ChangeResponse(body, 201 if new else 200, path_of(stored)))

        return await anyio.to_thread.run_sync(store, limiter=threads)


def list_page(database: Database, limit: int, cursor: str | None) -> Page[LexiconRow]:
    """List lexicons, newest first."""
    with database.read() as conn:
        return lexicons.page(conn, limit, cursor)


def get(database: Database, lexicon_id: str) -> LexiconRow:
    """Return one lexicon."""
    with database.read() as conn:
        return lexicons.get(conn, lexicon_id)


def open_content(database: Database, lexicon_id: str) -> tuple[LexiconRow, Iterator[bytes]]:
    """Return a lexicon and its text. No transaction stays open while a slow client reads."""
    with database.read() as conn:
        row = lexicons.get(conn, lexicon_id)
        blob_id = lexicons.blob_id(conn, lexicon_id)
    return row, blobs.stream(database, blob_id)


def delete(database: Database, lexicon_id: str, caller: Caller) -> None:
    """Delete a lexicon that no unfinished job needs."""
    with database.write() as conn:
        lexicons.delete(conn, lexicon_id)
        caller.record(conn)


def path_of(lexicon: LexiconRow) -> str:
    """Return the path of a lexicon."""
    return f"/lexicons/{lexicon.id}"


def _row(upload: Upload[Lexicon], name: str) -> LexiconRow:
    lexicon = upload.finish()
    return LexiconRow(
        id=id_of(lexicon.kind, upload.sha256),
        name=name,
        kind=lexicon.kind,
        entries=len(lexicon.entries),
        classes=len(set(lexicon.classes)),
        sha256=upload.sha256,
        size_bytes=upload.size_bytes,
        created_at=datetime.now(UTC),
    )
