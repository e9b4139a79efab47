"""Error responses (RFC 9457)."""

from pydantic import BaseModel, Field

#: The most locations that a problem lists.
MAX_LOCATIONS = 100


class ErrorLocation(BaseModel):
    """One fault, and where it is."""

    detail: str = Field(description="What is wrong.")
    type: str | None = Field(
        None, description="Stable name of the fault, for programs: `missing`, `greater_than`, `inconsistent`."
    )
    pointer: str | None = Field(None, description="JSON pointer into the request body.")
    line: int | None = Field(None, description="Line of the uploaded file or body, from 1.")
    parameter: str | None = Field(None, description="Name of the path, query or header parameter.")


class ProblemDetails(BaseModel):
    """What went wrong, as RFC 9457 problem details."""

    type: str = Field(description="Identifies the kind of problem; the same for every occurrence of a code.")
    title: str
    status: int
    detail: str = Field(description="A sentence about this occurrence.")
    instance: str = Field(description="Path of the request.")
    code: str = Field(description="Stable name of the problem, for programs.")
    request_id: str = Field(description="Also in the header X-Request-Id and in the server's log.")
    errors: list[ErrorLocation] = Field(description=f"The faults, at most {MAX_LOCATIONS}.")
