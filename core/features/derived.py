"""Derived columns: functions of one vocabulary entry, computed once a distinct value and never once a token."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from core.features.regex import Dialect, Regex
from core.specs_base import Spec

ColumnName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
#: A function of one value. None means the value has no such thing, and makes no feature.
Function = Callable[[str], str | None]

_DIGITS = re.compile(r"\d")
_RUNS = re.compile(r"(.)\1+")

#: Where buckets of lengths begin: short words apart, long ones together.
_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 9, 13, 21)


def _shape(text: str) -> str:
    """Map letters to A or a, digits to 0, and leave the rest: `IL-2b` is `AA-0a`."""
    return "".join("A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in text)


#: Letters of scripts that tell more than upper and lower case do, by how their Unicode names begin.
_SCRIPTS = (("CJK", "han"), ("HIRAGANA", "kana"), ("KATAKANA", "kana"), ("HANGUL", "hangul"))


def _char_class(c: str) -> str:
    if c.isupper():
        return "upper"
    if c.islower():
        return "lower"
    if c.isdecimal():
        return "digit"
    category = unicodedata.category(c)[0]
    if category == "L":
        name = unicodedata.name(c, "")
        return next((kind for start, kind in _SCRIPTS if name.startswith(start)), "letter")
    return {"N": "number", "P": "punctuation", "S": "symbol", "M": "mark"}.get(category, "other")


def _char_classes(text: str) -> str:
    """Name the classes of characters that occur, in alphabetical order: `IL-2` is `digit+punctuation+upper`."""
    return "+".join(sorted({_char_class(c) for c in text}))


#: The classes of Nymble (Bikel et al. 1997) and of the biomedical systems after it; the first that fits is taken.
_ORTHOGRAPHY: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("TwoDigits", re.compile(r"\d\d")),
    ("FourDigits", re.compile(r"\d{4}")),
    ("AllDigits", re.compile(r"\d+")),
    ("DigitsAndComma", re.compile(r"[+-]?\d[\d.]*,[\d.,]*")),
    ("DigitsAndPeriod", re.compile(r"[+-]?\d*\.\d[\d.]*|[+-]?\d+\.")),
    ("DigitsAndSlash", re.compile(r"\d[\d/]*/[\d/]*")),
    ("DigitsAndColon", re.compile(r"\d[\d:]*:[\d:]*")),
    ("DigitsAndDash", re.compile(r"\d[\d-]*-[\d-]*|-\d+")),
    ("RomanNumeral", re.compile(r"(?=[IVXLCDM]{2})M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")),
)


def _orthography(text: str) -> str:
    """Name how a word is written: `InitCap`, `AllCaps`, `TwoDigits`, ..."""
    for name, pattern in _ORTHOGRAPHY:
        if pattern.fullmatch(text):
            return name
    letters = [c for c in text if c.isalpha()]
    digits = any(c.isdigit() for c in text)
    if not letters:
        return "OtherNumber" if digits else "Punctuation" if text else "Empty"
    upper = sum(c.isupper() for c in letters)
    if digits:
        return "CapsAndDigits" if upper == len(letters) else "LettersAndDigits"
    return _case(text, letters, upper)


def _case(text: str, letters: list[str], upper: int) -> str:
    """Name the case of a word with letters, `upper` of them capitals, and without digits."""
    if len(letters) == 1 and upper:
        kinds = ("SingleCap", "CapWithHyphen", "Initial", "CapAndOther")
    elif upper == len(letters):
        kinds = ("AllCaps", "AllCapsWithHyphen", "CapsWithPeriods", "CapsAndOther")
    elif not upper:
        kinds = ("Lowercase", "LowerWithHyphen", "LowerWithPeriod", "LowerAndOther")
    elif text[0].isupper() and upper == 1:
        kinds = ("InitCap", "InitCapWithHyphen", "InitCapWithPeriod", "InitCapAndOther")
    else:
        kinds = ("MixedCaps", "MixedWithHyphen", "MixedWithPeriod", "MixedAndOther")
    return kinds[0 if len(letters) == len(text) else 1 if "-" in text else 2 if "." in text else 3]


def _length(text: str) -> str:
    """The bucket of a length, by its least: 1, 2, 3, 4, 5 (and 6), 7, 9, 13 and 21 (or more)."""
    return str(_LENGTHS[bisect_right(_LENGTHS, len(text)) - 1])


_SIMPLE: dict[str, Function] = {
    "lower": str.lower,
    "digits": lambda text: _DIGITS.sub("#", text),
    "shape": _shape,
    "collapsed-shape": lambda text: _RUNS.sub(r"\1", _shape(text)),
    "char-classes": _char_classes,
    "orthography": _orthography,
    "length": _length,
    "width": lambda text: unicodedata.normalize("NFKC", text),
    # Whether a token is the first is no matter of its value: `Coder` puts "true" where sentences begin.
    "first": lambda _: "false",
}


class Derived(Spec):
    """A column computed from another: `{"of": 0, "kind": "suffix", "n": 3}`.

    `of` is a column of the corpus, by number or name, or another derived column. `n` is the length of a prefix or
    suffix; `substrings` are all those of fewer than `n` characters, any number a token. `regex` columns have a
    `pattern`, in a `dialect`, and `take` whether it matches or what it matches.
    """

    kind: Literal[
        "lower", "digits", "shape", "collapsed-shape", "prefix", "suffix", "char-classes", "orthography", "length",
        "width", "first", "regex", "substrings",
    ]  # fmt: skip
    of: Annotated[int, Field(ge=0, le=255)] | ColumnName = 0
    n: Annotated[int, Field(ge=1, le=32)] | None = None
    pattern: Annotated[str, Field(max_length=500)] | None = None
    take: Literal["test", "match"] | None = None
    dialect: Dialect | None = None

    @model_validator(mode="after")
    def _fields_where_needed(self) -> "Derived":
        affix, regex = self.kind in ("prefix", "suffix", "substrings"), self.kind == "regex"
        if affix != (self.n is not None):
            raise ValueError(f"a {self.kind} column {'needs its' if affix else 'takes no'} length n")
        if self.kind == "substrings" and self.n == 1:
            raise ValueError("no substring has fewer than 1 characters: give an n of 2 or more")
        if regex != (self.pattern is not None):
            raise ValueError(f"a {self.kind} column {'needs its' if regex else 'takes no'} pattern")
        if not regex and (self.take is not None or self.dialect is not None):
            raise ValueError(f"a {self.kind} column takes neither take nor dialect")
        if self.pattern is not None:
            Regex(self.pattern, self.dialect or "extended")
        return self

    @property
    def several(self) -> bool:
        """Whether a value has any number of such things, for a template that looks at nothing else."""
        return self.kind == "substrings"

    def parts(self, text: str) -> list[str]:
        """The things of a column of several, each once."""
        n, size = self.n or 0, len(text)
        return list(dict.fromkeys(text[i : i + k] for k in range(1, n) for i in range(size - k + 1)))

    def function(self) -> Function:
        """Give the function of one value; columns of several have none."""
        n = self.n or 0
        if self.kind == "prefix":
            return lambda text: text[:n] if len(text) >= n else None
        if self.kind == "suffix":
            return lambda text: text[-n:] if len(text) >= n else None
        if self.pattern is None:
            return _SIMPLE[self.kind]
        find = Regex(self.pattern, self.dialect or "extended").find
        if self.take == "match":
            # Wapiti writes nothing where nothing matches; here that makes no feature.
            return find if self.dialect != "wapiti" else lambda text: find(text) or ""
        return lambda text: "false" if find(text) is None else "true"
