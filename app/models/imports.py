"""Bringing a model file: received, checked, made one of ours, and published as a version."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio.to_thread

from app.corpora.upload import SPOOL_READ_BYTES, Declared, Upload
from app.deps import Caller
from core import version
from core.errors import Invalid
from core.model import importing
from core.settings import Settings
from core.store import models
from core.store.engine import Database
from core.store.models import NewVersion, VersionRow

#: The format of a request that names none.
DETECTED = "auto"


class _Whole:
    """Reads nothing: a model file can be judged only as a whole."""

    def feed(self, chunk: bytes) -> None:
        """Leave it to the spool."""

    def finish(self) -> None:
        """Nothing was read."""


async def create(
    body: AsyncIterator[bytes],
    declared: Declared,
    name: str,
    *,
    settings: Settings,
    database: Database,
    threads: anyio.CapacityLimiter,
    caller: Caller,
) -> VersionRow:
    """Read a body to its end and publish it as the next version of a model, or raise and store nothing."""
    said = None if declared.format == DETECTED else importing.known_format(declared.format)
    limit, spool = settings.max_corpus_bytes, settings.data_dir / "spool"
    with Upload(_Whole(), declared, max_decoded_bytes=limit, spool_dir=spool) as upload:
        await upload.receive(body, threads)

        def store() -> VersionRow:
            upload.finish()
            with tempfile.TemporaryDirectory(dir=spool) as folder:
                source, target = Path(folder) / "upload", Path(folder) / "model"
                with source.open("wb") as out:
                    out.writelines(upload.chunks())
                new = _imported(source, target, said)
                with database.write() as conn:
                    made = models.publish(conn, name, new, _chunks(target))
                    caller.record(conn, location=location(made))
                return made

        return await anyio.to_thread.run_sync(store, limiter=threads)


def location(version: VersionRow) -> str:
    """Where a version is found."""
    return f"/models/{version.model}/versions/{version.version}"


def _imported(source: Path, target: Path, said: importing.Format | None) -> NewVersion:
    if source.stat().st_size == 0:
        raise Invalid("The body is empty; it should be a model file.", code="empty_body")
    found = importing.import_model(source, target, said)
    return NewVersion(
        objective=None,
        active_features=found.model.active_features,
        train_seconds=0.0,
        metrics={},
        trainer={"kind": "import", "format": found.format},
        spec={"kind": "import", "format": found.format},
        corpus=None,
        seed=0,
        code_version=version.code_version(),
        job_id=None,
    )


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(SPOOL_READ_BYTES):
            yield chunk
