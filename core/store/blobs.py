"""Large bytes as rows of one MiB: no value is ever whole in memory, on either dialect."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa
import zstandard
from sqlalchemy.engine import Connection

from core.errors import NotFound
from core.store import tables
from core.store.engine import Database

CHUNK_BYTES = 1 << 20
# The cheapest level: text still shrinks three to four times, and a write transaction should be short.
ZSTD_LEVEL = 1


class CorruptBlobError(RuntimeError):
    """Stored bytes are not those that were written."""


@dataclass(frozen=True, slots=True)
class Blob:
    """What was stored: size and digest are those of the bytes before compression."""

    id: str
    size_bytes: int
    sha256: str
    chunks: int


def write(conn: Connection, blob_id: str, chunks: Iterable[bytes]) -> Blob:
    """Store the concatenation of `chunks`.

    The write lock is held until the transaction ends, so `chunks` must come from memory or disk, never
    from a network.
    """
    blob = tables.blob
    # The row comes first because the chunks refer to it; its figures are known only at the end.
    conn.execute(blob.insert().values(id=blob_id, size_bytes=0, sha256="", chunks=0))
    insert = tables.blob_chunk.insert()
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    digest = hashlib.sha256()
    size_bytes = seq = 0
    for piece in _pieces(chunks):
        digest.update(piece)
        size_bytes += len(piece)
        values = {"sha256": hashlib.sha256(piece).hexdigest(), "data": compressor.compress(piece)}
        conn.execute(insert, {"blob_id": blob_id, "seq": seq, **values})
        seq += 1
    stored = Blob(blob_id, size_bytes, digest.hexdigest(), seq)
    conn.execute(
        blob.update()
        .where(blob.c.id == blob_id)
        .values(size_bytes=stored.size_bytes, sha256=stored.sha256, chunks=stored.chunks)
    )
    return stored


def get(conn: Connection, blob_id: str) -> Blob:
    """Give size and digest of a blob."""
    row = conn.execute(sa.select(tables.blob).where(tables.blob.c.id == blob_id)).one_or_none()
    if row is None:
        raise NotFound(f"there are no bytes {blob_id}", code="blob_not_found")
    return Blob(**row._asdict())


def read(conn: Connection, blob_id: str) -> Iterator[bytes]:
    """Give the bytes, a chunk at a time, each checked against its digest."""
    for seq in range(get(conn, blob_id).chunks):
        yield _chunk(conn, blob_id, seq)


def stream(db: Database, blob_id: str) -> Iterator[bytes]:
    """Give the bytes with no transaction open in between, for readers that may be slow.

    A long read transaction keeps SQLite from ever shrinking its log.
    """
    with db.read() as conn:
        chunks = get(conn, blob_id).chunks
    for seq in range(chunks):
        with db.read() as conn:
            data = _chunk(conn, blob_id, seq)
        yield data


def delete(conn: Connection, blob_id: str) -> None:
    """Remove a blob and its chunks, if it is there."""
    conn.execute(tables.blob.delete().where(tables.blob.c.id == blob_id))


def _chunk(conn: Connection, blob_id: str, seq: int) -> bytes:
    chunk = tables.blob_chunk
    query = sa.select(chunk.c.sha256, chunk.c.data).where(chunk.c.blob_id == blob_id, chunk.c.seq == seq)
    row = conn.execute(query).one_or_none()
    if row is None:
        # Blobs never change, so a chunk that was counted and is gone means the whole was deleted meanwhile.
        raise NotFound(f"the bytes {blob_id} were deleted", code="blob_not_found")
    try:
        data = zstandard.ZstdDecompressor().decompress(row.data, max_output_size=CHUNK_BYTES)
    except zstandard.ZstdError as error:
        raise CorruptBlobError(f"chunk {seq} of {blob_id} cannot be decompressed") from error
    if hashlib.sha256(data).hexdigest() != row.sha256:
        raise CorruptBlobError(f"chunk {seq} of {blob_id} has the wrong digest")
    return data


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut a stream of any chunk sizes into pieces of CHUNK_BYTES; the last may be shorter."""
    pending = bytearray()
    for chunk in chunks:
        view = memoryview(chunk)
        start = 0
        while start < len(view):
            step = min(CHUNK_BYTES - len(pending), len(view) - start)
            pending += view[start : start + step]
            start += step
            if len(pending) == CHUNK_BYTES:
                yield bytes(pending)
                pending.clear()
    if pending:
        yield bytes(pending)
