"""Parameters and responses that several routes share."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Path, Query

from tagsmith.core.base.names import NAME_PATTERN

#: Enough for one screen. Clients set `limit` for more.
DEFAULT_LIMIT = 50
MAX_LIMIT = 500

#: The media type of plots.
SVG = "image/svg+xml"

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Entries a page.")]
Cursor = Annotated[str | None, Query(max_length=1000, description="`next_cursor` of the page before.")]

#: Ids are opaque to callers, so there is no pattern: an id of any form gets 404 if it does not exist.
CorpusId = Annotated[
    str,
    Path(
        max_length=220,
        description="Its id, such as `crp_01hzy3...`, its name (the newest upload), or `name:2`.",
    ),
]
LexiconId = Annotated[str, Path(max_length=64, description="Such as `lex_5f2a...`.")]
KeyId = Annotated[str, Path(max_length=64, description="Such as `key_01hzy3...`.")]
JobId = Annotated[
    str, Path(max_length=64, description="Such as `job_01hzy3...`, or its last six characters.")
]

_ALPHABET = "Lower-case letters, digits, `.`, `_` and `-`, at most 64."
ModelName = Annotated[str, Path(pattern=NAME_PATTERN, description=_ALPHABET)]
AliasName = Annotated[str, Path(pattern=NAME_PATTERN, description=_ALPHABET)]
#: Of DELETE.
Force = Annotated[bool, Query(description="Delete although something refers to it.")]
#: The maximum is the largest value of an integer column.
VersionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]


#: For OpenAPI: every route can return a problem.
PROBLEM_RESPONSE: Mapping[str, Any] = {
    "description": "A problem (RFC 9457)",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
}
