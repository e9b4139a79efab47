import hashlib
import os
import random
import tracemalloc
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tagsmith.core.base.errors import NotFound
from tagsmith.core.store import blobs, tables
from tagsmith.core.store.blobs import CHUNK_BYTES, CorruptBlobError
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import new_id

MIB = 1 << 20


def put(db: Database, chunks: list[bytes]) -> blobs.Blob:
    with db.write() as conn:
        return blobs.write(conn, new_id("blb"), chunks)


def take(db: Database, blob_id: str) -> bytes:
    with db.read() as conn:
        return b"".join(blobs.read(conn, blob_id))


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES])
def test_bytes_come_back_whatever_their_size_and_cut(db: Database, size: int) -> None:
    data = random.Random(size).randbytes(size)
    cut = size // 3
    blob = put(db, [data[:cut], b"", data[cut:]])
    assert take(db, blob.id) == data
    assert b"".join(blobs.stream(db, blob.id)) == data
    assert (blob.size_bytes, blob.chunks) == (size, -(-size // CHUNK_BYTES))
    assert blob.sha256 == hashlib.sha256(data).hexdigest()
    with db.read() as conn:
        assert blobs.get(conn, blob.id) == blob


def test_forty_mib_go_in_and_out_in_flat_memory(db: Database) -> None:
    """Half of it cannot be compressed, so that the rows themselves are large."""

    def chunks(digest: "hashlib._Hash") -> Iterator[bytes]:
        for i in range(40 * 16):
            piece = os.urandom(MIB // 32) + bytes([i % 256]) * (MIB // 32)
            digest.update(piece)
            yield piece

    sent, received = hashlib.sha256(), hashlib.sha256()
    put(db, [b"warm every path first"])
    tracemalloc.start()
    try:
        with db.write() as conn:
            blob = blobs.write(conn, new_id("blb"), chunks(sent))
        for piece in blobs.stream(db, blob.id):
            received.update(piece)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (blob.size_bytes, blob.chunks) == (40 * MIB, 40)
    assert sent.hexdigest() == received.hexdigest() == blob.sha256
    assert peak_bytes < 12 * MIB


def test_text_is_stored_compressed(db: Database) -> None:
    blob = put(db, [b"the DT B-NP\nmodel NN I-NP\n" * 100_000])
    with db.read() as conn:
        query = sa.select(sa.func.sum(sa.func.length(tables.blob_chunk.c.data)))
        stored = conn.execute(query.where(tables.blob_chunk.c.blob_id == blob.id)).scalar_one()
    assert stored * 100 < blob.size_bytes


def test_deleted_bytes_are_gone_with_all_their_chunks(db: Database) -> None:
    blob = put(db, [bytes(2 * CHUNK_BYTES)])
    slow_reader = blobs.stream(db, blob.id)
    next(slow_reader)
    with db.write() as conn:
        blobs.delete(conn, blob.id)
        blobs.delete(conn, blob.id)
    with db.read() as conn:
        chunk = tables.blob_chunk
        count = sa.select(sa.func.count()).select_from(chunk).where(chunk.c.blob_id == blob.id)
        assert conn.execute(count).scalar_one() == 0
    with pytest.raises(NotFound):
        take(db, blob.id)
    with pytest.raises(NotFound, match="deleted"):
        next(slow_reader)


@pytest.mark.parametrize("damage", ["other", "garbage"])
def test_damaged_bytes_are_never_given_out(db: Database, damage: str) -> None:
    blob = put(db, [b"good"])
    other = put(db, [b"evil"])
    chunk = tables.blob_chunk
    with db.write() as conn:
        evil = conn.execute(sa.select(chunk.c.data).where(chunk.c.blob_id == other.id)).scalar_one()
        data = evil if damage == "other" else b"not zstd"
        conn.execute(chunk.update().where(chunk.c.blob_id == blob.id).values(data=data))
    with pytest.raises(CorruptBlobError):
        take(db, blob.id)
