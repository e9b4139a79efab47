"""Shapes of keys on the wire."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from app.body import Body
from app.params import Out
from core.store.keys import Scope

#: Ten years: who wants longer wants a key that does not expire.
MAX_EXPIRY_S = 10 * 366 * 24 * 3600


class NewKey(Body):
    """A key to make."""

    name: str = Field(
        min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["nightly build"]
    )
    scopes: list[Annotated[Scope, Field(strict=False)]] = Field(
        min_length=1, max_length=len(Scope), examples=[["read", "tag"]]
    )
    expires_in_seconds: int | None = Field(
        None, ge=1, le=MAX_EXPIRY_S, description="Does not expire if not given."
    )


class Key(Out):
    """A key, without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: datetime
    created_by: str | None = Field(description="Null when the command line made it.")
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")


class MadeKey(Key):
    """A key that was just made."""

    token: str | None = Field(
        description="What to send as `Authorization: Bearer`. Told once: null when this answer is given again."
    )
