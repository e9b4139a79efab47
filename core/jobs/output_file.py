"""The file that a job writes with a version, and the part of its result that describes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from tagsmith.core.jobs import jobs
from tagsmith.core.jobs.kind import Output, Result, Stored
from tagsmith.core.jobs.resources import chunks_of
from tagsmith.core.store import blobs


class FileResult(Result):
    """Base class of the results of jobs that write a file."""

    #: The version that made the file.
    model: str
    version: int
    corpus: str
    format: str
    media_type: str
    #: Of the file.
    sentences: int
    tokens: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file to be stored as the output of a job."""

    job_id: str
    path: Path
    kind: type[FileResult]
    #: The result, without the size and the digest of the file.
    result: dict[str, Any]

    def store(self, conn: Connection) -> dict[str, Any]:
        blob = blobs.write(conn, jobs.output_id(self.job_id), chunks_of(self.path))
        return self.kind(**self.result, size_bytes=blob.size_bytes, sha256=blob.sha256).stored()


def output_of(result: Stored) -> Output:
    """Describe the file of a stored result."""
    return Output(
        media_type=result["media_type"],
        extension=result["format"],
        size_bytes=result["size_bytes"],
        sha256=result["sha256"],
        made_by=f"{result['model']}:{result['version']}",
    )
