"""Reading of an uploaded model file. It is called with limited memory."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tagsmith.app.http.uploads import Declared
from tagsmith.app.reading.decoding import STEP_BYTES, Decoding, unpacked
from tagsmith.core.base.errors import Invalid
from tagsmith.core.model import importing
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.service import version

#: The value of `format` that means: detect the format from the file.
DETECTED = "auto"


class _Whole:
    """An upload reader that parses nothing, because a model file is checked as a whole."""

    def feed(self, chunk: bytes) -> None:
        """Do nothing; the decoded file has the bytes."""

    def finish(self) -> None:
        """Return nothing."""


def read_upload(
    files: Sequence[IO[bytes]], declared: Declared, spool_dir: Path, max_decoded_bytes: int
) -> NewVersion:
    """Import the model file in the first file, and write it in the format of the service to the second."""
    raw, target = files
    model_format = None if declared.format == DETECTED else importing.known_format(declared.format)
    with tempfile.TemporaryDirectory(dir=spool_dir) as directory:
        source, imported = Path(directory) / "upload", Path(directory) / "model"
        decoding = Decoding(
            _Whole(), declared, target, max_decoded_bytes=max_decoded_bytes, unzip=False, lines=False
        )
        size_bytes = decoding.read(raw).size_bytes
        if size_bytes == 0:
            raise Invalid("The body is empty. Send a model file.", code="empty_body")
        with source.open("wb") as out:
            out.writelines(unpacked(target))
        new = _new_version(source, imported, model_format)
        target.seek(0)
        target.truncate()
        with imported.open("rb") as file:
            while chunk := file.read(STEP_BYTES):
                target.write(chunk)
        target.flush()
        return new


def _new_version(source: Path, target: Path, model_format: importing.ModelFormat | None) -> NewVersion:
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
