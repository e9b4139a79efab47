"""Blobs, stored as rows of one MiB, so that no blob is ever completely in memory."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
import zstandard
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base.errors import NotFound
from tagsmith.core.store import tables
from tagsmith.core.store.engine import Database

CHUNK_BYTES = 1 << 20
# The fastest level: text still shrinks three to four times, and write transactions stay short.
ZSTD_LEVEL = 1


class CorruptBlobError(RuntimeError):
    """Stored bytes differ from what was written."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored blob. Size and digest are those of the uncompressed bytes."""

    id: str
    size_bytes: int
    sha256: str
    chunks: int


def write(conn: Connection, blob_id: str, chunks: Iterable[bytes]) -> Blob:
    """Store the concatenation of `chunks`.

    The write lock is held until the transaction ends, so `chunks` must come from memory or disk, never from a network.
    """
    blob = tables.blob
    # The row comes first because the chunks refer to it; size and digest are known only at the end.
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
    """Return size and digest of a blob, or raise NotFound."""
    row = conn.execute(sa.select(tables.blob).where(tables.blob.c.id == blob_id)).one_or_none()
    if row is None:
        raise NotFound(f"There is no blob {blob_id}.", code="blob_not_found")
    return Blob(**row._asdict())


def read(conn: Connection, blob_id: str) -> Iterator[bytes]:
    """Yield the bytes in chunks, each checked against its digest."""
    for seq in range(get(conn, blob_id).chunks):
        yield _chunk(conn, blob_id, seq)


def stream(db: Database, blob_id: str) -> Iterator[bytes]:
    """Yield the bytes in chunks, with no transaction open in between, for slow readers.

    A long read transaction prevents SQLite from truncating its WAL.
    """
    with db.read() as conn:
        chunks = get(conn, blob_id).chunks
    for seq in range(chunks):
        with db.read() as conn:
            data = _chunk(conn, blob_id, seq)
        yield data


def packed(db: Database, blob_id: str) -> Iterator[bytes]:
    """Yield the bytes as they are stored: zstd frames, one per chunk, which are not checked."""
    with db.read() as conn:
        chunks = get(conn, blob_id).chunks
    for seq in range(chunks):
        with db.read() as conn:
            data = bytes(_row(conn, blob_id, seq).data)
        yield data


def exists(conn: Connection, blob_id: str) -> bool:
    """Whether a blob is stored."""
    return conn.execute(sa.select(sa.literal(1)).where(tables.blob.c.id == blob_id)).first() is not None


def delete(conn: Connection, blob_id: str) -> None:
    """Delete a blob and its chunks, if it exists."""
    conn.execute(tables.blob.delete().where(tables.blob.c.id == blob_id))


def _row(conn: Connection, blob_id: str, seq: int) -> Row[Any, Any]:
    chunk = tables.blob_chunk
    query = sa.select(chunk.c.sha256, chunk.c.data).where(chunk.c.blob_id == blob_id, chunk.c.seq == seq)
    row = conn.execute(query).one_or_none()
    if row is None:
        # Blobs are immutable, so a missing chunk means that the blob was deleted meanwhile.
        raise NotFound(f"The blob {blob_id} was deleted.", code="blob_not_found")
    return row


def _chunk(conn: Connection, blob_id: str, seq: int) -> bytes:
    row = _row(conn, blob_id, seq)
    try:
        data = zstandard.ZstdDecompressor().decompress(row.data, max_output_size=CHUNK_BYTES)
    except zstandard.ZstdError as error:
        raise CorruptBlobError(f"Chunk {seq} of {blob_id} cannot be decompressed.") from error
    if hashlib.sha256(data).hexdigest() != row.sha256:
        raise CorruptBlobError(f"Chunk {seq} of {blob_id} has the wrong digest.")
    return data


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split a stream of chunks of any size into pieces of CHUNK_BYTES; the last may be shorter."""
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
