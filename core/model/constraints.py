"""Constraints of users, by label names, translated for a model and its sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.spec import pointer
from tagsmith.core.corpus.labels.codings import LabelCoding, breaks
from tagsmith.core.inference.constraints import NEVER, Allowed, anything

#: At most this many faults are listed in one error.
_MAX_FAULTS = 100

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints on the labels of sentences."""

    #: For each sentence, a label or None per token; or None for the whole sentence.
    tags: Sequence[Sequence[str | None] | None] | None = None
    #: Pairs of labels of which the second must not follow the first.
    forbid: Sequence[tuple[str, str]] = ()
    #: A chunk coding that the labels must satisfy.
    valid: LabelCoding | None = None


def allowed_by(
    constraints: Constraints, labels: Sequence[str], offsets: NDArray[np.int64], at: Path = ("constraints",)
) -> Allowed:
    """Return the labellings that the constraints allow; raise Invalid, with pointers under `at`, if they do not fit."""
    numbers = {label: number for number, label in enumerate(labels)}
    allowed = anything(len(labels))
    pairs = allowed.pairs.reshape(len(labels), -1)
    if constraints.valid is not None:
        found = breaks(labels, constraints.valid)
        if found is None:
            reason = f"The labels of the model do not use {constraints.valid}: {', '.join(labels[:20])}."
            raise _unfit([Fault(reason, pointer=pointer((*at, "valid")))], "unknown_label_coding")
        pairs[:, : len(labels)][found.pairs] = NEVER
        allowed.first[: len(labels)][found.first] = NEVER
        allowed.last[: len(labels)][found.last] = NEVER
    _check_known(constraints.forbid, numbers, (*at, "forbid"))
    for before, after in constraints.forbid:
        pairs[numbers[before], numbers[after]] = NEVER
    if constraints.tags is None:
        return allowed
    return allowed._replace(fixed=_fixed(constraints.tags, numbers, offsets, (*at, "tags")))


def infeasible(sentences: Sequence[int] | NDArray[np.int64], name: str = "sentences") -> Invalid:
    """Make the error for sentences that have no labelling within the constraints.

    `sentences` are their numbers in the whole input.
    """
    faults = [
        Fault("No sequence of tags satisfies the constraints.", pointer=pointer((name, int(i))))
        for i in sentences[:_MAX_FAULTS]
    ]
    return _unfit(faults, "no_sequence_allowed")


def _fixed(
    tags: Sequence[Sequence[str | None] | None],
    numbers: Mapping[str, int],
    offsets: NDArray[np.int64],
    at: Path,
) -> NDArray[np.int32]:
    lengths = np.diff(offsets).tolist()
    if len(tags) != len(lengths):
        reason = f"There are {len(tags)} lists of tags for {len(lengths)} sentences."
        raise _unfit([Fault(reason, pointer=pointer(at))], "constraints_do_not_fit")
    faults = [
        Fault(f"There are {len(given)} tags for {length} tokens.", pointer=pointer((*at, i)))
        for i, (given, length) in enumerate(zip(tags, lengths, strict=True))
        if given is not None and len(given) != length
    ]
    if faults:
        raise _unfit(faults[:_MAX_FAULTS], "constraints_do_not_fit")
    _check_known([given or () for given in tags], numbers, at)
    fixed = np.full(int(offsets[-1]), -1, np.int32)
    for begin, given in zip(offsets.tolist(), tags, strict=False):
        if given:
            fixed[begin : begin + len(given)] = [-1 if tag is None else numbers[tag] for tag in given]
    return fixed


def _check_known(rows: Sequence[Sequence[str | None]], numbers: Mapping[str, int], at: Path) -> None:
    faults = [
        Fault(f"The model has no label {tag!r}.", pointer=pointer((*at, i, j)))
        for i, row in enumerate(rows)
        for j, tag in enumerate(row)
        if tag is not None and tag not in numbers
    ]
    if faults:
        raise _unfit(faults[:_MAX_FAULTS], "unknown_label")


def _unfit(faults: Sequence[Fault], code: str) -> Invalid:
    return Invalid("The constraints do not fit the model and the sentences.", faults, code=code)
