"""Why a word got its head and its relation: the weights of the choice and of the most probable other one.

Scores are sums of the shown weights. The difference of the scores of two relations is their log odds. That of two heads
is not, because a tree has further arcs: exchanging the head can force others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from tagsmith.core.model.explanation import weight_of
from tagsmith.core.model.parser import Parsed
from tagsmith.core.model.parsing.scoring import marginals_of, rows_of
from tagsmith.core.model.parsing.weights import Floats, ParsingScratch, parsing_scratch
from tagsmith.core.model.tagger import Coded, Tagger


@dataclass(frozen=True, slots=True)
class HeadCandidate:
    """A possible head of a word, and the weights for and against it."""

    head: int  # number of a word of the sentence, from 1; 0 is the root
    probability: float  # the marginal of the arc
    #: The sum of all weights below.
    score: float
    features: list[str]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class RelationCandidate:
    """A possible relation of a word to its chosen head, and the weights for and against it."""

    relation: str
    probability: float  # among all relations, given the arc
    #: The sum of all weights below.
    score: float
    features: list[str]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class ArcExplanation:
    """The chosen arc into one word, the most probable other head, and the same for its relation."""

    sentence: int
    token: int
    head: HeadCandidate
    runner_up: HeadCandidate | None
    relation: RelationCandidate | None  # None if the model has no relations
    other_relation: RelationCandidate | None


def explain_arcs(
    tagger: Tagger, coded: Coded, parsed: Parsed, places: Sequence[tuple[int, int]]
) -> Iterator[ArcExplanation]:
    """Explain the heads of tokens, given as (sentence, token within it). `parsed` are the trees of `coded`."""
    s = parsing_scratch(tagger.arcs, coded.longest)
    sums: tuple[int, Floats] | None = None
    for sentence, token in places:
        if sums is None or sums[0] != sentence:
            sums = sentence, _marginals(tagger, coded, sentence, s)
        yield _explained(tagger, coded, parsed, sentence, token, sums[1], s)


def in_entry(explained: ArcExplanation, before: int) -> ArcExplanation:
    """Return an explanation whose heads count from the first token of a text, which is `before` tokens earlier."""

    def moved(candidate: HeadCandidate) -> HeadCandidate:
        return replace(candidate, head=candidate.head + before) if candidate.head else candidate

    other = explained.runner_up
    return replace(explained, head=moved(explained.head), runner_up=None if other is None else moved(other))


def _marginals(tagger: Tagger, coded: Coded, sentence: int, s: ParsingScratch) -> Floats:
    """Return the probability of each arc of a sentence, at [head, modifier]."""
    begin, end = coded.offsets[sentence : sentence + 2].tolist()
    rules = tagger.model.trees
    assert rules is not None
    marginals_of(tagger.arcs, rules, coded.codes, begin, end, s)
    side = end - begin + 1
    return s.solver.marginals[: side * side].reshape(side, side).copy()


def _explained(
    tagger: Tagger, coded: Coded, parsed: Parsed, sentence: int, token: int, sums: Floats, s: ParsingScratch
) -> ArcExplanation:
    begin, modifier = int(coded.offsets[sentence]), token + 1
    head, relation = int(parsed.heads[begin + token]), int(parsed.relations[begin + token])
    others = sums[:, modifier].copy()
    others[[head, modifier]] = 0
    second = int(np.argmax(others))

    def rows(of: int) -> list[int]:
        """Return the attributes of the arc from a head."""
        end = int(coded.offsets[sentence + 1])
        count = rows_of(tagger.arcs, coded.codes, begin, end, of, modifier, s)
        found: list[int] = s.rows[:count].tolist()
        return found

    def candidate(of: int) -> HeadCandidate:
        return HeadCandidate(of, float(sums[of, modifier]), *_weighed(tagger, rows(of), 0))

    chosen, other = _relations(tagger, rows(head), relation)
    runner_up = candidate(second) if others[second] > 0 else None
    return ArcExplanation(sentence, token, candidate(head), runner_up, chosen, other)


def _relations(
    tagger: Tagger, rows: list[int], relation: int
) -> tuple[RelationCandidate | None, RelationCandidate | None]:
    """Return the chosen relation of an arc with these attributes, and the best other one."""
    labels = range(1, len(tagger.model.labels))
    if not labels:
        return None, None
    scores = [sum(weight_of(tagger.model.attributes, row, label) for row in rows) for label in labels]
    total = sum(exp(score - max(scores)) for score in scores)

    def candidate(label: int) -> RelationCandidate:
        probability = exp(scores[label - 1] - max(scores)) / total
        return RelationCandidate(tagger.model.labels[label], probability, *_weighed(tagger, rows, label))

    others = [label for label in labels if label != relation]
    second = max(others, key=lambda label: scores[label - 1], default=None)
    return candidate(relation), None if second is None else candidate(second)


def _weighed(tagger: Tagger, rows: list[int], label: int) -> tuple[float, list[str], list[float]]:
    """Return the sum of the weights of attributes with a label, and the attributes and weights, strongest first."""
    model = tagger.model
    parts = [(weight_of(model.attributes, row, label), row) for row in rows]
    parts = sorted((part for part in parts if part[0]), key=lambda part: (-abs(part[0]), part[1]))
    weights = [weight for weight, _ in parts]
    return sum(weights), [model.attribute_name(row) for _, row in parts], weights
