"""One upload: decode, check, parse and spool as the bytes come, none of it whole in memory."""

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import anyio.to_thread
import zstandard

from app.corpora.parts import FilePart, boundary_of
from core.corpus.encoded import Decoder
from core.errors import Unavailable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: A thread hop costs some 50 us; a batch of this size takes milliseconds to parse and is little memory.
BATCH_BYTES = 1 << 20
#: What goes back from the spool file to SQL at a time.
SPOOL_READ_BYTES = 1 << 20


class Reader(Protocol[T_co]):
    """Takes bytes cut anywhere, gives what they say; raises `Invalid` with line numbers."""

    def feed(self, chunk: bytes) -> None: ...

    def finish(self) -> T_co: ...


@dataclass(frozen=True, slots=True)
class Declared:
    """What the request says about its body."""

    format: str
    options: Mapping[str, object]
    content_type: str
    content_encoding: str | None


class Upload(Generic[T]):
    """Takes the body chunk by chunk. Blocks: feed it in a thread. Nothing of it outlives its closing.

    The decoded text goes to an unnamed file, because it is stored only when its last line proved good. There it
    is compressed, so that a bomb fills the disk no more than the memory.
    """

    def __init__(
        self, reader: Reader[T], declared: Declared, *, max_decoded_bytes: int, spool_dir: Path
    ) -> None:
        self._max_decoded_bytes = max_decoded_bytes
        self._reader = reader
        # A coding of the request covers the whole body, one of the part only its file.
        self._body = self._decoder(declared.content_encoding)
        boundary = boundary_of(declared.content_type)
        self._part = FilePart(boundary) if boundary else None
        self._file: Decoder | None = None if self._part else self._decoder(None)
        spool_dir.mkdir(parents=True, exist_ok=True)
        self._spool = tempfile.TemporaryFile(dir=spool_dir)  # noqa: SIM115  # closed by __exit__
        self._packed = zstandard.ZstdCompressor(level=1).stream_writer(self._spool, closefd=False)

    @property
    def filename(self) -> str | None:
        """Name that a multipart body gave to its file."""
        return self._part.filename if self._part else None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body."""
        for piece in self._body.feed(chunk):
            for text in self._file_bytes(piece):
                self._reader.feed(text)
                self._packed.write(text)

    async def receive(self, body: AsyncIterator[bytes], threads: anyio.CapacityLimiter) -> None:
        """Take a body to its end, off the event loop."""
        async for batch in _batches(body):
            await anyio.to_thread.run_sync(self._keep, batch, limiter=threads)

    def finish(self) -> T:
        """Give what the text says, now that all is there."""
        self._body.finish()
        if self._part is not None:
            self._part.finish()
        if self._file is not None:
            self._file.finish()
        return self._reader.finish()

    def chunks(self) -> Iterator[bytes]:
        """Give the decoded text back."""
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

    def _keep(self, batch: bytes) -> None:
        try:
            self.feed(batch)
        except OSError as error:
            raise Unavailable(
                f"The upload cannot be kept: {error.strerror}.", code="storage_unavailable"
            ) from error

    def _file_bytes(self, piece: bytes) -> Iterator[bytes]:
        encoded = self._part.feed(piece) if self._part else (piece,)
        for part in encoded:
            if self._file is None:
                assert self._part is not None
                self._file = self._decoder(self._part.encoding)
            yield from self._file.feed(part)

    def _decoder(self, encoding: str | None) -> Decoder:
        return Decoder(encoding, max_decoded_bytes=self._max_decoded_bytes)


async def _batches(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    pending = bytearray()
    async for chunk in body:
        pending += chunk
        if len(pending) >= BATCH_BYTES:
            yield bytes(pending)
            pending.clear()
    if pending:
        yield bytes(pending)
