"""Uploads: received to a file, and read from there with limited memory."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import anyio
import anyio.to_thread

from tagsmith.app.http.pace import Pace
from tagsmith.app.reading.bounded import BoundedCalls
from tagsmith.core.base.errors import TooLarge, Unavailable

T = TypeVar("T")

#: Switching to a thread costs about 50 us. A batch of this size takes milliseconds to write and needs little memory.
BATCH_BYTES = 1 << 20
#: Up to this size, compressed and decompressed, files are read in the process that serves: 0.01 s faster. The hungriest
#: format takes about fifty times as much memory.
INLINE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Received:
    """A body as it was sent, and an empty file for its decoded text. Both files have no name."""

    raw: IO[bytes]
    packed: IO[bytes]
    size_bytes: int


class Uploads:
    """Receives bodies, and reads them and stored corpora."""

    def __init__(self, spool_dir: Path, bounded: BoundedCalls, threads: int) -> None:
        #: Files on their way in or out.
        self.spool_dir = spool_dir
        self._bounded = bounded
        #: Uploads have their own threads, so that long ones do not block other routes.
        self.threads = anyio.CapacityLimiter(threads)

    def start(self) -> None:
        """Start the process that reads, so that the first upload need not wait for it."""
        self._bounded.start()

    def close(self) -> None:
        """End the process that reads."""
        self._bounded.close()

    @asynccontextmanager
    async def received(self, body: AsyncIterator[bytes]) -> AsyncIterator[Received]:
        """Receive a whole body. The files are gone at the end of the block."""
        async with self.opened() as raw, self.opened() as packed:
            size_bytes = 0
            async for batch in _batches(body):
                await self.in_thread(_write, raw, batch)
                size_bytes += len(batch)
            yield Received(raw, packed, size_bytes)

    async def read(
        self, received: Received, function: Callable[..., T], *arguments: Any, max_decoded_bytes: int
    ) -> T:
        """Return `function((raw, packed), *arguments, max_decoded_bytes)`, called with limited memory."""
        files = (received.raw, received.packed)
        if received.size_bytes <= INLINE_BYTES:
            small = min(INLINE_BYTES, max_decoded_bytes)
            try:
                return await self.inline(function, files, *arguments, small)
            except TooLarge:
                if small == max_decoded_bytes:
                    raise
                # What the attempt has decoded is partly in the buffer of this process, and would overwrite the text.
                await self.in_thread(_empty, received.packed)
        return await self.bounded(function, files, *arguments, max_decoded_bytes)

    async def sized(
        self, size_bytes: int, function: Callable[..., T], files: Sequence[IO[bytes]], *arguments: Any
    ) -> T:
        """Return `function(files, *arguments)`, called with limited memory unless the files are small."""
        run = self.inline if size_bytes <= INLINE_BYTES else self.bounded
        return await run(function, files, *arguments)

    async def inline(self, function: Callable[..., T], files: Sequence[IO[bytes]], *arguments: Any) -> T:
        """Return `function(files, *arguments)`, called in a thread of this process. For small files."""
        with storage_errors():
            return await self.in_thread(function, files, *arguments)

    async def bounded(self, function: Callable[..., T], files: Sequence[IO[bytes]], *arguments: Any) -> T:
        """Return `function(files, *arguments)`, called in a process with limited memory."""
        with storage_errors():
            return await self._bounded.run(function, files, *arguments)

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that blocks, in a thread for uploads."""
        return await anyio.to_thread.run_sync(lambda: function(*arguments), limiter=self.threads)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[IO[bytes]]:
        """Open a file as `file` does, and close it in a thread: freeing the pages of a large one takes long."""
        with self.file() as file:
            try:
                yield file
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(file.close)

    @contextmanager
    def file(self) -> Iterator[IO[bytes]]:
        """Open an empty file without a name, which is gone when it is closed."""
        with storage_errors():
            self.spool_dir.mkdir(parents=True, exist_ok=True)
            file = tempfile.TemporaryFile(dir=self.spool_dir)  # noqa: SIM115  # closed below
        with contextlib.closing(file):
            yield file


@contextmanager
def storage_errors() -> Iterator[None]:
    """Translate errors of the disk."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"The upload cannot be stored: {error.strerror}. Free disk space and try again.",
            code="storage_unavailable",
        ) from error


def _write(file: IO[bytes], batch: bytes) -> None:
    with storage_errors():
        file.write(batch)
        file.flush()


def _empty(file: IO[bytes]) -> None:
    """Remove the content of a file, also what is not written yet."""
    with storage_errors():
        file.seek(0)
        file.truncate()


async def _in_time(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a body. Raise TooSlow if it stops, or is too slow for long."""
    pace = Pace()
    while True:
        try:
            chunk = await pace.awaited(anext(body))
        except StopAsyncIteration:
            return
        pace.count(len(chunk))
        yield chunk


async def _batches(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    pending = bytearray()
    async for chunk in _in_time(body):
        pending += chunk
        if len(pending) >= BATCH_BYTES:
            yield bytes(pending)
            pending.clear()
    if pending:
        yield bytes(pending)
