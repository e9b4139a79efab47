"""Who may call, and what they changed: API keys and the audit log."""

from datetime import datetime

from pydantic import Field

from tagsmith.wire.base import WireRequest, WireResponse
from tagsmith.wire.names import KeyScope

#: Ten years. A key that has to last longer can be one that does not expire.
MAX_EXPIRY_S = 10 * 366 * 24 * 3600


class NewKey(WireRequest):
    """A key to create."""

    name: str = Field(
        min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["nightly build"]
    )
    scopes: list[KeyScope] = Field(min_length=1, max_length=5, examples=[["read", "tag"]])
    expires_in_seconds: int | None = Field(
        None, ge=1, le=MAX_EXPIRY_S, description="If omitted, the key does not expire."
    )


class ApiKey(WireResponse):
    """A key, without its secret."""

    id: str
    name: str
    scopes: list[KeyScope]
    created_at: datetime
    created_by: str | None = Field(description="Null if it was created on the command line.")
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")


class CreatedKey(ApiKey):
    """A key that was just created."""

    token: str | None = Field(
        description="The value for `Authorization: Bearer`. Shown once: null if this response is repeated."
    )


class AuditEntry(WireResponse):
    """One change that a request made."""

    id: str
    at: datetime
    actor: str | None = Field(
        description="Name and id of the key; the client address if keys are not required."
    )
    key_id: str | None
    method: str
    path: str
    location: str | None = Field(description="Path of what was created.")
    status: int
    request_id: str
    note: str | None = Field(
        description="More about the change. For a forced move: what the policy objected to, and the reason."
    )
