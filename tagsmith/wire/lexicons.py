"""Lexicons."""

from datetime import datetime

from pydantic import Field

from tagsmith.wire.base import WireResponse


class LexiconInfo(WireResponse):
    """A stored lexicon."""

    id: str = Field(description="Derived from kind and content: the same upload has the same id.")
    name: str
    kind: str
    entries: int = Field(description="Number of entries; of lines for a `text`.")
    classes: int = Field(description="Number of distinct types, categories or clusters; 0 if it has none.")
    sha256: str = Field(description="Of the text after decompression.")
    size_bytes: int = Field(description="Of the text after decompression.")
    created_at: datetime
