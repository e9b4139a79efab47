"""The file of a backup: a ZIP archive with one member per table and a manifest.

`manifest.json` has the version of the format, the schema, and for each table its columns, the number of its rows and
the sha256 of its member. It is written last, so an incomplete file has none.
"""

import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

import orjson

from tagsmith.app.cli.backup import rows
from tagsmith.app.cli.backup.blob_check import BlobCheck
from tagsmith.app.cli.backup.rows import Kind, Row, SavedColumn, SavedTable
from tagsmith.core.base.errors import Invalid

FORMAT = 1
MANIFEST = "manifest.json"
_BUFFER_BYTES = 1 << 20
#: All members have this time: `created_at` of the manifest is the time of the backup.
_TIME = (1980, 1, 1, 0, 0, 0)

#: Called with the number of rows that were handled.
Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What the manifest says about one table."""

    columns: list[tuple[str, str]]
    key: list[str]
    rows: int
    sha256: str

    def table(self, name: str) -> SavedTable:
        """Return the table."""
        return SavedTable(
            name, tuple(SavedColumn(each, Kind(kind)) for each, kind in self.columns), tuple(self.key)
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup has."""

    format: int
    #: The version of Tagsmith that made it.
    tagsmith: str
    #: The revision of the schema.
    schema: str
    #: The database that it was made from. It can be restored in another one.
    dialect: str
    created_at: str
    #: The tables; each follows those that it refers to.
    tables: Mapping[str, TableEntry]

    @property
    def rows(self) -> int:
        """The number of rows in all tables."""
        return sum(member.rows for member in self.tables.values())


class BackupWriter:
    """Writes the members of a backup."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", allowZip64=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def table(self, table: SavedTable, found: Iterable[Row], advance: Advance) -> TableEntry:
        """Write all rows of a table."""
        digest, count = hashlib.sha256(), 0
        with self._zip.open(_info(table.name, table.has_bytes), "w", force_zip64=True) as member:
            buffered = io.BufferedWriter(member, _BUFFER_BYTES)
            for row in found:
                data = rows.encode(table.columns, row)
                digest.update(data)
                buffered.write(data)
                count += 1
                advance(1)
            buffered.flush()
            buffered.detach()
        columns = [(column.name, column.kind.value) for column in table.columns]
        return TableEntry(columns, list(table.key), count, digest.hexdigest())

    def manifest(self, manifest: Manifest) -> None:
        """Write the manifest, which completes the backup."""
        data = orjson.dumps(asdict(manifest), option=orjson.OPT_INDENT_2)
        self._zip.writestr(zipfile.ZipInfo(MANIFEST, _TIME), data)


class BackupReader:
    """Reads a backup. Everything that it returns has been checked, at the latest when the last row is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._undamaged():
            self._zip = zipfile.ZipFile(path)
            self.manifest = self._read_manifest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def tables(self) -> list[SavedTable]:
        """Return the tables; each follows those that it refers to."""
        return [member.table(name) for name, member in self.manifest.tables.items()]

    def rows(self, table: SavedTable) -> Iterator[Row]:
        """Yield the rows of a table. Raises Invalid if they are damaged, at the end if rows are missing."""
        member, count = self.manifest.tables[table.name], 0
        with self._undamaged(), self._zip.open(_member_name(table.name)) as file:
            hashed = _Hashed(file)
            for row in rows.decode(table.columns, hashed):  # type: ignore[arg-type]  # needs readline() and read()
                count += 1
                yield row
            if count != member.rows or hashed.digest.hexdigest() != member.sha256:
                raise ValueError(f"the table {table.name} has other contents than the manifest says")

    def check(self, advance: Advance) -> BlobCheck:
        """Read everything, and check it against the manifest and the stored digests."""
        blobs = BlobCheck()
        with self._undamaged():
            for table in self.tables():
                for row in self.rows(table):
                    blobs.row(table, row)
                    advance(1)
            blobs.finish()
        return blobs

    def damaged(self, reason: str) -> Invalid:
        """Build the error for a backup that cannot be used."""
        return Invalid(
            f"{self._path} is not a backup of Tagsmith, or is damaged: {reason}. Use another backup.",
            code="damaged_backup",
        )

    def _read_manifest(self) -> Manifest:
        fields = orjson.loads(self._zip.read(MANIFEST))
        if fields["format"] > FORMAT:
            raise Invalid(
                f"The backup {self._path} has format {fields['format']}, which is newer than this version of "
                f"Tagsmith. Install version {fields['tagsmith']} or a newer one.",
                code="backup_too_new",
            )
        members = {name: TableEntry(**each) for name, each in fields.pop("tables").items()}
        return Manifest(**fields, tables=members)

    @contextmanager
    def _undamaged(self) -> Iterator[None]:
        try:
            yield
        except (
            zipfile.BadZipFile,
            zlib.error,
            struct.error,
            EOFError,
            OSError,  # a place before the beginning of the file
            AttributeError,  # a manifest of another shape
            KeyError,
            TypeError,
            ValueError,
            OverflowError,
            RuntimeError,  # a member that is marked as encrypted, or packed in an unknown way
        ) as error:
            raise self.damaged(str(error).strip("'.") or type(error).__name__) from error


class _Hashed:
    """A stream that keeps the digest of everything that was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def readline(self) -> bytes:
        return self._seen(self._file.readline())

    def read(self, size: int) -> bytes:
        return self._seen(self._file.read(size))

    def _seen(self, data: bytes) -> bytes:
        self.digest.update(data)
        return data


def _member_name(table: str) -> str:
    return f"tables/{table}"


def _info(table: str, has_bytes: bool) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(_member_name(table), _TIME)
    # Chunks of blobs are compressed already.
    info.compress_type = zipfile.ZIP_STORED if has_bytes else zipfile.ZIP_DEFLATED
    info._compresslevel = 1  # type: ignore[attr-defined]  # noqa: SLF001
    return info


def summary(manifest: Manifest, blobs: BlobCheck) -> dict[str, Any]:
    """Return what a backup has, for people and programs."""
    return {
        "tagsmith": manifest.tagsmith,
        "schema": manifest.schema,
        "dialect": manifest.dialect,
        "created_at": manifest.created_at,
        "tables": {name: member.rows for name, member in manifest.tables.items()},
        "files": blobs.count,
        "file_bytes": blobs.size_bytes,
    }
