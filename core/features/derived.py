"""Derived columns: functions of one vocabulary entry, computed once a distinct value and never once a token."""

import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from core.specs_base import Spec

_DIGITS = re.compile(r"\d")
_RUNS = re.compile(r"(.)\1+")


def _shape(text: str) -> str:
    """Map letters to A or a, digits to 0, and leave the rest: `IL-2b` is `AA-0a`."""
    return "".join("A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in text)


class Derived(Spec):
    """A column computed from another: `{"of": 0, "kind": "suffix", "n": 3}`."""

    kind: Literal["lower", "digits", "shape", "collapsed-shape", "prefix", "suffix"]
    of: Annotated[int, Field(ge=0, le=255)] = 0
    n: Annotated[int, Field(ge=1, le=32)] | None = None

    @model_validator(mode="after")
    def _length_where_needed(self) -> "Derived":
        affix = self.kind in ("prefix", "suffix")
        if affix and self.n is None:
            raise ValueError(f"a {self.kind} column needs its length n")
        if not affix and self.n is not None:
            raise ValueError(f"a {self.kind} column takes no length n")
        return self

    def function(self) -> Callable[[str], str | None]:
        """Give the function of one value. None means the value has no such thing, and makes no feature."""
        n = self.n or 0
        functions: dict[str, Callable[[str], str | None]] = {
            "lower": str.lower,
            "digits": lambda text: _DIGITS.sub("#", text),
            "shape": _shape,
            "collapsed-shape": lambda text: _RUNS.sub(r"\1", _shape(text)),
            "prefix": lambda text: text[:n] if len(text) >= n else None,
            "suffix": lambda text: text[-n:] if len(text) >= n else None,
        }
        return functions[self.kind]
