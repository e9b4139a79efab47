"""What features a spec makes, without training: of one sentence by name, of a corpus by number."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.corpus.corpus import Column, Corpus
from core.corpus.vocabulary import Vocabulary
from core.features.columns import Coder, Codes
from core.features.index import UNKNOWN, Attributes, Slots, boundary_row, build, code_at, slots_of
from core.features.matching import NO_LEXICONS, Lexicons
from core.features.settled import Features, Place
from core.features.template import Template

#: Tokens whose pairs of attribute and label are marked at a time: some 20 MB of places.
_SLICE_TOKENS = 100_000


@dataclass(frozen=True)
class TemplateCount:
    """How many attributes a template makes in a corpus, and how often they occur there."""

    template: str
    attributes: int
    occurrences: int


@dataclass(frozen=True)
class Counts:
    """What a corpus would produce."""

    tokens: int
    labels: int
    attributes: int
    parameters: int  # weights to learn: of attributes with labels, and of label pairs
    templates: tuple[TemplateCount, ...]


def corpus_of(rows: Sequence[Sequence[str]], names: Sequence[str]) -> Corpus:
    """One sentence as a corpus without labels; every row has a value for each name."""
    columns = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        numbers = {value: i for i, value in enumerate(dict.fromkeys(values))}
        ids = np.array([numbers[value] for value in values], np.int32)
        columns.append(Column(name, Vocabulary.from_strings(list(numbers)), ids))
    return Corpus(tuple(columns), None, np.array([0, len(rows)], np.int64))


def names(features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS) -> list[list[str]]:
    """The features of every token of a corpus by name, in the order of the templates. For a few sentences."""
    coder, codes = Coder.trained(features, corpus, lexicons)
    vocabularies = coder.vocabularies
    slots = slots_of(features, vocabularies)
    out = []
    for begin, end in pairwise(corpus.offsets.tolist()):
        for token in range(begin, end):
            found = []
            for number, template in enumerate(features.unigrams):
                values = _values(slots, number, codes, begin, end, token)
                if UNKNOWN not in values:
                    found.append(named(template, features.slots[number], vocabularies, values))
            out.append(found)
    return out


def named(
    template: Template, places: Sequence[Place], vocabularies: Sequence[Vocabulary], values: Sequence[int]
) -> str:
    """The name of the feature that a template makes of the codes of its values."""
    return template.joined(
        [
            vocabularies[place.column][code]
            if code >= 0
            else "?"
            if code == UNKNOWN
            else template.boundary(boundary_row(code))
            for place, code in zip(places, values, strict=True)
        ]
    )


def _values(slots: Slots, number: int, codes: Codes, begin: int, end: int, token: int) -> list[int]:
    return [
        int(code_at(slots, s, codes, begin, end, token))
        for s in range(slots.starts[number], slots.starts[number + 1])
    ]


def count(features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS) -> Counts:
    """Count what training on a corpus would have weights for."""
    coder, codes = Coder.trained(features, corpus, lexicons)
    slots = slots_of(features, coder.vocabularies)
    index, attributes = build(slots, codes, corpus.offsets, features.cutoff)
    template_of = index.seen_at % len(slots.seeds)
    size, labels = index.size, 0 if corpus.labels is None else len(np.unique(corpus.labels.ids))
    made = np.bincount(template_of, minlength=len(slots.seeds)).tolist()
    occurrences = np.bincount(template_of, weights=index.counts, minlength=len(slots.seeds)).tolist()
    return Counts(
        corpus.tokens,
        labels,
        size,
        _seen(corpus, attributes, size, edges=features.edges)
        if features.seen_pairs
        else size * labels + labels * labels * features.edges,
        tuple(
            TemplateCount(template.name, made[i], int(occurrences[i]))
            for i, template in enumerate(features.unigrams)
        ),
    )


def _seen(corpus: Corpus, attributes: Attributes, size: int, *, edges: bool) -> int:
    """Pairs of attribute and label, and of adjacent labels, that occur together."""
    if corpus.labels is None:
        return 0
    _, gold = np.unique(corpus.labels.ids, return_inverse=True)
    labels = int(gold.max(initial=-1)) + 1
    marks = np.zeros(size * labels, np.bool_)
    for begin in range(0, corpus.tokens, _SLICE_TOKENS):
        starts = attributes.starts[begin : begin + _SLICE_TOKENS + 1]
        label = np.repeat(gold[begin : begin + _SLICE_TOKENS], np.diff(starts))
        marks[attributes.rows[starts[0] : starts[-1]].astype(np.int64) * labels + label] = True
    pairs = gold[:-1] * labels + gold[1:]
    within = np.ones(len(pairs), np.bool_)
    within[corpus.offsets[1:-1] - 1] = False
    return int(np.count_nonzero(marks)) + edges * len(np.unique(pairs[within]))
