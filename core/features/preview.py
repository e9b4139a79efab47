"""What features a spec makes, without training: of one sentence by name, of a corpus by number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.corpus.bag import Cells
from core.corpus.corpus import Column, Corpus
from core.corpus.vocabulary import Vocabulary
from core.features.columns import Coder, Codes
from core.features.index import (
    UNKNOWN,
    Slots,
    boundary_row,
    build,
    code_at,
    edge_slots_of,
    slots_of,
)
from core.features.matching import NO_LEXICONS, Lexicons
from core.features.settled import Features, Place
from core.features.several import NO_CELLS, Family, attributes_of, learn_families
from core.features.template import Template

#: Tokens whose attributes and labels are paired at a time: some 20 MB of places.
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
    """The features of every token by name, in the order of the templates, those of label pairs last.

    For a few sentences.
    """
    coder, codes = Coder.trained(features, corpus, lexicons)
    vocabularies = coder.vocabularies
    kinds = _kinds(features, vocabularies)
    families, _ = learn_families(features.several, corpus, 1, 0)
    several = [
        (family, part)
        for family in families
        for part in _entries(family).of_tokens(family.cells(corpus, coder.base), corpus.offsets)
    ]
    out = []
    for begin, end in pairwise(corpus.offsets.tolist()):
        for token in range(begin, end):
            found = []
            for slots, templates, places in kinds:
                for number, template in enumerate(templates if token - begin >= slots.skipped else ()):
                    values = _values(slots, number, codes, begin, end, token)
                    if UNKNOWN not in values:
                        found.append(named(template, places[number], vocabularies, values))
            for family, part in several:
                entries = part.ids[part.starts[token] : part.starts[token + 1]].tolist()
                found += [family.spec.name(family.vocabulary[entry]) for entry in entries]
            out.append(found)
    return out


def _entries(family: Family) -> Family:
    """The family with its entries for attributes."""
    return replace(family, attributes=np.arange(len(family.vocabulary), dtype=np.int32))


def _kinds(
    features: Features, vocabularies: Sequence[Vocabulary]
) -> tuple[tuple[Slots, tuple[Template, ...], tuple[tuple[Place, ...], ...]], ...]:
    """Templates of single labels, and of label pairs."""
    return (
        (slots_of(features, vocabularies), features.unigrams, features.slots),
        (edge_slots_of(features, vocabularies), features.rich, features.edge_slots),
    )


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
    labels = 0
    gold = np.zeros(0, np.int64)
    if corpus.labels is not None:
        names_of, gold = np.unique(corpus.labels.ids, return_inverse=True)
        labels = len(names_of)
    pairs = label_pairs(gold, corpus.offsets, labels)
    # What a feature of each kind is joined with: at every token its label, or the pair that ends there.
    joined = ((gold, labels), (pairs, labels * labels))
    parameters = 0
    if features.edges:
        parameters += len(np.unique(pairs[pairs >= 0])) if features.seen_pairs else labels * labels
    size, rows = 0, []
    for (slots, templates, _), (joins, ways) in zip(
        _kinds(features, coder.vocabularies), joined, strict=True
    ):
        index, attributes = build(slots, codes, corpus.offsets, features.cutoff)
        template_of = index.seen_at % max(len(slots.seeds), 1)
        made = np.bincount(template_of, minlength=len(slots.seeds)).tolist()
        occurrences = np.bincount(template_of, weights=index.counts, minlength=len(slots.seeds)).tolist()
        cells, own = Cells(attributes.starts, attributes.rows, NO_CELLS.values), index.size
        rows += [TemplateCount(t.name, made[i], int(occurrences[i])) for i, t in enumerate(templates)]
        if slots.skipped == 0:
            families, own = learn_families(features.several, corpus, features.cutoff, own)
            cells = attributes_of(families, corpus, coder.base, cells)
            rows += [_family_count(family, cells) for family in families]
        size += own
        parameters += _seen(cells, joins, ways) if features.seen_pairs else own * ways
    return Counts(corpus.tokens, labels, size, parameters, tuple(rows))


def _family_count(family: Family, cells: Cells) -> TemplateCount:
    own = family.attributes[family.attributes >= 0]
    name = family.spec.before.partition(":")[0] or "attributes"
    return TemplateCount(name, len(own), int(np.count_nonzero(np.isin(cells.ids, own))))


def label_pairs(gold: NDArray[np.int64], offsets: NDArray[np.int64], labels: int) -> NDArray[np.int64]:
    """The pair of labels that ends at each token, -1 at the first of a sentence."""
    pairs = np.concatenate([[-1], gold[:-1] * labels + gold[1:]])[: len(gold)]
    pairs[offsets[:-1][offsets[:-1] < len(gold)]] = -1
    return np.asarray(pairs)


def _seen(attributes: Cells, joins: NDArray[np.int64], ways: int) -> int:
    """Attributes and labels, or pairs of labels, that occur together. Without labels there are none."""
    places = [
        np.unique(_places(attributes, joins, ways, begin)) for begin in range(0, len(joins), _SLICE_TOKENS)
    ]
    return len(np.unique(np.concatenate(places))) if places else 0


def _places(attributes: Cells, joins: NDArray[np.int64], ways: int, begin: int) -> NDArray[np.int64]:
    starts = attributes.starts[begin : begin + _SLICE_TOKENS + 1]
    join = np.repeat(joins[begin : begin + _SLICE_TOKENS], np.diff(starts))
    return np.asarray(attributes.ids[starts[0] : starts[-1]].astype(np.int64) * ways + join)
