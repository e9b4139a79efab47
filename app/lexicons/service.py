"""Operations on lexicons."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

from tagsmith.app.deps import Caller, Runtime
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.app.http.uploads import Declared
from tagsmith.app.lexicons.upload import read_upload
from tagsmith.app.reading.decoding import unpacked
from tagsmith.core.service.settings import MIB
from tagsmith.core.store import blobs, lexicons
from tagsmith.core.store.engine import Database
from tagsmith.core.store.lexicons import LexiconRow
from tagsmith.core.store.paging import Page
from tagsmith.wire import LexiconInfo

#: After decompression. A lexicon is read as a whole into Python strings, which take about ten times as much memory.
MAX_LEXICON_BYTES = 64 * MIB


async def create(
    body: AsyncIterator[bytes], declared: Declared, name: str | None, runtime: Runtime, caller: Caller
) -> ChangeResponse[LexiconInfo]:
    """Read a whole body and store it as a lexicon, or raise and store nothing. Its status is 200 if it existed."""
    settings, uploads = runtime.settings, runtime.uploads
    limit = min(MAX_LEXICON_BYTES, settings.max_corpus_bytes)
    async with uploads.received(body) as received:
        row = await uploads.read(
            received, read_upload, declared, settings.max_line_bytes, max_decoded_bytes=limit
        )
        row = replace(row, name=name or row.name)

        def store() -> ChangeResponse[LexiconInfo]:
            with runtime.database.write() as conn:
                stored, new = lexicons.insert(conn, row, unpacked(received.packed))
                body = LexiconInfo.model_validate(stored)
                return caller.respond(conn, ChangeResponse(body, 201 if new else 200, path_of(stored)))

        return await uploads.in_thread(store)


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
