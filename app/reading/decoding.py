"""Uploads are decoded, checked and parsed piece by piece: a text is never in memory as a whole."""

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Generic, Protocol, TypeVar

import zstandard

from tagsmith.app.http.multipart import FilePart, boundary_of
from tagsmith.app.http.uploads import Declared
from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.content_encoding import Decoder

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: How much of a file is read at a time.
STEP_BYTES = 1 << 20
#: The media type that curl declares by default.
FORM = "application/x-www-form-urlencoded"


class UploadReader(Protocol[T_co]):
    """Parses bytes in chunks of any size and returns the parsed object. Raises `Invalid` with line numbers."""

    def feed(self, chunk: bytes) -> None: ...

    def finish(self) -> T_co: ...


@dataclass(frozen=True, slots=True)
class DecodedUpload(Generic[T]):
    """What a reader made of an upload. Size and digest are those of the decoded text."""

    value: T
    size_bytes: int
    sha256: str
    #: The file name in a multipart body.
    filename: str | None


class Decoding(Generic[T]):
    """Decodes a body for `reader` and writes the decoded text to `packed`.

    The text is stored only after its last line is checked. `packed` is compressed, so that a decompression bomb fills
    neither memory nor disk. Without `unzip`, a zip file is the text itself. Without `lines`, the body is not text by
    lines.
    """

    def __init__(
        self,
        reader: UploadReader[T],
        declared: Declared,
        packed: IO[bytes],
        *,
        max_decoded_bytes: int,
        unzip: bool = True,
        lines: bool = True,
    ) -> None:
        self._max_decoded_bytes = max_decoded_bytes
        # `curl -d` declares a form and removes all line breaks.
        self._may_lack_lines = lines and declared.content_type.startswith(FORM)
        self._reader = reader
        # The encoding of the request applies to the whole body. The encoding of a part applies only to its file.
        self._body = Decoder(declared.content_encoding, max_decoded_bytes=max_decoded_bytes)
        boundary = boundary_of(declared.content_type)
        self._part = FilePart(boundary) if boundary else None
        # Only a file is decoded by its first bytes.
        self._unzip = unzip
        self._file: Decoder | None = None if self._part else self._file_decoder(None)
        self._digest = hashlib.sha256()
        self._size_bytes = 0
        packed.seek(0)
        packed.truncate()
        self._target = packed
        self._packed = zstandard.ZstdCompressor(level=1).stream_writer(packed, closefd=False)

    def read(self, raw: IO[bytes]) -> DecodedUpload[T]:
        """Read a whole body. Check that it is complete, and return the object that the reader parsed."""
        try:
            return self._read(raw)
        except BaseException:
            # Otherwise it writes the end of its frame when it is collected, into what is written by then.
            with contextlib.suppress(OSError):
                self._packed.close()  # type: ignore[no-untyped-call]
            raise

    def _read(self, raw: IO[bytes]) -> DecodedUpload[T]:
        raw.seek(0)
        while chunk := raw.read(STEP_BYTES):
            for piece in self._body.feed(chunk):
                self._take(self._file_bytes(piece))
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
        self._packed.flush(zstandard.FLUSH_FRAME)
        self._target.flush()
        filename = self._part.filename if self._part else None
        return DecodedUpload(self._reader.finish(), self._size_bytes, self._digest.hexdigest(), filename)

    def _take(self, texts: Iterator[bytes]) -> None:
        for text in texts:
            if self._may_lack_lines and b"\n" in text:
                self._may_lack_lines = False
            self._reader.feed(text)
            self._packed.write(text)
            self._digest.update(text)
            self._size_bytes += len(text)

    def _file_bytes(self, piece: bytes) -> Iterator[bytes]:
        encoded = self._part.feed(piece) if self._part else (piece,)
        for part in encoded:
            if self._file is None:
                assert self._part is not None
                self._file = self._file_decoder(self._part.encoding)
            yield from self._file.feed(part)

    def _file_decoder(self, encoding: str | None) -> Decoder:
        limit = self._max_decoded_bytes
        return Decoder(encoding, max_decoded_bytes=limit, recognise=True, unzip=self._unzip)


def unpacked(packed: IO[bytes]) -> Iterator[bytes]:
    """Yield the text of a compressed file."""
    packed.seek(0)
    with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True, closefd=False) as text:
        while chunk := text.read(STEP_BYTES):
            yield chunk
