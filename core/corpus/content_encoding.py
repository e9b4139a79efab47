"""Decode a compressed stream, with bounded output at every step.

The encoding is declared (gzip, zstd), or recognised by the first bytes (also xz, and zip files with one member). The
decompressors get small pieces of input and return small pieces of output. A decompression bomb therefore costs time
until it reaches the limit, but no memory.
"""

import lzma
import zlib
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol, cast

import zstandard

from tagsmith.core.base.errors import Fault, Invalid, Unsupported
from tagsmith.core.corpus.archive import ZIP_MAGIC, Archive
from tagsmith.core.corpus.foreign import refuse_archive
from tagsmith.core.corpus.sizes import decoded_too_large

#: Output of one step. The input of gzip is split too, because zlib copies the rest of it at each step.
_STEP_BYTES = 64 * 1024
_GZIP_INPUT_BYTES = 16 * 1024

#: The zstd binding returns all output of a piece of input. Four bytes can produce a block of 128 KiB, so a piece of
#: this size produces at most 4 MiB. For ordinary data the cost of the calls is still small.
_ZSTD_INPUT_BYTES = 128

#: Largest window of a zstd stream over HTTP (RFC 9659). It is allocated as a whole.
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024


#: `xz -9` needs 65 MiB.
_XZ_MEMORY_BYTES = 128 << 20

#: A zip file is kept in memory up to this size, else on disk.
_ZIP_SPOOL_BYTES = 1 << 20


