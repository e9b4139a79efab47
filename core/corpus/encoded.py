"""Undo the content encoding of a stream, with bounded output at every step.

Both decompressors are pushed small pieces and asked for small answers, so a bomb costs time until it meets
the limit, never memory.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

import zstandard

from core.errors import Fault, Invalid, TooLarge, Unsupported

#: Output of one gzip step. Input goes in small pieces too: zlib copies what it could not take at each step.
_GZIP_STEP_BYTES = 64 * 1024
_GZIP_INPUT_BYTES = 16 * 1024

#: The zstd binding gives all the output a piece of input makes. Four bytes can make a block of 128 KiB, so a
#: piece of this size makes 4 MiB at worst, while the call still costs little against ordinary data.
_ZSTD_INPUT_BYTES = 128

#: Largest window an HTTP zstd stream may ask for (RFC 9659); it is allocated whole.
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024


class _Codec(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...

    def finish(self) -> None: ...


def _corrupt(encoding: str, reason: str) -> Invalid:
    return Invalid(f"The {encoding} data cannot be decoded.", [Fault(reason)], code="corrupt_encoding")


class _Identity:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def finish(self) -> None:
        """Nothing can be missing."""


class _Gzip:
    """One member after another, zero bytes between them ignored, as gzip does."""

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
            raise _corrupt("gzip", "the data ends before its end marker")


class _Zstd:
    """One frame after another."""

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
            raise _corrupt("zstd", "the data ends before its end marker")


_CODECS: dict[str, type[_Identity] | type[_Gzip] | type[_Zstd]] = {
    "": _Identity,
    "identity": _Identity,
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "zstd": _Zstd,
}


class Decoder:
    """Feed it encoded chunks, take the decoded ones as they come; `finish()` says whether all was there."""

    def __init__(self, encoding: str | None, *, max_decoded_bytes: int) -> None:
        codec = _CODECS.get((encoding or "").strip().lower())
        if codec is None:
            known = "identity, gzip, zstd"
            raise Unsupported(
                f"Content encoding {encoding!r} is not one of {known}.", code="unsupported_encoding"
            )
        self._codec: _Codec = codec()
        self._left = max_decoded_bytes
        self._limit = max_decoded_bytes

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Decoded pieces of `chunk`; raises `TooLarge` before the first piece that crosses the limit."""
        for piece in self._codec.feed(chunk):
            self._left -= len(piece)
            if self._left < 0:
                raise TooLarge(f"The decoded data exceeds {self._limit} bytes.", code="corpus_too_large")
            yield piece

    def finish(self) -> None:
        """Raise `Invalid` when the stream stops short."""
        self._codec.finish()


def decoded(chunks: Iterable[bytes], encoding: str | None, *, max_decoded_bytes: int) -> Iterator[bytes]:
    """The decoded content of `chunks`, piece by piece."""
    decoder = Decoder(encoding, max_decoded_bytes=max_decoded_bytes)
    for chunk in chunks:
        yield from decoder.feed(chunk)
    decoder.finish()
