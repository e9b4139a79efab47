"""Syntax of the names of models and aliases, and of model references."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import StringConstraints

#: Names of models and aliases: safe in a path, a file name and a model reference.
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]

#: A version of a model: `name` (its champion, else its newest), `name@alias` or `name:3`.
REFERENCE_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}(@[a-z0-9][a-z0-9._-]{0,63}|:[1-9][0-9]{0,8})?$"
ModelReference = Annotated[str, StringConstraints(pattern=REFERENCE_PATTERN)]

_MAX_CHARS = 64
_RULE = "Names use lower-case letters, digits, '.', '_' and '-', and begin with a letter or digit"


def wrong_name(name: str) -> str:
    """Return the message for a string that is not a name, with a name that is similar.

    >>> wrong_name("My model")
    "Names use lower-case letters, digits, '.', '_' and '-', and begin with a letter or digit; did you mean my-model?"
    """
    if len(name) > _MAX_CHARS:
        return f"{_RULE}. They have at most {_MAX_CHARS} characters."
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    similar = re.sub(r"[^a-z0-9._-]+", "-", plain).strip("._-")
    return f"{_RULE}; did you mean {similar[:_MAX_CHARS]}?" if similar else f"{_RULE}."


def wrong_reference(_: str) -> str:
    """Return the message for a string that is not a model reference."""
    return f"A model reference is name, name@alias or name:version. {_RULE}."


#: The message for a string that does not match a pattern.
MESSAGES: Mapping[str, Callable[[str], str]] = {NAME_PATTERN: wrong_name, REFERENCE_PATTERN: wrong_reference}
