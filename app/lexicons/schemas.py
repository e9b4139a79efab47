"""Shapes of lexicons on the wire."""

from datetime import datetime

from pydantic import Field

from app.params import Out


class Lexicon(Out):
    """A stored lexicon."""

    id: str = Field(description="Made from the kind and the content: the same upload has the same id.")
    name: str
    kind: str
    entries: int = Field(description="Entries; lines of a `text`.")
    classes: int = Field(description="Distinct types, categories or clusters; 0 where there are none.")
    sha256: str = Field(description="Of the text after decompression.")
    size_bytes: int = Field(description="Of the text after decompression.")
    created_at: datetime
