"""Decode the content encoding (gzip, zstd) of a stream, with bounded output at every step.

Both decompressors get small pieces of input and return small pieces of output. A decompression bomb therefore costs
time until it reaches the limit, but no memory.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

import zstandard

from tagsmith.core.base.errors import Fault, Invalid, TooLarge, Unsupported

#: Output of one gzip step. The input is split too, because zlib copies the rest of it at each step.
_GZIP_STEP_BYTES = 64 * 1024
_GZIP_INPUT_BYTES = 16 * 1024

#: The zstd binding returns all output of a piece of input. Four bytes can produce a block of 128 KiB, so a piece of
#: this size produces at most 4 MiB. For ordinary data the cost of the calls is still small.
_ZSTD_INPUT_BYTES = 128

#: Largest window of a zstd stream over HTTP (RFC 9659). It is allocated as a whole.
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024


class _Codec(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...

    def finish(self) -> None: ...


def _corrupt(encoding: str, reason: str) -> Invalid:
    return Invalid(
        f"The {encoding} data cannot be decoded. Compress it again.", [Fault(reason)], code="corrupt_encoding"
    )


def decoded_too_large(limit_bytes: int) -> TooLarge:
    """Return the error for data that is larger than the limit once it is decoded."""
    return TooLarge(
        f"The decoded data exceeds {limit_bytes} bytes. Split it into smaller files.", code="corpus_too_large"
    )


class _Identity:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def finish(self) -> None:
        """The stream has no end marker."""


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
                out = self._member.decompress(data, _GZIP_STEP_BYTES)
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
                if not data and len(out) < _GZIP_STEP_BYTES:
                    return

    def finish(self) -> None:
        if self._inside or not self._members:
            raise _corrupt("gzip", "the data is truncated")


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

    def finish(self) -> None:
        if self._inside or not self._frames:
            raise _corrupt("zstd", "the data is truncated")


_CODECS: dict[str, type[_Identity] | type[_Gzip] | type[_Zstd]] = {
    "": _Identity,
    "identity": _Identity,
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "zstd": _Zstd,
}


class Decoder:
    """Decodes a stream chunk by chunk. Call `finish()` at the end to check that it is complete."""

    def __init__(self, encoding: str | None, *, max_decoded_bytes: int) -> None:
        codec = _CODECS.get((encoding or "").strip().lower())
        if codec is None:
            raise Unsupported(
                f"Content encoding {encoding!r} is not supported. Use identity, gzip or zstd.",
                code="unsupported_encoding",
            )
        self._codec: _Codec = codec()
        self._left = max_decoded_bytes
        self._limit = max_decoded_bytes

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decoded pieces of `chunk`. Raises `TooLarge` before the first piece that exceeds the limit."""
        for piece in self._codec.feed(chunk):
            self._left -= len(piece)
            if self._left < 0:
                raise decoded_too_large(self._limit)
            yield piece

    def finish(self) -> None:
        """Raise `Invalid` if the stream is incomplete."""
        self._codec.finish()


def decoded(chunks: Iterable[bytes], encoding: str | None, *, max_decoded_bytes: int) -> Iterator[bytes]:
    """Yield the decoded content of `chunks`, piece by piece."""
    decoder = Decoder(encoding, max_decoded_bytes=max_decoded_bytes)
    for chunk in chunks:
        yield from decoder.feed(chunk)
    decoder.finish()
