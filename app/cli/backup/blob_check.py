"""Checks the blobs of a backup: every chunk, every blob, and the corpora, lexicons and versions that have them."""

import hashlib
from typing import Any

import zstandard

from tagsmith.app.cli.backup.rows import Row, SavedTable
from tagsmith.core.store import tables
from tagsmith.core.store.blobs import CHUNK_BYTES

#: Tables whose rows repeat size and digest of their blob.
_OWNERS = (tables.corpus.name, tables.lexicon.name, tables.model_version.name)


class BlobCheck:
    """Takes the rows of all tables in the order of a backup. Raises ValueError for wrong ones."""

    def __init__(self) -> None:
        self.count = 0
        self.size_bytes = 0
        #: Size, digest and number of chunks of each blob.
        self._blobs: dict[str, tuple[int, str, int]] = {}
        self._open: str | None = None
        self._digest = hashlib.sha256()
        self._size = self._chunks = 0

    def row(self, table: SavedTable, row: Row) -> None:
        """Check one row."""
        if table.name not in (tables.blob.name, tables.blob_chunk.name, *_OWNERS):
            return
        values = dict(zip((column.name for column in table.columns), row, strict=True))
        if table.name == tables.blob.name:
            self._blobs[values["id"]] = (values["size_bytes"], values["sha256"], values["chunks"])
        elif table.name == tables.blob_chunk.name:
            self._chunk(values)
        else:
            self._owner(table.name, values)

    def finish(self) -> None:
        """Check what the last row leaves open."""
        self._close()
        if empty := [each for each, (_, _, chunks) in self._blobs.items() if chunks == 0]:
            self.count += len(empty)
        if self.count != len(self._blobs):
            raise ValueError(f"{len(self._blobs) - self.count} files have no bytes")

    def _chunk(self, values: dict[str, Any]) -> None:
        if values["blob_id"] != self._open:
            self._close()
            self._open = values["blob_id"]
        if values["seq"] != self._chunks:
            raise ValueError(f"{self._open} lacks chunk {self._chunks}")
        try:
            data = zstandard.ZstdDecompressor().decompress(values["data"], max_output_size=CHUNK_BYTES)
        except zstandard.ZstdError as error:
            raise ValueError(f"chunk {self._chunks} of {self._open} cannot be decompressed") from error
        if hashlib.sha256(data).hexdigest() != values["sha256"]:
            raise ValueError(f"chunk {self._chunks} of {self._open} has the wrong digest")
        self._digest.update(data)
        self._size += len(data)
        self._chunks += 1

    def _close(self) -> None:
        """Compare the blob whose chunks were read with its row."""
        if self._open is None:
            return
        if self._blobs[self._open] != (self._size, self._digest.hexdigest(), self._chunks):
            raise ValueError(f"the bytes of {self._open} differ from their digest")
        self.count += 1
        self.size_bytes += self._size
        self._open, self._digest = None, hashlib.sha256()
        self._size = self._chunks = 0

    def _owner(self, name: str, values: dict[str, Any]) -> None:
        size, sha256, _ = self._blobs[values["blob_id"]]
        if (values["size_bytes"], values["sha256"]) != (size, sha256):
            raise ValueError(f"a {name} has other bytes than its digest says ({values['blob_id']})")