class _Codec(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...

    def finish(self) -> Iterator[bytes]:
        """Check that the stream is complete, and yield what is left of it."""


def _corrupt(encoding: str, reason: str) -> Invalid:
    return Invalid(
        f"The {encoding} data cannot be decoded. Compress it again.", [Fault(reason)], code="corrupt_encoding"
    )


class _Identity:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def finish(self) -> Iterator[bytes]:
        """The stream has no end marker."""
        return iter(())


class _Gzip:
    """A sequence of members. Zero bytes between them are ignored, as gzip does."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._members = 0
        self._inside = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for begin in range(0, len(data), _GZIP_INPUT_BYTES):
            yield from self._piece(data[begin : begin + _GZIP_INPUT_BYTES])

    def _piece(self, data: bytes) -> Iterator[bytes]:
        while True:
            if not self._inside:
                data = data.lstrip(b"\0") if self._members else data
                if not data:
                    return
                self._inside = True
            try:
                out = self._member.decompress(data, _STEP_BYTES)
            except zlib.error as error:
                raise _corrupt("gzip", str(error)) from None
            if out:
                yield out
            if self._member.eof:
                data = self._member.unused_data
                self._member = zlib.decompressobj(wbits=31)
                self._members += 1
                self._inside = False
            else:
                data = self._member.unconsumed_tail
                if not data and len(out) < _STEP_BYTES:
                    return

    def finish(self) -> Iterator[bytes]:
        if self._inside or not self._members:
            raise _corrupt("gzip", "the data is truncated")
        return iter(())


class _Zstd:
    """A sequence of frames."""

    def __init__(self) -> None:
        self._context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._frame = self._context.decompressobj()
        self._frames = 0
        self._inside = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for begin in range(0, len(data), _ZSTD_INPUT_BYTES):
            yield from self._piece(data[begin : begin + _ZSTD_INPUT_BYTES])

    def _piece(self, data: bytes) -> Iterator[bytes]:
        while data:
            self._inside = True
            try:
                out = self._frame.decompress(data)
            except zstandard.ZstdError as error:
                raise _corrupt("zstd", str(error)) from None
            if out:
                yield out
            if not self._frame.eof:
                return
            data = self._frame.unused_data
            self._frame = self._context.decompressobj()
            self._frames += 1
            self._inside = False

    def finish(self) -> Iterator[bytes]:
        if self._inside or not self._frames:
            raise _corrupt("zstd", "the data is truncated")
        return iter(())


class _Xz:
    """A sequence of streams. Zero bytes between them are ignored, as xz does."""

    def __init__(self) -> None:
        self._stream = self._new()
        self._streams = 0
        self._inside = False

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while True:
            if not self._inside:
                data = data.lstrip(b"\0") if self._streams else data
                if not data:
                    return
                self._inside = True
            try:
                out = self._stream.decompress(data, _STEP_BYTES)
            except lzma.LZMAError as error:
                raise _corrupt("xz", str(error)) from None
            if out:
                yield out
            data = b""
            if self._stream.eof:
                data, self._stream = self._stream.unused_data, self._new()
                self._streams += 1
                self._inside = False
            elif self._stream.needs_input:
                return

    def finish(self) -> Iterator[bytes]:
        if self._inside or not self._streams:
            raise _corrupt("xz", "the data is truncated")
        return iter(())


class _Zip:
    """A zip file with one member. Its directory is at the end, so it is kept until it is complete.

    An archive with annotations of brat is passed on as it is.
    """

    def __init__(self) -> None:
        self._spool = SpooledTemporaryFile(max_size=_ZIP_SPOOL_BYTES)  # noqa: SIM115  # closed by finish

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._spool.write(data)
        return iter(())

    def finish(self) -> Iterator[bytes]:
        with self._spool as spool, Archive(cast("IO[bytes]", spool), max_text_bytes=0) as archive:
            files = archive.files()
            if any(info.filename.endswith(".ann") for info in files):
                spool.seek(0)
                while piece := spool.read(_STEP_BYTES):
                    yield piece
                return
            refuse_archive([info.filename for info in files])
            if len(files) != 1:
                message = "Pack one file, or pairs of .txt and .ann files for format=brat."
                fault = Fault(f"The archive has {len(files)} files.")
                raise Invalid(
                    f"The archive does not hold one text. {message}", [fault], code="invalid_archive"
                )
            yield from archive.stream(files[0])


class _Recognised:
    """Chooses the codec by the first bytes. No text and no model file begins with the bytes of an encoding."""

    def __init__(self, *, unzip: bool) -> None:
        self._magic = {magic: codec for magic, codec in _MAGIC.items() if unzip or codec is not _Zip}
        self._head = b""
        self._codec: _Codec | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._codec is None:
            data = self._head = self._head + data
            if any(magic.startswith(data) for magic in self._magic):
                return
            self._codec = self._chosen()
        yield from self._codec.feed(data)

    def finish(self) -> Iterator[bytes]:
        if self._codec is None:
            self._codec = self._chosen()
            yield from self._codec.feed(self._head)
        yield from self._codec.finish()

    def _chosen(self) -> _Codec:
        found = (codec for magic, codec in self._magic.items() if self._head.startswith(magic))
        return next(found, _Identity)()


#: The first bytes of encoded data.
_MAGIC: dict[bytes, type[_Codec]] = {
    b"\x1f\x8b": _Gzip,
    b"\x28\xb5\x2f\xfd": _Zstd,
    b"\xfd7zXZ\x00": _Xz,
    ZIP_MAGIC: _Zip,
}

_CODECS: dict[str, type[_Identity] | type[_Gzip] | type[_Zstd]] = {
    "": _Identity,
    "identity": _Identity,
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "zstd": _Zstd,
}


class Decoder:
    """Decodes a stream chunk by chunk. Exhaust `finish()` at the end: it checks that the stream is complete.

    With `recognise`, a stream without a declared encoding is decoded by its first bytes; with `unzip`, zip files too.
    """

    def __init__(
        self, encoding: str | None, *, max_decoded_bytes: int, recognise: bool = False, unzip: bool = True
    ) -> None:
        name = (encoding or "").strip().lower()
        codec = _CODECS.get(name)
        if codec is None:
            raise Unsupported(
                f"Content encoding {encoding!r} is not supported. Use identity, gzip or zstd.",
                code="unsupported_encoding",
            )
        self._codec: _Codec = _Recognised(unzip=unzip) if recognise and codec is _Identity else codec()
        self._left = max_decoded_bytes
        self._limit = max_decoded_bytes

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decoded pieces of `chunk`. Raises `TooLarge` before the first piece that exceeds the limit."""
        return self._limited(self._codec.feed(chunk))

    def finish(self) -> Iterator[bytes]:
        """Yield the pieces that are left. Raises `Invalid` if the stream is incomplete."""
        return self._limited(self._codec.finish())

    def _limited(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._left -= len(piece)
            if self._left < 0:
                raise decoded_too_large(self._limit)
            yield piece


def decoded(
    chunks: Iterable[bytes], encoding: str | None, *, max_decoded_bytes: int, recognise: bool = False
) -> Iterator[bytes]:
    """Yield the decoded content of `chunks`, piece by piece."""
    decoder = Decoder(encoding, max_decoded_bytes=max_decoded_bytes, recognise=recognise)
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.finish()
