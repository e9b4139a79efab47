"""Streaming parser of a multipart body with exactly one file."""

import re
from collections.abc import Iterator
from email.message import Message
from pathlib import PurePath

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError

from tagsmith.app.http.problems import Malformed
from tagsmith.core.base.errors import Invalid

#: Characters that names cannot have, and the most that they can.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
MAX_NAME = 200
#: Content encodings by file name suffix.
_ENCODINGS = {".gz": "gzip", ".zst": "zstd"}


class FilePart:
    """Takes the bytes of a multipart body and yields the bytes of its only file. Holds at most one chunk."""

    def __init__(self, boundary: str) -> None:
        self.filename: str | None = None
        self.encoding: str | None = None
        self._pending: list[bytes] = []
        self._header = (bytearray(), bytearray())
        self._headers = Message()
        self._parts = 0
        self._ended = False
        try:
            self._parser = MultipartParser(
                boundary.encode("latin-1"),
                {
                    "on_part_begin": self._part_begin,
                    "on_header_field": self._header_field,
                    "on_header_value": self._header_value,
                    "on_header_end": self._header_end,
                    "on_headers_finished": self._headers_finished,
                    "on_part_data": self._part_data,
                    "on_end": self._end,
                },
            )
        except (FormParserError, UnicodeEncodeError):
            raise _malformed("its boundary cannot be used") from None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the bytes of the file that `chunk` contains."""
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise _malformed(str(error)) from None
        pending, self._pending = self._pending, []
        yield from pending

    def finish(self) -> None:
        """Check that the body is complete and has a file."""
        if not self._ended:
            raise _malformed("it ends before its last boundary")
        if self._parts == 0:
            raise Invalid("The multipart body has no file.", code="no_file_part")

    def _part_begin(self) -> None:
        self._headers = Message()
        self._parts += 1
        if self._parts > 1:
            raise Invalid(
                "The multipart body has more than one part; one upload is one file.", code="too_many_parts"
            )

    def _header_field(self, data: bytes, start: int, stop: int) -> None:
        self._header[0].extend(data[start:stop])

    def _header_value(self, data: bytes, start: int, stop: int) -> None:
        self._header[1].extend(data[start:stop])

    def _header_end(self) -> None:
        name, value = self._header
        self._headers[name.decode("latin-1")] = value.decode("utf-8", "replace")
        self._header = (bytearray(), bytearray())

    def _headers_finished(self) -> None:
        filename = self._headers.get_param("filename", header="content-disposition")
        if not isinstance(filename, str):
            reason = "The part of the multipart body is not a file; name and format go into the query."
            raise Invalid(reason, code="no_file_part")
        self.filename = _UNPRINTABLE.sub("", PurePath(filename.replace("\\", "/")).name)[:MAX_NAME] or None
        encoding = self._headers["content-encoding"]
        self.encoding = encoding or _ENCODINGS.get(PurePath(filename).suffix.lower())

    def _part_data(self, data: bytes, start: int, stop: int) -> None:
        self._pending.append(data[start:stop])

    def _end(self) -> None:
        self._ended = True


def boundary_of(content_type: str) -> str | None:
    """Return the boundary of a multipart/form-data Content-Type, else None."""
    message = Message()
    message["content-type"] = content_type
    if message.get_content_type() != "multipart/form-data":
        return None
    boundary = message.get_boundary()
    if not boundary:
        raise _malformed("Content-Type names no boundary")
    return boundary


def _malformed(reason: str) -> Malformed:
    return Malformed(f"The multipart body cannot be read: {reason}.", code="malformed_multipart")
