"""Import of model files: received, checked, converted and published as a version."""

from collections.abc import AsyncIterator, Iterator
from typing import IO

from tagsmith.app.deps import Caller, Runtime
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.app.http.uploads import Declared
from tagsmith.app.models import signatures
from tagsmith.app.models.upload import DETECTED, read_upload
from tagsmith.app.reading.uploads import BATCH_BYTES
from tagsmith.core.model import importing
from tagsmith.core.registry.models import VersionRow
from tagsmith.wire import ModelVersion


async def create(
    body: AsyncIterator[bytes], declared: Declared, name: str, runtime: Runtime, caller: Caller
) -> ChangeResponse[ModelVersion]:
    """Read a whole body and publish it as the next version of a model, or raise and store nothing."""
    if declared.format != DETECTED:
        importing.known_format(declared.format)
    uploads, limit = runtime.uploads, runtime.settings.max_corpus_bytes
    async with uploads.received(body) as received:
        new = await uploads.read(received, read_upload, declared, uploads.spool_dir, max_decoded_bytes=limit)

        def store() -> ChangeResponse[ModelVersion]:
            signature = signatures.of_file(_chunks(received.packed))
            with runtime.database.write() as conn:
                row = runtime.registry.publish(conn, name, new, _chunks(received.packed))
                made = signatures.with_signature(row, signature)
                return caller.respond(conn, ChangeResponse(made, location=path_of(row)))

        return await uploads.in_thread(store)


def path_of(version: VersionRow) -> str:
    """Return the path of a version."""
    return f"/models/{version.model}/versions/{version.version}"


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(BATCH_BYTES):
        yield chunk
