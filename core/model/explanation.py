"""Why a token got its label: the features and transitions that spoke for it, and those for the next probable one.

Scores are those of the token between the labels chosen for its neighbours. The difference of two labels' scores is the
logarithm of their odds there, so that what is shown adds up to what decided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel
from core.model.decoding import Decoded
from core.model.model import Attributes
from core.model.tagger import Coded, Lookup, Scratch, Tagger, find_attributes


@dataclass(frozen=True, slots=True)
class Transitions:
    """Weights of label pairs, in parallel: the pair, the feature it is joined with if any, the weight."""

    before: list[str]
    after: list[str]
    features: list[str | None]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A label that a token could have, and all that speaks for and against it."""

    tag: str
    probability: float
    #: Of all that follows, the sum.
    score: float
    features: list[str]
    weights: list[float]  # of each feature, times its value
    transitions: Transitions


@dataclass(frozen=True, slots=True)
class Explanation:
    """Of one token: the label chosen, and the most probable other; None when there is none."""

    sentence: int
    token: int
    chosen: Candidate
    runner_up: Candidate | None


@kernel
def _attributes(
    lookup: Lookup, codes: NDArray[np.int32], begins: NDArray[np.int64], ends: NDArray[np.int64],
    tokens: NDArray[np.int64], s: Scratch, out: NDArray[np.int64],
) -> None:  # fmt: skip
    """The attributes of some tokens into (tokens, templates), -1 where a template has none."""
    for i in range(tokens.shape[0]):
        find_attributes(lookup, codes, begins[i], ends[i], tokens[i], s, -1)
        for template in range(out.shape[1]):
            out[i, template] = s.found[template]


def explain(
    tagger: Tagger, coded: Coded, decoded: Decoded, places: Sequence[tuple[int, int]]
) -> Iterator[Explanation]:
    """Explain tokens, given as (sentence, token in it), of what was decoded with its distributions."""
    sentences = np.array([sentence for sentence, _ in places], np.int64)
    begins, ends = coded.offsets[:-1][sentences], coded.offsets[1:][sentences]
    tokens = begins + np.array([token for _, token in places], np.int64)
    # The transition out of a token is that into the next.
    after = np.minimum(tokens + 1, ends - 1)
    single, into, out_of = (
        _found(tagger, lookup, coded, begins, ends, at)
        for lookup, at in (
            (tagger.weights.lookup, tokens),
            (tagger.rich.lookup, tokens),
            (tagger.rich.lookup, after),
        )
    )
    for i, (sentence, token) in enumerate(places):
        at = int(tokens[i])
        distribution = decoded.distributions[at]
        own = _own(coded, at, single[i])
        labels = decoded.labels
        before = int(labels[at - 1]) if token else None
        behind = int(labels[at + 1]) if at + 1 < ends[i] else None

        def candidate(y: int) -> Candidate:
            return _candidate(
                tagger,
                y,
                float(distribution[y]),  # noqa: B023  # called within the turn of the loop
                own,  # noqa: B023
                [(before, y, into[i]), (y, behind, out_of[i])],  # noqa: B023
            )

        chosen = int(labels[at])
        others = distribution.copy()
        others[chosen] = 0
        second = int(np.argmax(others))
        yield Explanation(
            sentence, token, candidate(chosen), candidate(second) if others[second] > 0 else None
        )


def _found(
    tagger: Tagger,
    lookup: Lookup,
    coded: Coded,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    tokens: NDArray[np.int64],
) -> NDArray[np.int64]:
    out = np.empty((len(tokens), len(lookup.slots.seeds)), np.int64)
    _attributes(lookup, coded.codes, begins, ends, tokens, tagger.scratch(1), out)
    return out


def _own(coded: Coded, token: int, found: NDArray[np.int64]) -> list[tuple[int, float]]:
    """The attributes of a token, with their values."""
    own = [(attribute, 1.0) for attribute in found.tolist() if attribute >= 0]
    several = coded.several
    if several.starts.size > 1:
        first, last = int(several.starts[token]), int(several.starts[token + 1])
        values = several.values[first:last].tolist() if several.values.size else [1.0] * (last - first)
        own += zip(several.ids[first:last].tolist(), values, strict=True)
    return own


def _candidate(
    tagger: Tagger,
    y: int,
    probability: float,
    own: Sequence[tuple[int, float]],
    edges: Sequence[tuple[int | None, int | None, NDArray[np.int64]]],
) -> Candidate:
    model = tagger.model
    parts = [(value * _weight(model.attributes, attribute, y), attribute) for attribute, value in own]
    parts = sorted((part for part in parts if part[0]), key=lambda part: (-abs(part[0]), part[1]))
    transitions = Transitions([], [], [], [])
    for before, after, attributes in edges:
        if before is None or after is None:
            continue
        weighed: list[tuple[str | None, float]] = [(None, float(model.transitions[before, after]))]
        if model.edges is not None:
            pair = before * len(model.labels) + after
            weighed += [
                (model.edge_attribute_name(attribute), _weight(model.edges.attributes, attribute, pair))
                for attribute in attributes.tolist()
                if attribute >= 0
            ]
        for name, weight in weighed:
            if weight:
                transitions.before.append(model.labels[before])
                transitions.after.append(model.labels[after])
                transitions.features.append(name)
                transitions.weights.append(weight)
    weights = [weight for weight, _ in parts]
    return Candidate(
        model.labels[y],
        probability,
        sum(weights) + sum(transitions.weights),
        [model.attribute_name(attribute) for _, attribute in parts],
        weights,
        transitions,
    )


def _weight(a: Attributes, attribute: int, label: int) -> float:
    """The weight of an attribute with a label, or a pair of them; nothing is stored of those that are zero."""
    first, last = int(a.starts[attribute]), int(a.starts[attribute + 1])
    place = first + int(np.searchsorted(a.labels[first:last], label))
    return float(a.weights[place]) if place < last and a.labels[place] == label else 0.0
