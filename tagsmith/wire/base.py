"""Base classes of everything that goes over the wire, and pages of lists."""

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")


class WireResponse(BaseModel):
    """Base of response bodies. The server builds them from rows; clients ignore fields that a newer server adds."""

    model_config = ConfigDict(from_attributes=True)


class WireRequest(BaseModel):
    """Base of request bodies: strict and immutable; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Listing(WireResponse, Generic[T]):
    """One page of a list."""

    data: list[T]
    next_cursor: str | None
