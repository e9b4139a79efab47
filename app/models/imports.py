"""Import of model files: received, checked, converted and published as a version."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio.to_thread

from tagsmith.app.deps import Caller
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.app.http.uploads import SPOOL_READ_BYTES, Declared, Upload
from tagsmith.app.models import signatures
from tagsmith.core.base.errors import Invalid
from tagsmith.core.model import importing
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.registry.models import NewVersion, VersionRow
from tagsmith.core.registry.registry import Registry
from tagsmith.core.service import version
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.wire import ModelVersion

#: The value of `format` that means: detect the format from the file.
DETECTED = "auto"


class _Whole:
    """An upload reader that parses nothing, because a model file is checked as a whole."""

    def feed(self, chunk: bytes) -> None:
        """Do nothing; the spool has the bytes."""

    def finish(self) -> None:
        """Return nothing."""


async def create(
    body: AsyncIterator[bytes],
    declared: Declared,
    name: str,
    *,
    settings: Settings,
    database: Database,
    registry: Registry,
    threads: anyio.CapacityLimiter,
    caller: Caller,
) -> ChangeResponse[ModelVersion]:
    """Read a whole body and publish it as the next version of a model, or raise and store nothing."""
    model_format = None if declared.format == DETECTED else importing.known_format(declared.format)
    limit, spool = settings.max_corpus_bytes, settings.data_dir / "spool"
    with Upload(
        _Whole(), declared, max_decoded_bytes=limit, spool_dir=spool, unzip=False, lines=False
    ) as upload:
        await upload.receive(body, threads)

        def store() -> ChangeResponse[ModelVersion]:
            upload.finish()
            with tempfile.TemporaryDirectory(dir=spool) as directory:
                source, target = Path(directory) / "upload", Path(directory) / "model"
                with source.open("wb") as out:
                    out.writelines(upload.chunks())
                new = _import(source, target, model_format)
                signature = signatures.of_file(_chunks(target))
                with database.write() as conn:
                    row = registry.publish(conn, name, new, _chunks(target))
                    made = signatures.with_signature(row, signature)
                    return caller.respond(conn, ChangeResponse(made, location=path_of(row)))

        return await anyio.to_thread.run_sync(store, limiter=threads)


def path_of(version: VersionRow) -> str:
    """Return the path of a version."""
    return f"/models/{version.model}/versions/{version.version}"


def _import(source: Path, target: Path, model_format: importing.ModelFormat | None) -> NewVersion:
    if source.stat().st_size == 0:
        raise Invalid("The body is empty. Send a model file.", code="empty_body")
    imported = importing.import_model(source, target, model_format)
    Tagger(imported.model).tag_probe()
    return NewVersion(
        objective=None,
        active_features=imported.model.active_features,
        train_seconds=0.0,
        metrics={},
        trainer={"kind": "import", "format": imported.format},
        spec={"kind": "import", "format": imported.format},
        corpus=None,
        seed=0,
        code_version=version.code_version(),
        job_id=None,
    )


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(SPOOL_READ_BYTES):
            yield chunk
