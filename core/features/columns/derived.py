"""Derived columns: functions of a single value, computed once per distinct value."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from tagsmith.core.base.regex import MAX_PATTERN, MAX_TEXT, TEST_STEPS, Dialect, Regex
from tagsmith.core.base.spec import Spec

ColumnName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
#: A function of one value. None means that there is no derived value, and so no feature.

_DIGITS = re.compile(r"\d")
_RUNS = re.compile(r"(.)\1+")

#: The lower bounds of the length buckets. Long words share buckets.
_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 9, 13, 21)


def _shape(text: str) -> str:
    """Map letters to A or a and digits to 0, and keep the rest: `IL-2b` becomes `AA-0a`."""
    return "".join("A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in text)


#: Scripts without case, by the beginning of the Unicode names of their letters.
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
    """The classes of the characters, in alphabetical order: `IL-2` has `digit+punctuation+upper`."""
    return "+".join(sorted({_char_class(c) for c in text}))


#: The classes of Nymble (Bikel et al. 1997) and of later biomedical systems. The first match wins. Repeats are
#: possessive (`*+`), so that matching takes time linear in the length of a word.
_ORTHOGRAPHY: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("TwoDigits", re.compile(r"\d\d")),
    ("FourDigits", re.compile(r"\d{4}")),
    ("AllDigits", re.compile(r"\d+")),
    ("DigitsAndComma", re.compile(r"[+-]?\d[\d.]*+,[\d.,]*+")),
    ("DigitsAndPeriod", re.compile(r"[+-]?\d*+\.\d[\d.]*+|[+-]?\d++\.")),
    ("DigitsAndSlash", re.compile(r"\d++/[\d/]*+")),
    ("DigitsAndColon", re.compile(r"\d++:[\d:]*+")),
    ("DigitsAndDash", re.compile(r"\d++-[\d-]*+|-\d++")),
    ("RomanNumeral", re.compile(r"(?=[IVXLCDM]{2})M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")),
)


def _orthography(text: str) -> str:
    """The orthographic class of a word: `InitCap`, `AllCaps`, `TwoDigits`, ..."""
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
    """The case class of a word without digits. `upper` of its letters are capitals."""
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
    """The lower bound of the bucket of a length: 0, 1, 2, 3, 4, 5 (to 6), 7 (to 8), 9, 13 or 21 (and more)."""
    return str(_LENGTHS[bisect_right(_LENGTHS, len(text)) - 1])


_SIMPLE: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "digits": lambda text: _DIGITS.sub("#", text),
    "shape": _shape,
    "collapsed-shape": lambda text: _RUNS.sub(r"\1", _shape(text)),
    "char-classes": _char_classes,
    "orthography": _orthography,
    "length": _length,
    "width": lambda text: unicodedata.normalize("NFKC", text),
    # This does not depend on the value: `Coder` writes "true" where sentences begin.
    "first": lambda _: "false",
}


@lru_cache(maxsize=256)
def _regex(pattern: str, dialect: Dialect) -> Regex:
    """Return the compiled expression. Compiling takes as long as tagging a short sentence, which needs it."""
    return Regex(pattern, dialect)


class Derived(Spec):
    """A column computed from another: `{"of": 0, "kind": "suffix", "n": 3}`.

    `of` is a column of the corpus, by number or name, or another derived column. `n` is the length of a prefix or
    suffix. A `substrings` column has all substrings of fewer than `n` characters, any number per token. A `regex`
    column has a `pattern` in a `dialect`, and takes whether it matches (`test`) or the matched text (`match`).
    """

    kind: Literal[
        "lower", "digits", "shape", "collapsed-shape", "prefix", "suffix", "char-classes", "orthography", "length",
        "width", "first", "regex", "substrings",
    ]  # fmt: skip
    of: Annotated[int, Field(ge=0, le=255)] | ColumnName = 0
    n: Annotated[int, Field(ge=1, le=32)] | None = None
    pattern: Annotated[str, Field(max_length=MAX_PATTERN)] | None = None
    take: Literal["test", "match"] | None = None
    dialect: Dialect | None = None

    @model_validator(mode="after")
    def _fields_where_needed(self) -> "Derived":
        affix, regex = self.kind in ("prefix", "suffix", "substrings"), self.kind == "regex"
        if affix != (self.n is not None):
            raise ValueError(f"A {self.kind} column {'needs a' if affix else 'takes no'} length n.")
        if self.kind == "substrings" and self.n == 1:
            raise ValueError("No substring has fewer than 1 characters. Set n to 2 or more.")
        if regex != (self.pattern is not None):
            raise ValueError(f"A {self.kind} column {'needs a' if regex else 'takes no'} pattern.")
        if not regex and (self.take is not None or self.dialect is not None):
            raise ValueError(f"A {self.kind} column takes neither take nor dialect. Remove them.")
        if self.pattern is not None:
            _regex(self.pattern, self.dialect or "extended")
        return self

    @property
    def steps_per_character(self) -> int:
        """The most steps that computing the column takes per character of a value; 0 if these are few."""
        if self.is_bag:
            return TEST_STEPS * (self.n or 0)
        return (
            0
            if self.pattern is None
            else _regex(self.pattern, self.dialect or "extended").steps_per_character
        )

    @property
    def is_bag(self) -> bool:
        """Whether the column has any number of values per token."""
        return self.kind == "substrings"

    def parts(self, text: str) -> list[str]:
        """The values of a bag column, without repetitions; those in the first `MAX_TEXT` characters of a long text."""
        text = text[:MAX_TEXT]
        n, size = self.n or 0, len(text)
        return list(dict.fromkeys(text[i : i + k] for k in range(1, n) for i in range(size - k + 1)))

    def values(self, texts: Sequence[str]) -> Sequence[str | None]:
        """Return the derived value of each text, or None. Bag columns have no single values: see `parts`."""
        n = self.n or 0
        if self.kind == "prefix":
            return [text[:n] if len(text) >= n else None for text in texts]
        if self.kind == "suffix":
            return [text[-n:] if len(text) >= n else None for text in texts]
        if self.pattern is None:
            return list(map(_SIMPLE[self.kind], texts))
        found = _regex(self.pattern, self.dialect or "extended").find_all(texts)
        if self.take == "match":
            # Wapiti writes an empty string if nothing matches. In the extended dialect there is no feature.
            return found if self.dialect != "wapiti" else [match or "" for match in found]
        return ["false" if match is None else "true" for match in found]
