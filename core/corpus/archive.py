"""A zip as an untrusted archive of small texts: nothing is unpacked to disk, and nothing is read without a limit."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import TracebackType
from typing import IO, Self

from core.errors import Fault, Invalid, TooLarge

#: A central directory is read whole; this much names some 100,000 members.
_MAX_DIRECTORY_BYTES = 8 << 20

#: The record at the end of a zip, and the longest comment that can follow it.
_END_SIGNATURE = b"PK\x05\x06"
_END_BYTES = 22
_MAX_COMMENT_BYTES = 1 << 16

#: What a member is read in.
_STEP_BYTES = 64 * 1024

#: A document is read whole, and takes some fifty times its size while tokens are found.
MAX_MEMBER_BYTES = 4 << 20

#: What the library raises on damaged archives.
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

#: Where macOS puts what it knows about each file.
_APPLE = "__MACOSX/"

_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED = 1


class FaultyMember(Exception):
    """A member of the archive cannot be read; carries the fault."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.fault = Fault(reason, line=line)


class Archive:
    """The members of a zip by name."""

    def __init__(self, file: IO[bytes], max_text_bytes: int) -> None:
        _check_directory(file)
        try:
            self._zip = zipfile.ZipFile(file)
        except _ZIP_ERRORS as error:
            raise _no_zip(str(error)) from None
        self._left = max_text_bytes
        self._limit = max_text_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def pairs(self, suffixes: tuple[str, str], *, needed: bool) -> Iterator[tuple["Member", "Member | None"]]:
        """Members that have the same name but for their suffixes, in the order of the first; the rest is not looked at.

        The second may be missing unless it is `needed`.
        """
        found = self._members(frozenset(suffixes))
        firsts = [name for name in found if name.endswith(suffixes[0])]
        stems = {name.removesuffix(suffixes[0]) for name in firsts}
        faults = [
            Fault(f"{_shown(name)}: there is no {suffixes[0]} of the same name")
            for name in found
            if name.endswith(suffixes[1]) and name.removesuffix(suffixes[1]) not in stems
        ]
        if needed:
            faults += [
                Fault(f"{_shown(name)}: there is no {suffixes[1]} of the same name")
                for name in firsts
                if name.removesuffix(suffixes[0]) + suffixes[1] not in found
            ]
        if faults:
            raise Invalid("The archive does not consist of pairs.", faults[:100], code="invalid_archive")
        for name in firsts:
            yield found[name], found.get(name.removesuffix(suffixes[0]) + suffixes[1])

    def read(self, info: zipfile.ZipInfo) -> bytes:
        """The content of a member; raises `TooLarge` as soon as all that was read crosses the limit."""
        pieces = bytearray()
        name = _shown(info.filename)
        try:
            with self._zip.open(info) as member:
                while piece := member.read(_STEP_BYTES):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise TooLarge(
                            f"The decoded data exceeds {self._limit} bytes.", code="corpus_too_large"
                        )
                    pieces += piece
                    if len(pieces) > MAX_MEMBER_BYTES:
                        break
        except _ZIP_ERRORS as error:
            raise FaultyMember(f"{name}: {error}") from None
        if len(pieces) > MAX_MEMBER_BYTES:
            raise FaultyMember(f"{name}: longer than {MAX_MEMBER_BYTES} bytes")
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
            reason = _refused(info) or ("occurs twice" if name in members else None)
            if reason:
                faults.append(Fault(f"{_shown(name)}: {reason}"))
            members[name] = Member(name, info, self)
        if faults:
            raise Invalid("The archive has members that are not read.", faults[:100], code="invalid_archive")
        return members


@dataclass(frozen=True, eq=False, slots=True)
class Member:
    """One file of an archive."""

    name: str
    info: zipfile.ZipInfo
    archive: Archive

    def text(self) -> str:
        """Its content, which must be UTF-8 without control characters other than tabs and ends of lines."""
        content = self.archive.read(self.info)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise FaultyMember(
                f"{_shown(self.name)}: not UTF-8: byte 0x{content[error.start]:02X}", line
            ) from None
        controls = content.translate(None, _PRINTABLE)
        if controls:
            line = content.count(b"\n", 0, content.index(controls[:1])) + 1
            raise FaultyMember(f"{_shown(self.name)}: control byte 0x{controls[0]:02X}", line)
        return text


#: Bytes that texts are made of.
_PRINTABLE = bytes([9, 10, 13, *range(32, 127), *range(128, 256)])


def _check_directory(file: IO[bytes]) -> None:
    """Refuse a directory of a size that nobody needs, before it is read whole."""
    size = file.seek(0, 2)
    start = max(0, size - _END_BYTES - _MAX_COMMENT_BYTES)
    file.seek(start)
    tail = file.read(size - start)
    place = len(tail) - _END_BYTES
    if not (tail[place : place + 4] == _END_SIGNATURE and tail[-2:] == b"\0\0"):
        place = tail.rfind(_END_SIGNATURE)
    if place < 0 or len(tail) - place < _END_BYTES:
        raise _no_zip("there is no end of a central directory")
    if int.from_bytes(tail[place + 12 : place + 16], "little") > _MAX_DIRECTORY_BYTES:
        raise _no_zip(f"its directory is larger than {_MAX_DIRECTORY_BYTES} bytes")


def _refused(info: zipfile.ZipInfo) -> str | None:
    """Why a member is not read, None if it is."""
    path = PurePosixPath(info.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in info.filename or ":" in path.parts[0]:
        return "is not a path inside the archive"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if info.compress_type not in _METHODS:
        return "is neither stored nor deflated"
    return None


def _shown(name: str) -> str:
    """A name fit for a message, whatever bytes it was made of."""
    return name[:200].encode("unicode_escape").decode() if not name.isprintable() else name[:200]


def _no_zip(reason: str) -> Invalid:
    return Invalid(
        "The archive cannot be read.", [Fault(f"not a zip we read: {reason}")], code="invalid_archive"
    )
