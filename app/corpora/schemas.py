"""Shapes of corpora on the wire."""

from datetime import datetime
from typing import Any

from pydantic import Field

from app.params import Out


class Corpus(Out):
    """A stored corpus."""

    id: str
    name: str
    format: str
    options: dict[str, Any] = Field(description="Of the format, as they were given or by default.")
    sentences: int
    tokens: int
    columns: list[str] = Field(description="Names of the attribute columns, as templates number them.")
    labels: list[str] = Field(description="Labels in order of first sight.")
    sha256: str = Field(description="Of the text after decompression.")
    size_bytes: int = Field(description="Of the text after decompression.")
    created_at: datetime
