"""Messages for names that do not exist: the nearest known name, and what is known."""

from collections.abc import Iterable
from difflib import get_close_matches

#: The most known names that a message lists.
LISTED = 40
#: The longest name that a message repeats. A longer one is no typing error.
LONGEST = 64
#: How alike two names must be to suggest one for the other. `lbgfs` and `lbfgs` are 0.8.
ALIKE = 0.6


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, or None if none is."""
    names = list(dict.fromkeys(known))
    folded = {each.casefold().replace("_", "-"): each for each in reversed(names)}
    found = get_close_matches(name.casefold().replace("_", "-"), folded, 1, ALIKE)
    return folded[found[0]] if found else None


def missing(what: str, name: str, known: Iterable[str]) -> str:
    """Say that there is no `what` of this name, and what may have been meant.

    >>> missing("model", "nre", ["ner", "pos"])
    'There is no model nre; did you mean ner?'
    """
    meant = did_you_mean(name, known)
    return f"There is no {what} {name}; did you mean {meant}?" if meant else f"There is no {what} {name}."


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Say that `name` is unknown, what it may have been meant to be, and what is known.

    >>> unknown("field", "pases", ["kind", "passes"])
    'Unknown field `pases`; did you mean `passes`? Known: kind, passes.'
    """
    names = list(dict.fromkeys(known))
    meant = did_you_mean(name, names)
    first = f"Unknown {what} `{name}`" if len(name) <= LONGEST else f"Unknown {what}"
    hint = f"; did you mean `{meant}`?" if meant else "."
    if not names:
        return f"{first}{hint}"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{first}{hint} Known: {', '.join(names[:LISTED])}{more}."
