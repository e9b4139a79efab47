"""How requests describe the files that they upload."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from fastapi import Query
from starlette.requests import Request

#: The name of an upload when neither the query nor the file has one.
UNNAMED = "unnamed"
#: Names are for people: any text without control characters.
UploadName = Annotated[str | None, Query(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
#: The request body, for the OpenAPI document.
UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "description": "The file, or multipart with one file. gzip, zstd, xz and zip files with one member are "
        "recognised by their first bytes; or declare gzip or zstd as the Content-Encoding.",
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
        },
    }
}


@dataclass(frozen=True, slots=True)
class Declared:
    """How a request describes its body: the format and options of its query, and the headers."""

    format: str
    options: Mapping[str, object]
    content_type: str
    content_encoding: str | None

    @classmethod
    def of(cls, request: Request, format: str, options: Mapping[str, object]) -> Self:  # noqa: A002  # the contract's name
        """Read the headers of a request."""
        headers = request.headers
        return cls(format, options, headers.get("content-type", ""), headers.get("content-encoding"))
