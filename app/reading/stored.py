"""Reading of stored texts with limited memory."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from sqlalchemy.engine import Connection

from tagsmith.app.reading.decoding import unpacked
from tagsmith.app.reading.uploads import Uploads
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import blobs, corpora
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.engine import Database

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredText:
    """How the text of a corpus is read."""

    format: str
    options: dict[str, Any]
    max_line_bytes: int
    max_text_bytes: int


def corpus_of(text: IO[bytes], source: StoredText) -> Corpus:
    """Read a corpus from its compressed text."""
    return formats.read(
        unpacked(text),
        source.format,
        max_line_bytes=source.max_line_bytes,
        max_text_bytes=source.max_text_bytes,
        options=source.options,
    )


@dataclass(frozen=True, slots=True)
class StoredTexts:
    """Calls functions with the texts of stored corpora and lexicons."""

    database: Database
    uploads: Uploads
    settings: Settings

    async def call(
        self, row: CorpusRow, function: Callable[..., T], *arguments: Any, files: Sequence[IO[bytes]] = ()
    ) -> T:
        """Return `function((text, *files), source, *arguments)`; `corpus_of(text, source)` reads the corpus."""
        async with self.opened(corpora.blob_id, row.id) as text:
            return await self.uploads.sized(
                row.size_bytes, function, (text, *files), self.source(row), *arguments
            )

    @asynccontextmanager
    async def opened(
        self, blob_id: Callable[[Connection, str], str], row_id: str
    ) -> AsyncIterator[IO[bytes]]:
        """Copy the compressed text of a row to a file without a name. `blob_id` finds it."""

        def fetch(file: IO[bytes]) -> None:
            with self.database.read() as conn:
                found = blob_id(conn, row_id)
            file.writelines(blobs.packed(self.database, found))
            file.flush()

        async with self.uploads.opened() as file:
            await self.uploads.in_thread(fetch, file)
            yield file

    def source(self, row: CorpusRow) -> StoredText:
        """Return how the text of a corpus is read."""
        limits = self.settings
        return StoredText(row.format, row.options, limits.max_line_bytes, limits.max_corpus_bytes)
