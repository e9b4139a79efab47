"""Messages for names that do not exist: the most similar known name, and a list of the known names."""

from collections.abc import Iterable
from difflib import get_close_matches

#: Maximum number of known names in a message.
MAX_LISTED = 40
#: Maximum length of a name that a message repeats. A longer one is not a typing error.
MAX_REPEATED_CHARS = 64
#: Minimum similarity for a suggestion. That of `lbgfs` and `lbfgs` is 0.8.
MIN_SIMILARITY = 0.6


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, but not `name` itself; None if none is similar enough."""
    if len(name) > MAX_REPEATED_CHARS:
        return None
    names = [each for each in dict.fromkeys(known) if each != name]
    folded = {each.casefold().replace("_", "-"): each for each in reversed(names)}
    found = get_close_matches(name.casefold().replace("_", "-"), folded, 1, MIN_SIMILARITY)
    return folded[found[0]] if found else None


def missing(what: str, name: str, known: Iterable[str]) -> str:
    """Return the message that no `what` has this name, with a suggestion if there is one.

    >>> missing("model", "nre", ["ner", "pos"])
    'There is no model nre; did you mean ner?'
    """
    meant = did_you_mean(name, known)
    return f"There is no {what} {name}; did you mean {meant}?" if meant else f"There is no {what} {name}."


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return the message that `name` is unknown, with a suggestion and the known names.

    >>> unknown("field", "pases", ["kind", "passes"])
    'Unknown field `pases`; did you mean `passes`? Known: kind, passes.'
    """
    names = list(dict.fromkeys(known))
    meant = did_you_mean(name, names)
    first = f"Unknown {what} `{name}`" if len(name) <= MAX_REPEATED_CHARS else f"Unknown {what}"
    hint = f"; did you mean `{meant}`?" if meant else "."
    if not names:
        return f"{first}{hint}"
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"{first}{hint} Known: {', '.join(names[:MAX_LISTED])}{more}."
