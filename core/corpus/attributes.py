"""Named attributes of tokens, given as objects: `{"word": "Paris", "capital": true, "length": 5}`.

The rules are those of python-crfsuite, so feature dicts have the same meaning:
- a string becomes the attribute `name:string` with the value 1,
- bytes are a string in UTF-8,
- a number is the value of the attribute `name`; true is 1, and false and 0 add no attribute,
- a list of strings becomes one attribute `name:string` per string,
- an object follows the same rules, with the prefix `name:`.
"""

import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tagsmith.core.base.arrays import Bytes, Ids, Places
from tagsmith.core.base.jit import kernel
from tagsmith.core.corpus.bag import MAX_VALUE, Cells
from tagsmith.core.corpus.vocabulary import pack

#: Maximum depth of nested objects. Real data is two or three deep.
MAX_DEPTH = 16

_QUOTE, _BACKSLASH, _COLON = 34, 92, 58


class InvalidAttribute(Exception):
    """An attribute has an invalid value; `path` leads from its token to the value."""

    def __init__(self, path: tuple[str | int, ...], reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason

    def prefixed(self, *path: str | int) -> "InvalidAttribute":
        """Return the same error with `path` in front of its path."""
        return InvalidAttribute((*path, *self.path), self.reason)


class AttributeCollector:
    """Collects the attributes of tokens, so that all names are looked up at once."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.values: list[float] = []
        self.ends: list[int] = []  # attributes up to the end of each token
        self.members = 0  # members of all objects, to compare with `count_members` of the JSON text

    def add(self, token: Any) -> None:
        """Add the attributes of a token: an object, or a collection of names."""
        if isinstance(token, Mapping):
            self._add_object(token, "", 0)
        else:
            self._add_names(token, "")
        self.ends.append(len(self.names))

    def add_all(self, tokens: Iterable[Any]) -> None:
        """Add the attributes of several tokens. The path of an error starts with the index of the token."""
        for number, token in enumerate(tokens):
            try:
                self.add(token)
            except InvalidAttribute as error:
                raise error.prefixed(number) from None

    def _add_object(self, token: Mapping[str, Any], prefix: str, depth: int) -> None:
        add_name, add_value = self.names.append, self.values.append
        self.members += len(token)
        for name, value in token.items():
            kind = type(value)
            if kind is str:
                add_name(f"{prefix}{name}:{value}")
                add_value(1.0)
            elif kind is bool and type(name) is str:
                add_name(prefix + name)
                add_value(1.0 if value else 0.0)
            elif kind is float and -MAX_VALUE <= value <= MAX_VALUE:
                add_name(prefix + name)
                add_value(value)
            else:
                self._add_other(name, value, prefix, depth)

    def _add_other(self, name: Any, value: Any, prefix: str, depth: int) -> None:
        if not isinstance(name, str):
            raise InvalidAttribute((), "names of attributes must be strings")
        if isinstance(value, (bool, np.bool_, numbers.Real)):
            # Compared before the conversion: an integer may be too large for a float.
            if not -MAX_VALUE <= value <= MAX_VALUE:  # type: ignore[operator]
                raise InvalidAttribute((name,), f"must be a number from -{MAX_VALUE:g} to {MAX_VALUE:g}")
            self.names.append(prefix + name)
            self.values.append(float(value))
        elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
            if depth == MAX_DEPTH:
                raise InvalidAttribute((name,), f"must not be nested more than {MAX_DEPTH} levels deep")
            try:
                if isinstance(value, Mapping):
                    self._add_object(value, f"{prefix}{name}:", depth + 1)
                else:
                    self._add_names(value, f"{prefix}{name}:")
            except InvalidAttribute as error:
                raise error.prefixed(name) from None
        elif isinstance(value, (str, bytes)):
            text = value if isinstance(value, str) else _decoded(value, name)
            self.names.append(f"{prefix}{name}:{text}")
            self.values.append(1.0)
        else:
            raise InvalidAttribute((name,), "must be a string, a number, a boolean, a list or an object")

    def _add_names(self, names: Any, prefix: str) -> None:
        if isinstance(names, str) or not isinstance(names, Collection):
            raise InvalidAttribute((), "must be an object of attributes")
        # The order of a set differs between processes.
        ordered: Iterable[Any] = sorted(names) if isinstance(names, (set, frozenset)) else names
        for number, given in enumerate(ordered):
            name = _decoded(given, number) if isinstance(given, bytes) else given
            if not isinstance(name, str):
                raise InvalidAttribute((number,), "must be a string")
            self.names.append(prefix + name)
            self.values.append(1.0)

    def spans(self) -> tuple[Bytes, Places, Places]:
        """Return (buffer, starts, stops) of the names, as `Vocabulary.lookup` takes them."""
        return pack(self.names)

    def cells(self, ids: Ids) -> Cells:
        """Return the cells of the tokens, given the id of each name. Names without an id (-1) are skipped."""
        known = ids >= 0
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
        starts = before[np.array([0, *self.ends], np.int64)]
        values = np.array(self.values, np.float32)
        return Cells.of(starts, ids[known], values[known])


def _decoded(text: bytes, place: str | int) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise InvalidAttribute((place,), "must be a string in UTF-8") from None


@kernel
def _count_colons(text: Bytes) -> int:
    """Count the colons outside of strings."""
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


def count_members(text: bytes) -> int:
    """Count the members of all objects in a valid JSON text. A name that occurs twice counts twice."""
    return int(_count_colons(np.frombuffer(text, np.uint8)))


class DuplicateNameError(ValueError):
    """An object has two members with the same name."""


def object_of(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these members, as `object_pairs_hook` of `json.loads`. Names must be distinct."""
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DuplicateNameError(f"the name {name!r} occurs twice")
    return members


def warm() -> None:
    """Compile the kernel of this module, or load it from the cache."""
    count_members(b"{}")
