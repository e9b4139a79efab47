"""Errors a user can cause.

Each has a stable `code`, a message for people, and a list of faults. They are independent of HTTP:
`app/http/problems.py` maps each class to a status.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class FaultType(StrEnum):
    """What is wrong, for programs, where pydantic has no name for it. `docs/errors.md` describes each."""

    #: Fields that are valid by themselves do not fit together.
    INCONSISTENT = "inconsistent"
    #: A number of something that the request does not have.
    OUT_OF_RANGE = "out_of_range"
    #: Values of one list have different types.
    MIXED_TYPES = "mixed_types"
    #: A JSON object has two members of one name.
    DUPLICATE_NAME = "duplicate_name"
    #: A value or a field of a search that the trainer or the features cannot take.
    SEARCHED_VALUE = "searched_value"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of the input, and its location: a line of a file, a JSON pointer into the body, or a parameter.

    `type` is pydantic's error type (`missing`, `greater_than`) or a `FaultType`. None: the code of the error says all.
    """

    reason: str
    line: int | None = None
    pointer: str | None = None
    parameter: str | None = None
    type: str | None = None


class TagsmithError(Exception):
    """Base class of errors that a user can cause."""

    default_code: ClassVar[str] = "error"

    def __init__(self, message: str, faults: Sequence[Fault] = (), *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.faults = tuple(faults)
        self.code = code or self.default_code


class Invalid(TagsmithError):
    """The request is well-formed, but its content is invalid."""

    default_code = "invalid"


class NotFound(TagsmithError):
    """The named resource does not exist."""

    default_code = "not_found"


class Conflict(TagsmithError):
    """The state of the resource does not allow the action."""

    default_code = "conflict"


class Stale(TagsmithError):
    """The caller acted on an outdated state."""

    default_code = "stale"


class TooLarge(TagsmithError):
    """The input exceeds a limit."""

    default_code = "too_large"


class Unsupported(TagsmithError):
    """The media type or encoding is not supported."""

    default_code = "unsupported"


class Unavailable(TagsmithError):
    """A component that the request needs is unavailable; a retry can succeed."""

    default_code = "unavailable"
