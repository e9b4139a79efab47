"""Read untrusted zip files of small texts. Nothing is unpacked to disk, and every read has a limit."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import TracebackType
from typing import IO, Self

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.sizes import decoded_too_large

#: The central directory is read as a whole. This size is enough for about 100,000 members.
_MAX_DIRECTORY_BYTES = 8 << 20

#: The first bytes of a zip file.
ZIP_MAGIC = b"PK\x03\x04"

#: The record at the end of a zip file, and the longest comment that can follow it.
_END_SIGNATURE = b"PK\x05\x06"
_END_BYTES = 22
_MAX_COMMENT_BYTES = 1 << 16

#: Members are read in steps of this size.
_STEP_BYTES = 64 * 1024

#: A document is read as a whole, and takes about fifty times its size while it is split into tokens.
MAX_MEMBER_BYTES = 4 << 20

#: Errors that `zipfile` raises for damaged archives.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    ValueError,
    OSError,
    OverflowError,
)

#: The folder in which macOS stores metadata of files.
_APPLE = "__MACOSX/"

_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED = 1


class MemberError(Exception):
    """A member of the archive cannot be read; `fault` says why."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.fault = Fault(reason, line=line)


class Archive:
    """An open zip file. All reads together are limited to `max_text_bytes`."""

    def __init__(self, file: IO[bytes], max_text_bytes: int) -> None:
        _check_directory(file)
        try:
            self._zip = zipfile.ZipFile(file)
        except _ZIP_ERRORS as error:
            raise _invalid_zip(str(error)) from None
        self._left = max_text_bytes
        self._limit = max_text_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def pairs(
        self, suffixes: tuple[str, str], *, required: bool
    ) -> Iterator[tuple["Member", "Member | None"]]:
        """Yield pairs of members with the same name but different suffixes, in the order of the first ones.

        The second one may be missing unless it is `required`. Other members are ignored.
        """
        found = self._members(frozenset(suffixes))
        firsts = [name for name in found if name.endswith(suffixes[0])]
        stems = {name.removesuffix(suffixes[0]) for name in firsts}
        faults = [
            Fault(f"{_printable(name)}: no {suffixes[0]} file of the same name")
            for name in found
            if name.endswith(suffixes[1]) and name.removesuffix(suffixes[1]) not in stems
        ]
        if required:
            faults += [
                Fault(f"{_printable(name)}: no {suffixes[1]} file of the same name")
                for name in firsts
                if name.removesuffix(suffixes[0]) + suffixes[1] not in found
            ]
        if faults:
            raise Invalid(
                f"Files of the archive are missing. Provide pairs of {suffixes[0]} and {suffixes[1]} files.",
                faults[:100],
                code="invalid_archive",
            )
        for name in firsts:
            yield found[name], found.get(name.removesuffix(suffixes[0]) + suffixes[1])

    def files(self) -> list[zipfile.ZipInfo]:
        """List the files, without folders and metadata of macOS."""
        infos = self._zip.infolist()
        return [
            info
            for info in infos
            if info.filename and not info.is_dir() and not info.filename.startswith(_APPLE)
        ]

    def stream(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Yield the content of a file in pieces. The caller limits their total."""
        reason = _reject_reason(info)
        if reason is not None:
            raise _invalid_zip(f"{_printable(info.filename)} {reason}")
        try:
            with self._zip.open(info) as member:
                while piece := member.read(_STEP_BYTES):
                    yield piece
        except _ZIP_ERRORS as error:
            raise _invalid_zip(f"{_printable(info.filename)}: {error}") from None

    def read(self, info: zipfile.ZipInfo) -> bytes:
        """Return the content of a member. Raises `TooLarge` as soon as all reads together exceed the limit."""
        pieces = bytearray()
        name = _printable(info.filename)
        try:
            with self._zip.open(info) as member:
                while piece := member.read(_STEP_BYTES):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise decoded_too_large(self._limit)
                    pieces += piece
                    if len(pieces) > MAX_MEMBER_BYTES:
                        break
        except _ZIP_ERRORS as error:
            raise MemberError(f"{name}: {error}") from None
        if len(pieces) > MAX_MEMBER_BYTES:
            raise MemberError(f"{name}: longer than {MAX_MEMBER_BYTES} bytes")
        return bytes(pieces)

    def _members(self, suffixes: frozenset[str]) -> dict[str, "Member"]:
        members: dict[str, Member] = {}
        faults = []
        for info in self._zip.infolist():
            name = info.filename
            if (
                not name
                or info.is_dir()
                or PurePosixPath(name).suffix not in suffixes
                or name.startswith(_APPLE)
            ):
                continue
            reason = _reject_reason(info) or ("occurs twice" if name in members else None)
            if reason:
                faults.append(Fault(f"{_printable(name)}: {reason}"))
            members[name] = Member(name, info, self)
        if faults:
            raise Invalid(
                "The archive has files that are not accepted. Remove or repack them.",
                faults[:100],
                code="invalid_archive",
            )
        return members


@dataclass(frozen=True, eq=False, slots=True)
class Member:
    """One file of an archive."""

    name: str
    info: zipfile.ZipInfo
    archive: Archive

    def text(self) -> str:
        """Return the content, which must be UTF-8 without control characters other than tabs and line ends."""
        content = self.archive.read(self.info)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise MemberError(
                f"{_printable(self.name)}: not UTF-8: byte 0x{content[error.start]:02X}", line
            ) from None
        controls = content.translate(None, _PRINTABLE)
        if controls:
            line = content.count(b"\n", 0, content.index(controls[:1])) + 1
            raise MemberError(f"{_printable(self.name)}: control byte 0x{controls[0]:02X}", line)
        return text


#: Bytes that a text may contain.
_PRINTABLE = bytes([9, 10, 13, *range(32, 127), *range(128, 256)])


def _check_directory(file: IO[bytes]) -> None:
    """Reject an oversized central directory before it is read."""
    size = file.seek(0, 2)
    start = max(0, size - _END_BYTES - _MAX_COMMENT_BYTES)
    file.seek(start)
    tail = file.read(size - start)
    end = len(tail) - _END_BYTES
    if not (tail[end : end + 4] == _END_SIGNATURE and tail[-2:] == b"\0\0"):
        end = tail.rfind(_END_SIGNATURE)
    if end < 0 or len(tail) - end < _END_BYTES:
        raise _invalid_zip("no end of a central directory")
    if int.from_bytes(tail[end + 12 : end + 16], "little") > _MAX_DIRECTORY_BYTES:
        raise _invalid_zip(f"its directory is larger than {_MAX_DIRECTORY_BYTES} bytes")


def _reject_reason(info: zipfile.ZipInfo) -> str | None:
    """Return why a member is not read, None if it is."""
    path = PurePosixPath(info.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in info.filename or ":" in "".join(path.parts[:1]):
        return "is not a path inside the archive"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if info.compress_type not in _METHODS:
        return "is neither stored nor deflated"
    return None


def _printable(name: str) -> str:
    """Return a name for a message, with unprintable characters escaped."""
    return name[:200].encode("unicode_escape").decode() if not name.isprintable() else name[:200]


def _invalid_zip(reason: str) -> Invalid:
    return Invalid(
        "The archive is not a readable zip file. Create it again.",
        [Fault(f"The zip file cannot be read: {reason}.")],
        code="invalid_archive",
    )
