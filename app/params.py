"""Names and shapes that several routes share."""

from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict

from core.specs import NAME_PATTERN

T = TypeVar("T")

#: Enough for a screen; a larger page is one parameter away.
DEFAULT_LIMIT = 50
MAX_LIMIT = 500

#: The media type of plots.
SVG = "image/svg+xml"

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Entries a page.")]
Cursor = Annotated[str | None, Query(max_length=1000, description="`next_cursor` of the page before.")]

#: Ids are opaque to callers: one of any form may simply not exist.
CorpusId = Annotated[str, Path(max_length=64, description="Such as `crp_01hzy3...`.")]
LexiconId = Annotated[str, Path(max_length=64, description="Such as `lex_5f2a...`.")]
KeyId = Annotated[str, Path(max_length=64, description="Such as `key_01hzy3...`.")]
JobId = Annotated[str, Path(max_length=64, description="Such as `job_01hzy3...`.")]

_ALPHABET = "Lower-case letters, digits, `.`, `_` and `-`, at most 64."
ModelName = Annotated[str, Path(pattern=NAME_PATTERN, description=_ALPHABET)]
AliasName = Annotated[str, Path(pattern=NAME_PATTERN, description=_ALPHABET)]
#: The largest number that the databases' integer column holds.
VersionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]


class Out(BaseModel):
    """Base of response bodies, made from the rows of the store."""

    model_config = ConfigDict(from_attributes=True)


class Listing(Out, Generic[T]):
    """One page of a list."""

    data: list[T]
    next_cursor: str | None


#: For OpenAPI: every route can answer with a problem.
PROBLEM_RESPONSE: Mapping[str, Any] = {
    "description": "A problem (RFC 9457)",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
