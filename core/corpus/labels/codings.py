"""Codings of chunks as labels: recognise, check and convert them.

| coding | one token | three tokens | three tokens directly after a chunk of the same type |
|---|---|---|---|
| iob1 | I | I I I | B I I |
| iob2 | B | B I I | B I I |
| bioes | S | B I E | B I E |
| bilou | U | B I L | B I L |
| bmes | S | B M E | B M E |

A label is a tag, followed by a hyphen and a type if chunks have types. O is outside of chunks. Chunks are found by the
rules of `tagsmith.core.corpus.labels.chunks`, which are those of the scorer. So converting the coding never changes
scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places, numbered
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.jit import inlined, kernel, readonly
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.labels.chunks import Chunks
from tagsmith.core.corpus.vocabulary import Vocabulary

LabelCoding = Literal["iob1", "iob2", "bioes", "bilou", "bmes"]

#: Maximum number of faults that are listed; all are counted.
MAX_FAULT_PLACES = 100

_OUT, _BEGIN, _INSIDE, _END, _SINGLE = range(5)

#: The meaning of tags; B2 and B3 are those of word segmentation.
_TAG_CODES = {
    "B": _BEGIN,
    "I": _INSIDE,
    "M": _INSIDE,
    "B2": _INSIDE,
    "B3": _INSIDE,
    "E": _END,
    "L": _END,
    "S": _SINGLE,
    "U": _SINGLE,
}
_BILOU_TAGS = {"O", "B", "I", "L", "U"}
_OTHER_TAGS = {"O", "B", "I", "M", "B2", "B3", "E", "S"}

#: Tags of each coding for the first token of a chunk, an inner one, the last one and a single one.
_WRITTEN: dict[LabelCoding, tuple[str, str, str, str]] = {
    "iob1": ("B", "I", "I", "B"),
    "iob2": ("B", "I", "I", "B"),
    "bioes": ("B", "I", "E", "S"),
    "bilou": ("B", "I", "L", "U"),
    "bmes": ("B", "M", "E", "S"),
}

#: All tags of each coding; bmes includes B2 and B3 of word segmentation.
_KNOWN: dict[LabelCoding, frozenset[str]] = {
    **{coding: frozenset({"O", *written}) for coding, written in _WRITTEN.items()},
    "bmes": frozenset({"O", "B", "B2", "B3", "M", "E", "S"}),
}

# Kinds of rules about which label may follow which.
_IOB1, _IOB2, _CLOSED = range(3)


@dataclass(frozen=True, slots=True)
class LabelFault:
    """A label that breaks the coding at its position; sentence and token are counted from 0."""

    sentence: int
    token: int
    label: str
    previous: str | None  # None at the start of a sentence


@dataclass(frozen=True, slots=True)
class LabelCheck:
    """The coding of labels, None if it is not a known one, and the labels that break it."""

    scheme: LabelCoding | None
    fault_count: int
    faults: tuple[LabelFault, ...]  # the first `MAX_FAULT_PLACES`


NOT_CHECKED = LabelCheck(None, 0, ())


@inlined
def _wrong(previous_tag: int, previous_type: int, tag: int, kind: int, scheme: int) -> bool:
    """Whether a label after another breaks the scheme. At the start of a sentence the previous tag is O."""
    opened = previous_tag in (_BEGIN, _INSIDE)
    continues = tag in (_INSIDE, _END)
    continued = opened and kind == previous_type
    if scheme == _IOB1:
        # B only directly after a chunk of the same type.
        return tag == _BEGIN and not continued
    if scheme == _IOB2:
        return tag == _INSIDE and not continued
    return continues != opened or (continues and not continued)


@inlined
def _unfinished(tag: int, scheme: int) -> bool:
    """Whether a sentence must not end with a label."""
    return scheme == _CLOSED and tag in (_BEGIN, _INSIDE)


@kernel
def _label_faults(
    ids: Ids, offsets: Places, tags: Ids, types: Ids, scheme: int, places: NDArray[np.int64]
) -> int:
    """Count the labels that break the scheme; store the first ones in `places` as (sentence, token in it)."""
    count = 0
    for sentence in range(offsets.size - 1):
        previous_tag, previous_type = _OUT, -1
        for token in range(offsets[sentence], offsets[sentence + 1]):
            tag, kind = tags[ids[token]], types[ids[token]]
            wrong = _wrong(previous_tag, previous_type, tag, kind, scheme)
            last = token + 1 == offsets[sentence + 1]
            if wrong or (last and _unfinished(tag, scheme)):
                if count < places.shape[0]:
                    places[count, 0] = sentence
                    places[count, 1] = token - offsets[sentence]
                count += 1
            previous_tag, previous_type = tag, kind
    return count


@kernel
def _mark_breaks(
    tags: Ids, types: Ids, scheme: int, first: NDArray[np.bool_], pairs: NDArray[np.bool_], last: NDArray[np.bool_]
) -> None:  # fmt: skip
    """Mark the labels, and pairs of labels, that break the scheme."""
    for j in range(tags.size):
        first[j] = _wrong(_OUT, -1, tags[j], types[j], scheme)
        last[j] = _unfinished(tags[j], scheme)
        for i in range(tags.size):
            pairs[i, j] = _wrong(tags[i], types[i], tags[j], types[j], scheme)


@dataclass(frozen=True, eq=False, slots=True)
class Breaks:
    """What breaks a coding: labels at the start and at the end of a sentence, and pairs of labels."""

    first: NDArray[np.bool_]  # (labels,)
    pairs: NDArray[np.bool_]  # (labels, labels): [previous, current]
    last: NDArray[np.bool_]  # (labels,)


def breaks(names: Sequence[str], scheme: LabelCoding) -> Breaks | None:
    """Return what breaks a coding, for labels of these names. None if some do not belong to the coding."""
    if not {name.partition("-")[0] for name in names} <= _KNOWN[scheme]:
        return None
    tags, types = _codes(names)
    count = len(names)
    found = Breaks(np.empty(count, np.bool_), np.empty((count, count), np.bool_), np.empty(count, np.bool_))
    _mark_breaks(tags, types, _rule(scheme), found.first, found.pairs, found.last)
    return found


def check_labels(labels: Column, offsets: Places) -> LabelCheck:
    """Recognise the coding of labels by their tags, and find the labels that break it."""
    names = labels.vocabulary.strings()
    found = {name.partition("-")[0] for name in names}
    scheme = _recognised(found)
    if scheme is None:
        return NOT_CHECKED
    if scheme != "iob2":
        return _checked(labels, offsets, scheme)
    as_iob2 = _checked(labels, offsets, "iob2")
    if as_iob2.fault_count:
        # IOB1 has the same tags. It is chosen only if it has no faults.
        as_iob1 = _checked(labels, offsets, "iob1")
        return as_iob1 if as_iob1.fault_count == 0 else as_iob2
    return as_iob2


def _recognised(found: set[str]) -> LabelCoding | None:
    """Return the coding with these tags; iob2 means iob1 or iob2."""
    if not found & {"B", "I"} or not (found <= _BILOU_TAGS or found <= _OTHER_TAGS):
        return None
    if found & {"L", "U"}:
        return "bilou"
    if not found & {"E", "S", "M", "B2", "B3"}:
        return "iob2"
    if not found & {"B", "S"}:
        # I and E without B are the IOE schemes, in which any label may follow any other.
        return None
    return "bioes" if "I" in found or not found & {"M", "B2", "B3"} else "bmes"


def _checked(labels: Column, offsets: Places, scheme: LabelCoding) -> LabelCheck:
    names = labels.vocabulary.strings()
    tags, types = _codes(names)
    places = np.empty((MAX_FAULT_PLACES, 2), np.int64)
    count = _label_faults(labels.ids, offsets, tags, types, _rule(scheme), places)
    chosen = places[: min(count, MAX_FAULT_PLACES)].tolist()
    return LabelCheck(scheme, count, _described(labels.ids, offsets, names, chosen))


def _codes(names: Sequence[str]) -> tuple[Ids, Ids]:
    """Return (the meaning of the tag, the number of the type) of each label."""
    parts = [name.partition("-") for name in names]
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(kind for _, _, kind in parts))}
    tags = readonly(np.array([_TAG_CODES.get(tag, _OUT) for tag, _, _ in parts], np.int32), np.int32)
    return tags, readonly(np.array([kinds[kind] for _, _, kind in parts], np.int32), np.int32)


def _rule(scheme: LabelCoding) -> int:
    return {"iob1": _IOB1, "iob2": _IOB2}.get(scheme, _CLOSED)


def _described(
    ids: Ids, offsets: Places, names: Sequence[str], places: list[list[int]]
) -> tuple[LabelFault, ...]:
    faults = []
    for sentence, token in places:
        at = int(offsets[sentence]) + token
        previous = names[ids[at - 1]] if token else None
        faults.append(LabelFault(sentence, token, names[ids[at]], previous))
    return tuple(faults)


@dataclass(frozen=True, slots=True)
class Recoded:
    """A corpus with its labels in the chosen coding, and the number of repaired faults."""

    corpus: Corpus
    repaired: int


def recode(corpus: Corpus, coding: LabelCoding | None, *, repair: bool) -> Recoded:
    """Convert the labels to `coding` (None keeps their own). Faults raise `Invalid` unless `repair` is true."""
    labels = corpus.labels
    if labels is None or (coding is None and not repair):
        return Recoded(corpus, 0)
    checked = check_labels(labels, corpus.offsets)
    if checked.scheme is None:
        raise Invalid(
            "The labels are not in a known coding of chunks, so they cannot be converted or repaired. "
            "Leave out `labels` and `repair`.",
            [Fault("The labels are not those of iob1, iob2, bioes, bilou or bmes.", parameter="labels")],
            code="unknown_label_coding",
        )
    if checked.fault_count and not repair:
        raise _faulty(checked)
    if not checked.fault_count and coding in (None, checked.scheme):
        return Recoded(corpus, 0)
    column = convert(labels, corpus.offsets, coding or checked.scheme)
    return Recoded(replace(corpus, labels=column), checked.fault_count)


def _faulty(checked: LabelCheck) -> Invalid:
    faults = [
        Fault(
            f"sentence {fault.sentence}, token {fault.token} (counted from 0): {fault.label} "
            + (f"after {fault.previous}" if fault.previous else "at the start of a sentence")
        )
        for fault in checked.faults
    ]
    count = "1 label breaks its" if checked.fault_count == 1 else f"{checked.fault_count} labels break their"
    return Invalid(
        f"{count} coding. Correct the labels, or set the option repair=true.", faults, code="label_faults"
    )


def convert(labels: Column, offsets: Places, coding: LabelCoding) -> Column:
    """Return the same chunks in another coding. Faults are interpreted as the scorer does."""
    names = labels.vocabulary.strings()
    closed = _recognised({name.partition("-")[0] for name in names}) in ("bioes", "bilou", "bmes")
    chunks = Chunks.of(names, labels.ids, offsets, coded=True, closed=closed)
    first, last, inside, types = chunks.first, chunks.last, chunks.inside, chunks.types
    code = np.full(labels.ids.size, _INSIDE, np.int64)
    code[last] = _END
    code[first] = _BEGIN
    code[first & last] = _SINGLE
    if coding == "iob1":
        # B only directly after a chunk of the same type, in the same sentence.
        beside = np.zeros(code.size, np.bool_)
        beside[1:] = last[:-1] & first[1:] & (types[:-1] == types[1:])
        beside[offsets[:-1][np.diff(offsets) > 0]] = False
        code[first & ~beside] = _INSIDE
    codes = np.where(inside, types * 5 + code, _OUT)
    found, ids = numbered(codes)
    names = [_name(code, chunks.type_names, coding) for code in found.tolist()]
    if len(set(names)) < len(names):
        # Several codes have the same label, such as the inside and the end of a chunk in iob2.
        distinct = list(dict.fromkeys(names))
        ids = np.array([distinct.index(name) for name in names], np.int32)[ids]
        names = distinct
    return Column(labels.name, Vocabulary.from_strings(names), ids)


def _name(code: int, type_names: Sequence[str], coding: LabelCoding) -> str:
    kind, position = divmod(code, 5)
    if position == _OUT:
        return "O"
    tag = _WRITTEN[coding][position - 1]
    return f"{tag}-{type_names[kind]}" if type_names[kind] else tag


def warm() -> None:
    """Compile the kernels of this module, or load them from the cache."""
    empty = readonly(np.empty(0, np.int32), np.int32)
    offsets = readonly(np.zeros(1, np.int64), np.int64)
    _label_faults(empty, offsets, empty, empty, _IOB2, np.empty((0, 2), np.int64))
    breaks(["O"], "iob2")
