"""The signatures of versions, read from the headers of their model files."""

import dataclasses
from collections.abc import Iterator
from functools import lru_cache

from tagsmith import wire
from tagsmith.core.base import flat_file
from tagsmith.core.base.errors import Invalid, NotFound
from tagsmith.core.model import file
from tagsmith.core.model.use.signature import Signature, signature_of
from tagsmith.core.registry import models
from tagsmith.core.registry.models import VersionRow
from tagsmith.core.store import blobs
from tagsmith.core.store.engine import Database
from tagsmith.core.store.paging import Page

_UNREADABLE = (Invalid, ValueError, KeyError, TypeError)


def signed(database: Database, row: VersionRow) -> wire.ModelVersion:
    """Return a version with its signature."""
    return with_signature(row, _signature(database, row))


def with_signature(row: VersionRow, found: Signature | None) -> wire.ModelVersion:
    """Return a version with a signature; None if its file is unreadable."""
    made = wire.ModelVersion.model_validate(row)
    if found is None:
        return made
    fields = dataclasses.asdict(found)
    fields["example"] = {"model": f"{row.model}:{row.version}", **found.example}
    return made.model_copy(update={"signature": wire.ModelSignature.model_validate(fields)})


def of_file(chunks: Iterator[bytes]) -> Signature | None:
    """Read the signature from the first bytes of a model file; None if they are unreadable."""
    try:
        return signature_of(flat_file.header_of(chunks, file.MAGIC))
    except _UNREADABLE:
        return None


def signed_page(database: Database, page: Page[VersionRow]) -> Page[wire.ModelVersion]:
    """Return a page of versions with their signatures."""
    return Page([signed(database, row) for row in page.data], page.next_cursor)


def _signature(database: Database, row: VersionRow) -> Signature | None:
    """Return the signature of a version; None if its file is unreadable or was deleted meanwhile."""
    try:
        return _read(database, row.model, row.version, row.sha256)
    except (NotFound, blobs.CorruptBlobError, *_UNREADABLE):
        return None


@lru_cache(maxsize=1024)
def _read(database: Database, model: str, number: int, sha256: str) -> Signature:
    """Read the signature from the first bytes of the model file.

    It never changes, because the checksum is that of the file. Failures are not cached: the database may be back soon.
    """
    del sha256
    with database.read() as conn:
        blob_id = models.blob_id(conn, model, number)
    return signature_of(flat_file.header_of(blobs.stream(database, blob_id), file.MAGIC))
