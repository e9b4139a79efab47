"""Errors a user can cause.

Each carries a stable `code`, a sentence for people, and the places that are wrong. They know nothing of HTTP:
`app/errors.py` maps each class to a status.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with the input, and where: a line of a file, a JSON pointer into a body, a parameter."""

    reason: str
    line: int | None = None
    pointer: str | None = None
    parameter: str | None = None


class TagsmithError(Exception):
    """Base of every error a user can cause."""

    default_code: ClassVar[str] = "error"

    def __init__(self, message: str, faults: Sequence[Fault] = (), *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.faults = tuple(faults)
        self.code = code or self.default_code


class Invalid(TagsmithError):
    """The input has the right form of request but wrong content."""

    default_code = "invalid"


class NotFound(TagsmithError):
    """The thing named does not exist."""

    default_code = "not_found"


class Conflict(TagsmithError):
    """The state of the thing forbids the action."""

    default_code = "conflict"


class Stale(TagsmithError):
    """The caller acted on an older state than the present one."""

    default_code = "stale"


class TooLarge(TagsmithError):
    """The input exceeds a limit."""

    default_code = "too_large"


class Unsupported(TagsmithError):
    """The media type or encoding is not one we read."""

    default_code = "unsupported"


class Unavailable(TagsmithError):
    """A part the request needs is away for now; trying again later can work."""

    default_code = "unavailable"
