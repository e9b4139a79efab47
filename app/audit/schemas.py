"""Shapes of the audit on the wire."""

from datetime import datetime

from pydantic import Field

from app.params import Out


class Deed(Out):
    """One change that was made."""

    id: str
    at: datetime
    actor: str | None = Field(
        description="Name and id of the key, or the address where keys are not in force."
    )
    key_id: str | None
    method: str
    path: str
    location: str | None = Field(description="Of what was created.")
    status: int
    request_id: str
    note: str | None = Field(
        description="Such as what a policy had against a move that was forced, and why it was."
    )
