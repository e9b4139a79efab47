"""Why a token got its label: the weights of the chosen label and of the most probable other one.

Scores are those of the token between the chosen labels of its neighbours. The difference of two labels' scores is their
log odds at this place, so the shown weights add up to the decision.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import kernel
from tagsmith.core.model.decoding import Decoded
from tagsmith.core.model.model import ModelAttributes
from tagsmith.core.model.tagger import AttributeLookup, Coded, Tagger, TaggingScratch, find_attributes


@dataclass(frozen=True, slots=True)
class Transitions:
    """Weights of label pairs, as parallel lists. `features` is None for the pair without a feature."""

    before: list[str]
    after: list[str]
    features: list[str | None]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible label of a token, and the weights for and against it."""

    tag: str
    probability: float
    #: The sum of all weights below.
    score: float
    features: list[str]
    weights: list[float]  # weight of each feature, times its value
    transitions: Transitions


@dataclass(frozen=True, slots=True)
class Explanation:
    """The chosen label of one token, and the most probable other label if there is one."""

    sentence: int
    token: int
    chosen: Candidate
    runner_up: Candidate | None


@kernel
def _attributes(
    lookup: AttributeLookup, codes: NDArray[np.int32], begins: NDArray[np.int64], ends: NDArray[np.int64],
    tokens: NDArray[np.int64], s: TaggingScratch, out: NDArray[np.int64],
) -> None:  # fmt: skip
    """Fill `out`, (tokens, templates), with the attributes of tokens; -1 where the model has none."""
    for i in range(tokens.shape[0]):
        find_attributes(lookup, codes, begins[i], ends[i], tokens[i], s, -1)
        for template in range(out.shape[1]):
            out[i, template] = s.found[template]


def explain(
    tagger: Tagger, coded: Coded, decoded: Decoded, places: Sequence[tuple[int, int]]
) -> Iterator[Explanation]:
    """Explain the labels of tokens, given as (sentence, token within it).

    `decoded` must include the distributions.
    """
    sentences = np.array([sentence for sentence, _ in places], np.int64)
    begins, ends = coded.offsets[:-1][sentences], coded.offsets[1:][sentences]
    tokens = begins + np.array([token for _, token in places], np.int64)
    # The transition out of a token is the transition into the next one.
    after = np.minimum(tokens + 1, ends - 1)
    single, into, out_of = (
        _found(tagger, lookup, coded, begins, ends, at)
        for lookup, at in (
            (tagger.weights.lookup, tokens),
            (tagger.edge_weights.lookup, tokens),
            (tagger.edge_weights.lookup, after),
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
                float(distribution[y]),  # noqa: B023  # called within the same iteration
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
    lookup: AttributeLookup,
    coded: Coded,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    tokens: NDArray[np.int64],
) -> NDArray[np.int64]:
    out = np.empty((len(tokens), len(lookup.slots.seeds)), np.int64)
    _attributes(lookup, coded.codes, begins, ends, tokens, tagger.scratch(1), out)
    return out


def _own(coded: Coded, token: int, found: NDArray[np.int64]) -> list[tuple[int, float]]:
    """Return the attributes of a token and their values."""
    own = [(attribute, 1.0) for attribute in found.tolist() if attribute >= 0]
    if coded.bag_starts.size > 1:
        first, last = int(coded.bag_starts[token]), int(coded.bag_starts[token + 1])
        values = coded.bag_values[first:last].tolist() if coded.bag_values.size else [1.0] * (last - first)
        own += zip(coded.bag_rows[first:last].tolist(), values, strict=True)
    return own


def _candidate(
    tagger: Tagger,
    y: int,
    probability: float,
    own: Sequence[tuple[int, float]],
    edges: Sequence[tuple[int | None, int | None, NDArray[np.int64]]],
) -> Candidate:
    model = tagger.model
    parts = [(value * weight_of(model.attributes, attribute, y), attribute) for attribute, value in own]
    parts = sorted((part for part in parts if part[0]), key=lambda part: (-abs(part[0]), part[1]))
    transitions = Transitions([], [], [], [])
    for before, after, attributes in edges:
        if before is None or after is None:
            continue
        weighed: list[tuple[str | None, float]] = [(None, float(model.transitions[before, after]))]
        if model.edges is not None:
            pair = before * len(model.labels) + after
            weighed += [
                (model.edge_attribute_name(attribute), weight_of(model.edges.attributes, attribute, pair))
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


def weight_of(a: ModelAttributes, attribute: int, label: int) -> float:
    """Return the weight of an attribute with a label or a label pair; weights of zero are not stored."""
    first, last = int(a.starts[attribute]), int(a.starts[attribute + 1])
    place = first + int(np.searchsorted(a.labels[first:last], label))
    return float(a.weights[place]) if place < last and a.labels[place] == label else 0.0
