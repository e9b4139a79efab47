"""Reading of an uploaded lexicon. It is called with limited memory."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import IO

from tagsmith.app.http.uploads import UNNAMED, Declared
from tagsmith.app.reading.decoding import Decoding
from tagsmith.core.features.lexicon.lexicon import LexiconReader, id_of, known_kind
from tagsmith.core.store.lexicons import LexiconRow


def read_upload(
    files: Sequence[IO[bytes]], declared: Declared, max_line_bytes: int, max_decoded_bytes: int
) -> LexiconRow:
    """Read the body in the first file, and write its decoded text to the second."""
    raw, packed = files
    reader = LexiconReader(known_kind(declared.format), max_line_bytes=max_line_bytes)
    decoded = Decoding(reader, declared, packed, max_decoded_bytes=max_decoded_bytes).read(raw)
    lexicon = decoded.value
    return LexiconRow(
        id=id_of(lexicon.kind, decoded.sha256),
        name=decoded.filename or UNNAMED,
        kind=lexicon.kind,
        entries=len(lexicon.entries),
        classes=len(set(lexicon.classes)),
        sha256=decoded.sha256,
        size_bytes=decoded.size_bytes,
        created_at=datetime.now(UTC),
    )
