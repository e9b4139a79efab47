"""Suggestions for misspelt names, for error messages."""

import difflib
from collections.abc import Iterable

#: Similarity from which a name is suggested, between 0 and 1: allows about one wrong character in four.
CUTOFF = 0.7
#: Longer lists of known names are not read.
MAX_KNOWN = 20


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` is most likely a misspelling of; None if none is similar."""
    # Case and separators are the most frequent mistakes, so they count little.
    by_form: dict[str, str] = {}
    for each in known:
        by_form.setdefault(_form(each), each)
    near = difflib.get_close_matches(_form(name), by_form, n=1, cutoff=CUTOFF)
    return by_form[near[0]] if near else None


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Describe an unknown name: "unknown field `pases`; did you mean `passes`? Known: passes, l1"."""
    names = list(known)
    guess = did_you_mean(name, names)
    said = f"unknown {what} `{name}`" + (f"; did you mean `{guess}`?" if guess else ".")
    if not names:
        return said
    more = f" and {len(names) - MAX_KNOWN} more" if len(names) > MAX_KNOWN else ""
    return f"{said} Known: {', '.join(names[:MAX_KNOWN])}{more}"


def _form(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")
