"""Codings of chunks as labels: recognise one, check it, change it into another.

| coding | a chunk of one | of three | beside another of its type |
|---|---|---|---|
| iob1 | I | I I I | begins with B, else with I |
| iob2 | B | B I I | B I I |
| bioes | S | B I E | B I E |
| bilou | U | B I L | B I L |
| bmes | S | B M E | B M E |

A label is such a tag, and a type after a hyphen where chunks have types; O stands outside. Chunks are read by the rules
of `core.evaluate.chunks`, those of the scorer, so that changing the coding never changes what is scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import Ids, Places, numbered
from core.corpus.corpus import Column, Corpus
from core.corpus.vocabulary import Vocabulary
from core.errors import Fault, Invalid
from core.evaluate.chunks import Chunks
from core.jit import inlined, kernel, readonly

LabelCoding = Literal["iob1", "iob2", "bioes", "bilou", "bmes"]

#: Places named in full; the count goes on.
MAX_FAULT_PLACES = 100

_OUT, _BEGIN, _INSIDE, _END, _SINGLE = range(5)

#: What tags mean, B2 and B3 those of word segmentation.
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

#: Tags for a token at the beginning, inside, at the end and alone; by coding.
_WRITTEN: dict[LabelCoding, tuple[str, str, str, str]] = {
    "iob1": ("B", "I", "I", "B"),
    "iob2": ("B", "I", "I", "B"),
    "bioes": ("B", "I", "E", "S"),
    "bilou": ("B", "I", "L", "U"),
    "bmes": ("B", "M", "E", "S"),
}

#: The tags of each coding; those of bmes with B2 and B3 of word segmentation.
_KNOWN: dict[LabelCoding, frozenset[str]] = {
    **{coding: frozenset({"O", *written}) for coding, written in _WRITTEN.items()},
    "bmes": frozenset({"O", "B", "B2", "B3", "M", "E", "S"}),
}

# What a label may follow.
_IOB1, _IOB2, _CLOSED = range(3)


@dataclass(frozen=True, slots=True)
class LabelFault:
    """A label that cannot stand where it does; sentence and token count from 0."""

    sentence: int
    token: int
    label: str
    previous: str | None  # None at the start of a sentence


@dataclass(frozen=True, slots=True)
class Checked:
    """The coding that labels are in, None where they are of no known one, and what breaks it."""

    scheme: LabelCoding | None
    fault_count: int
    faults: tuple[LabelFault, ...]  # the first `MAX_FAULT_PLACES`


NOT_CHECKED = Checked(None, 0, ())


@inlined
def _wrong(previous_tag: int, previous_type: int, tag: int, kind: int, scheme: int) -> bool:
    """Whether a label breaks the scheme where it stands behind another; at the start that other is outside."""
    opened = previous_tag in (_BEGIN, _INSIDE)
    goes_on = tag in (_INSIDE, _END)
    continued = opened and kind == previous_type
    if scheme == _IOB1:
        # B only where a chunk of the same type has just ended.
        return tag == _BEGIN and not continued
    if scheme == _IOB2:
        return tag == _INSIDE and not continued
    return goes_on != opened or (goes_on and not continued)


@inlined
def _unfinished(tag: int, scheme: int) -> bool:
    """Whether a sentence cannot end with a label."""
    return scheme == _CLOSED and tag in (_BEGIN, _INSIDE)


@kernel
def _label_faults(
    ids: Ids, offsets: Places, tags: Ids, types: Ids, scheme: int, places: NDArray[np.int64]
) -> int:
    """Count labels that break the scheme; the first ones go into `places` as (sentence, token in it)."""
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
def _break(
    tags: Ids, types: Ids, scheme: int, first: NDArray[np.bool_], pairs: NDArray[np.bool_], last: NDArray[np.bool_]
) -> None:  # fmt: skip
    for j in range(tags.size):
        first[j] = _wrong(_OUT, -1, tags[j], types[j], scheme)
        last[j] = _unfinished(tags[j], scheme)
        for i in range(tags.size):
            pairs[i, j] = _wrong(tags[i], types[i], tags[j], types[j], scheme)


@dataclass(frozen=True, eq=False, slots=True)
class Breaks:
    """What breaks a coding: labels at the start and at the end of a sentence, and one behind another."""

    first: NDArray[np.bool_]  # (labels,)
    pairs: NDArray[np.bool_]  # (labels, labels): the second behind the first
    last: NDArray[np.bool_]  # (labels,)


def breaks(names: Sequence[str], scheme: LabelCoding) -> Breaks | None:
    """What labels with these names may not do in a coding; None when they are not all of it."""
    if not {name.partition("-")[0] for name in names} <= _KNOWN[scheme]:
        return None
    tags, types = _codes(names)
    count = len(names)
    found = Breaks(np.empty(count, np.bool_), np.empty((count, count), np.bool_), np.empty(count, np.bool_))
    _break(tags, types, _rule(scheme), found.first, found.pairs, found.last)
    return found


def check_labels(labels: Column, offsets: Places) -> Checked:
    """Recognise the coding by the tags there are, and find what breaks it."""
    names = labels.vocabulary.strings()
    found = {name.partition("-")[0] for name in names}
    scheme = _recognised(found)
    if scheme is None:
        return NOT_CHECKED
    if scheme != "iob2":
        return _checked(labels, offsets, scheme)
    as_iob2 = _checked(labels, offsets, "iob2")
    if as_iob2.fault_count:
        # The same tags: one of the two that has no fault, if there is one.
        as_iob1 = _checked(labels, offsets, "iob1")
        return as_iob1 if as_iob1.fault_count == 0 else as_iob2
    return as_iob2


def _recognised(found: set[str]) -> LabelCoding | None:
    """The coding that has these tags; iob2 stands for iob1 too."""
    if not found & {"B", "I"} or not (found <= _BILOU_TAGS or found <= _OTHER_TAGS):
        return None
    if found & {"L", "U"}:
        return "bilou"
    if not found & {"E", "S", "M", "B2", "B3"}:
        return "iob2"
    if not found & {"B", "S"}:
        # I and E alone are the IOE schemes, in which any label may follow any.
        return None
    return "bioes" if "I" in found or not found & {"M", "B2", "B3"} else "bmes"


def _checked(labels: Column, offsets: Places, scheme: LabelCoding) -> Checked:
    names = labels.vocabulary.strings()
    tags, types = _codes(names)
    places = np.empty((MAX_FAULT_PLACES, 2), np.int64)
    count = _label_faults(labels.ids, offsets, tags, types, _rule(scheme), places)
    chosen = places[: min(count, MAX_FAULT_PLACES)].tolist()
    return Checked(scheme, count, _described(labels.ids, offsets, names, chosen))


def _codes(names: Sequence[str]) -> tuple[Ids, Ids]:
    """What the tag of each label means, and the number of its type."""
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
    """A corpus with its labels in the coding asked for, and how many faults had to be repaired for it."""

    corpus: Corpus
    repaired: int


def recode(corpus: Corpus, coding: LabelCoding | None, *, repair: bool) -> Recoded:
    """Put the labels into `coding` (None: the one they are in), repairing faults only if told to."""
    labels = corpus.labels
    if labels is None or (coding is None and not repair):
        return Recoded(corpus, 0)
    checked = check_labels(labels, corpus.offsets)
    if checked.scheme is None:
        raise Invalid(
            "The labels are not in a coding of chunks.",
            [Fault("tags other than those of iob1, iob2, bioes, bilou or bmes", parameter="labels")],
            code="unknown_label_coding",
        )
    if checked.fault_count and not repair:
        raise _faulty(checked)
    if not checked.fault_count and coding in (None, checked.scheme):
        return Recoded(corpus, 0)
    column = converted(labels, corpus.offsets, coding or checked.scheme)
    return Recoded(replace(corpus, labels=column), checked.fault_count)


def _faulty(checked: Checked) -> Invalid:
    faults = [
        Fault(
            f"sentence {fault.sentence}, token {fault.token}, from 0: {fault.label} "
            + (f"after {fault.previous}" if fault.previous else "at the start of a sentence")
        )
        for fault in checked.faults
    ]
    count = "1 fault" if checked.fault_count == 1 else f"{checked.fault_count} faults"
    return Invalid(
        f"The labels have {count}; repair=true reads them as the scorer does.", faults, code="label_faults"
    )


def converted(labels: Column, offsets: Places, coding: LabelCoding) -> Column:
    """The same chunks in another coding, whatever coding they are in; faults are read as the scorer reads them."""
    names = labels.vocabulary.strings()
    closed = _recognised({name.partition("-")[0] for name in names}) in ("bioes", "bilou", "bmes")
    chunks = Chunks.of(names, labels.ids, offsets, closed=closed)
    first, last, inside, types = chunks.first, chunks.last, chunks.inside, chunks.types
    code = np.full(labels.ids.size, _INSIDE, np.int64)
    code[last] = _END
    code[first] = _BEGIN
    code[first & last] = _SINGLE
    if coding == "iob1":
        # B only where a chunk of the same type ends right before, in the same sentence.
        beside = np.zeros(code.size, np.bool_)
        beside[1:] = last[:-1] & first[1:] & (types[:-1] == types[1:])
        beside[offsets[:-1][np.diff(offsets) > 0]] = False
        code[first & ~beside] = _INSIDE
    codes = np.where(inside, types * 5 + code, _OUT)
    found, ids = numbered(codes)
    names = [_name(code, chunks.type_names, coding) for code in found.tolist()]
    if len(set(names)) < len(names):
        # Two codes are one label, such as the end and the inside of a chunk in iob2.
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
    """Compile, or load from the cache, the kernels of this module."""
    empty = readonly(np.empty(0, np.int32), np.int32)
    offsets = readonly(np.zeros(1, np.int64), np.int64)
    _label_faults(empty, offsets, empty, empty, _IOB2, np.empty((0, 2), np.int64))
    breaks(["O"], "iob2")
