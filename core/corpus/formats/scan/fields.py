"""The fields of the lines of CoNLL-U and CoNLL-X by name, and sentences written with them.

It serves tagging, where sentences are lists of strings. Whole corpora are read and written by `conllu` and `conllx`.
"""

from collections.abc import Iterable, Iterator, Sequence

#: Fields per line.
WIDTH = 10
FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(1, WIDTH)
#: The field of each name. Both formats have the same fields, of which two have other names in CoNLL-X.
PLACES = {
    "form": FORM, "lemma": LEMMA, "upos": UPOS, "cpostag": UPOS, "xpos": XPOS, "postag": XPOS, "feats": FEATS,
    "deps": DEPS, "misc": MISC,
}  # fmt: skip
#: Fields whose values may have blanks.
_WITH_BLANKS = frozenset({FORM, LEMMA, MISC})
#: An empty field.
EMPTY = "_"


def places_of(columns: Sequence[str]) -> list[int | None]:
    """Return the field of each column of a token, None for columns that are no fields.

    The first column is the form if no column has this name.
    """
    found = [PLACES.get(name) for name in columns]
    if FORM not in found and found:
        found[0] = FORM
    return found


def named_fields(columns: Sequence[str], fields: Sequence[str]) -> list[str] | None:
    """Return the names of the fields of all columns, given the names of all `fields`; None if a column is no field."""
    places = places_of(columns)
    return [fields[place] for place in places if place is not None] if None not in places else None


def is_writable(value: str, place: int) -> bool:
    """Whether a field can have this value."""
    least = " " if place in _WITH_BLANKS else "!"
    return bool(value) and all(character >= least and character != "\x7f" for character in value)


def sentence_lines(rows: Iterable[Sequence[str]], places: Sequence[int | None]) -> Iterator[list[str]]:
    """Yield the fields of each word of a sentence. Fields that are no columns are empty."""
    for number, row in enumerate(rows, start=1):
        fields = [str(number), *[EMPTY] * (WIDTH - 1)]
        for place, value in zip(places, row, strict=False):
            if place is not None:
                fields[place] = value
        yield fields
