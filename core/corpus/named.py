"""Named attributes of tokens as objects have them: `{"word": "Paris", "capital": true, "length": 5}`.

The rules are those of python-crfsuite, so that feature dicts mean what they meant there:
- a string makes the attribute `name:string` with the value 1,
- a number is the value of the attribute `name`; true is 1, and false or 0 is as if it were not there,
- a list of strings makes an attribute `name:string` each, and an object is read by these rules behind `name:`.
"""

import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from core.corpus.arrays import Bytes, Ids, Places
from core.corpus.bag import MAX_VALUE, Cells
from core.corpus.vocabulary import pack
from core.jit import kernel

#: Objects inside objects: what people write is two or three deep.
MAX_DEPTH = 16

_QUOTE, _BACKSLASH, _COLON = 34, 92, 58


class WrongAttribute(Exception):
    """An attribute that says nothing; `path` leads to it from its token."""

    def __init__(self, path: tuple[str | int, ...], reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason

    def below(self, *path: str | int) -> "WrongAttribute":
        """The same, seen from further above."""
        return WrongAttribute((*path, *self.path), self.reason)


class Gathered:
    """Attributes of tokens as they are gathered, for one look-up of all their names."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.values: list[float] = []
        self.ends: list[int] = []  # attributes gathered up to the end of each token
        self.fields = 0  # members of all objects met, which JSON text must have as many of

    def add(self, token: Any) -> None:
        """Gather the attributes of a token: an object, or names alone."""
        if isinstance(token, Mapping):
            self._object(token, "", 0)
        else:
            self._names(token, "")
        self.ends.append(len(self.names))

    def add_all(self, tokens: Iterable[Any]) -> None:
        """Gather the attributes of tokens in turn; the path of a fault starts with the token's number."""
        for number, token in enumerate(tokens):
            try:
                self.add(token)
            except WrongAttribute as error:
                raise error.below(number) from None

    def _object(self, token: Mapping[str, Any], prefix: str, depth: int) -> None:
        names, values = self.names, self.values
        self.fields += len(token)
        for name, value in token.items():
            kind = type(value)
            if kind is str:
                names.append(f"{prefix}{name}:{value}")
                values.append(1.0)
            elif kind is float and -MAX_VALUE <= value <= MAX_VALUE:
                names.append(prefix + name)
                values.append(value)
            else:
                self._rest(name, value, prefix, depth)

    def _rest(self, name: Any, value: Any, prefix: str, depth: int) -> None:
        if not isinstance(name, str):
            raise WrongAttribute((), "names of attributes are strings")
        if isinstance(value, (bool, np.bool_, numbers.Real)):
            # Compared before it is a float: an integer may be too large for one.
            if not -MAX_VALUE <= value <= MAX_VALUE:  # type: ignore[operator]
                raise WrongAttribute((name,), f"a value is a number no further from 0 than {MAX_VALUE:g}")
            self.names.append(prefix + name)
            self.values.append(float(value))
        elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
            if depth == MAX_DEPTH:
                raise WrongAttribute((name,), f"objects more than {MAX_DEPTH} deep in each other")
            try:
                if isinstance(value, Mapping):
                    self._object(value, f"{prefix}{name}:", depth + 1)
                else:
                    self._names(value, f"{prefix}{name}:")
            except WrongAttribute as error:
                raise error.below(name) from None
        elif isinstance(value, str):
            self.names.append(f"{prefix}{name}:{value}")
            self.values.append(1.0)
        else:
            raise WrongAttribute((name,), "must be a string, a number, a boolean, a list or an object")

    def _names(self, names: Any, prefix: str) -> None:
        if isinstance(names, str) or not isinstance(names, Collection):
            raise WrongAttribute((), "must be an object of attributes")
        # A set has no order of its own that is the same in every process.
        ordered: Iterable[Any] = sorted(names) if isinstance(names, (set, frozenset)) else names
        for number, name in enumerate(ordered):
            if not isinstance(name, str):
                raise WrongAttribute((number,), "must be a string")
            self.names.append(prefix + name)
            self.values.append(1.0)

    def spans(self) -> tuple[Bytes, Places, Places]:
        """The names in one buffer, with where each starts and stops."""
        return pack(self.names)

    def cells(self, ids: Ids) -> Cells:
        """The cells of the tokens, given the id of each name; names without an id (-1) are left out."""
        known = ids >= 0
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
        starts = before[np.array([0, *self.ends], np.int64)]
        values = np.array(self.values, np.float32)
        return Cells.of(starts, ids[known], values[known])


@kernel
def _members(text: Bytes) -> int:
    """Colons outside of strings: as many as there are members in the objects of a JSON text."""
    count, inside, i = 0, False, 0
    while i < text.size:
        if text[i] == _QUOTE:
            inside = not inside
        elif inside and text[i] == _BACKSLASH:
            i += 1
        elif text[i] == _COLON:
            count += not inside
        i += 1
    return count


def members(text: bytes) -> int:
    """How many members the objects of a good JSON text have, names given twice counted twice."""
    return int(_members(np.frombuffer(text, np.uint8)))


class TwiceError(ValueError):
    """An object has two members of one name."""


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members, for `json.loads`; raises when two have the same name."""
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise TwiceError(f"the name {name!r} is there twice")
    return made


def warm() -> None:
    """Compile, or load from the cache, the kernel of this module."""
    members(b"{}")
