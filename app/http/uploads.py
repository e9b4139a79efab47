"""Uploads: decoded, checked, parsed and spooled as the bytes arrive.

A corpus is never in memory as a whole; a lexicon is, and its size is limited.
"""

import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Annotated, Generic, Protocol, Self, TypeVar

import anyio.to_thread
import zstandard
from fastapi import Query
from starlette.requests import Request

from tagsmith.app.http.multipart import FilePart, boundary_of
from tagsmith.core.base.errors import Invalid, Unavailable
from tagsmith.core.corpus.content_encoding import Decoder

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: Switching to a thread costs about 50 us. A batch of this size takes milliseconds to parse and needs little memory.
BATCH_BYTES = 1 << 20
#: How much of the spool file is passed to SQL at a time.
SPOOL_READ_BYTES = 1 << 20

#: The media type that curl declares by default.
FORM = "application/x-www-form-urlencoded"

#: The name of an upload when neither the query nor the file has one.
UNNAMED = "unnamed"
#: Names are for people: any text without control characters.
UploadName = Annotated[str | None, Query(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
#: The request body, for the OpenAPI document.
UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "description": "The file, or multipart with one file. gzip, zstd, xz and zip files with one member are "
        "recognised by their first bytes; or declare gzip or zstd as the Content-Encoding.",
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
        },
    }
}


class UploadReader(Protocol[T_co]):
    """Parses bytes in chunks of any size and returns the parsed object. Raises `Invalid` with line numbers."""

    def feed(self, chunk: bytes) -> None: ...

    def finish(self) -> T_co: ...


@dataclass(frozen=True, slots=True)
class Declared:
    """How a request describes its body: the format and options of its query, and the headers."""

    format: str
    options: Mapping[str, object]
    content_type: str
    content_encoding: str | None

    @classmethod
    def of(cls, request: Request, format: str, options: Mapping[str, object]) -> Self:  # noqa: A002  # the contract's name
        """Read the headers of a request."""
        headers = request.headers
        return cls(format, options, headers.get("content-type", ""), headers.get("content-encoding"))


class Upload(Generic[T]):
    """Takes a body chunk by chunk. It blocks, so call `feed` in a thread. Closing deletes the spool file.

    The decoded text is written to an unnamed file, because it is stored only after its last line is checked. The file
    is compressed, so that a decompression bomb fills neither memory nor disk. Without `unzip`, a zip file is the text
    itself. Without `lines`, the body is not text by lines.
    """

    def __init__(
        self,
        reader: UploadReader[T],
        declared: Declared,
        *,
        max_decoded_bytes: int,
        spool_dir: Path,
        unzip: bool = True,
        lines: bool = True,
    ) -> None:
        self._max_decoded_bytes = max_decoded_bytes
        # `curl -d` declares a form and removes all line breaks.
        self._may_lack_lines = lines and declared.content_type.startswith(FORM)
        self._reader = reader
        # The encoding of the request applies to the whole body. The encoding of a part applies only to its file.
        self._body = self._decoder(declared.content_encoding)
        boundary = boundary_of(declared.content_type)
        self._part = FilePart(boundary) if boundary else None
        # Only a file is decoded by its first bytes.
        self._unzip = unzip
        self._file: Decoder | None = None if self._part else self._file_decoder(None)
        spool_dir.mkdir(parents=True, exist_ok=True)
        self._spool = tempfile.TemporaryFile(dir=spool_dir)  # noqa: SIM115  # closed by __exit__
        self._digest = hashlib.sha256()
        #: Of the decoded text so far.
        self.size_bytes = 0
        self._packed = zstandard.ZstdCompressor(level=1).stream_writer(self._spool, closefd=False)

    @property
    def filename(self) -> str | None:
        """The file name in a multipart body."""
        return self._part.filename if self._part else None

    @property
    def sha256(self) -> str:
        """The digest of the decoded text so far."""
        return self._digest.hexdigest()

    def feed(self, chunk: bytes) -> None:
        """Process the next bytes of the body."""
        for piece in self._body.feed(chunk):
            self._take(self._file_bytes(piece))

    async def receive(self, body: AsyncIterator[bytes], threads: anyio.CapacityLimiter) -> None:
        """Process a whole body in threads, outside the event loop."""
        async for batch in _batches(body):
            await anyio.to_thread.run_sync(self._store_batch, batch, limiter=threads)

    def finish(self) -> T:
        """Check that the body is complete, and return the object that the reader parsed."""
        with _storage_errors():
            for piece in self._body.finish():
                self._take(self._file_bytes(piece))
            if self._part is not None:
                self._part.finish()
            if self._file is not None:
                self._take(self._file.finish())
        if self._may_lack_lines:
            raise Invalid(
                "The body has no line break. `curl -d @file` removes them: use `curl --data-binary @file`. If the file "
                "really is one line, send it with `Content-Type: text/plain`.",
                code="lost_line_breaks",
            )
        return self._reader.finish()

    def chunks(self) -> Iterator[bytes]:
        """Yield the decoded text."""
        self._packed.flush(zstandard.FLUSH_FRAME)
        self._spool.seek(0)
        with zstandard.ZstdDecompressor().stream_reader(self._spool, closefd=False) as text:
            while chunk := text.read(SPOOL_READ_BYTES):
                yield chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spool.close()

    def _store_batch(self, batch: bytes) -> None:
        with _storage_errors():
            self.feed(batch)

    def _take(self, texts: Iterator[bytes]) -> None:
        for text in texts:
            if self._may_lack_lines and b"\n" in text:
                self._may_lack_lines = False
            self._reader.feed(text)
            self._packed.write(text)
            self._digest.update(text)
            self.size_bytes += len(text)

    def _file_bytes(self, piece: bytes) -> Iterator[bytes]:
        encoded = self._part.feed(piece) if self._part else (piece,)
        for part in encoded:
            if self._file is None:
                assert self._part is not None
                self._file = self._file_decoder(self._part.encoding)
            yield from self._file.feed(part)

    def _decoder(self, encoding: str | None) -> Decoder:
        return Decoder(encoding, max_decoded_bytes=self._max_decoded_bytes)

    def _file_decoder(self, encoding: str | None) -> Decoder:
        limit = self._max_decoded_bytes
        return Decoder(encoding, max_decoded_bytes=limit, recognise=True, unzip=self._unzip)


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Translate errors of the disk."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"The upload cannot be stored: {error.strerror}. Free disk space and try again.",
            code="storage_unavailable",
        ) from error


async def _batches(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    pending = bytearray()
    async for chunk in body:
        pending += chunk
        if len(pending) >= BATCH_BYTES:
            yield bytes(pending)
            pending.clear()
    if pending:
        yield bytes(pending)
