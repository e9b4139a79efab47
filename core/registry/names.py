"""Syntax of the names of models and aliases, and of model references."""

from typing import Annotated

from pydantic import StringConstraints

#: Names of models and aliases: safe in a path, a file name and a model reference.
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]

#: A version of a model: `name` (its champion, else its newest), `name@alias` or `name:3`.
REFERENCE_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}(@[a-z0-9][a-z0-9._-]{0,63}|:[1-9][0-9]{0,8})?$"
ModelReference = Annotated[str, StringConstraints(pattern=REFERENCE_PATTERN)]
