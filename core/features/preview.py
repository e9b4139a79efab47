"""The features that a spec makes, without training: their names in a sentence, their counts in a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.bag import Cells
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.arc_index import build_arcs
from tagsmith.core.features.arc_values import Sites, arc_places_of, values_at
from tagsmith.core.features.arcs import ARC_VALUES, arc_slots_of
from tagsmith.core.features.columns.bags import BAG_NAME, NO_CELLS, BagIndex, attributes_of, learn_bags
from tagsmith.core.features.columns.coder import Coder, Codes
from tagsmith.core.features.columns.codes import UNKNOWN, boundary_row
from tagsmith.core.features.index import Slots, build, code_at, edge_slots_of, slots_of
from tagsmith.core.features.lexicon.lexicon import NO_LEXICONS, Lexicons
from tagsmith.core.features.resolved import Features, ResolvedSlot
from tagsmith.core.features.templates.template import Template

#: Tokens whose attributes and labels are paired at a time. This takes about 20 MB.
_SLICE_TOKENS = 100_000
#: The most templates times arcs whose features are named. This takes some seconds.
_MAX_ARC_FEATURES = 200_000


@dataclass(frozen=True)
class TemplateFeatures:
    """The number of attributes that a template makes in a corpus, and of their occurrences."""

    template: str
    attributes: int
    occurrences: int


@dataclass(frozen=True)
class PreviewCounts:
    """The size of the model that training on a corpus would make."""

    tokens: int
    labels: int  # of trees, relations
    attributes: int
    parameters: int  # the weights to learn, for attributes with labels and for label pairs
    templates: tuple[TemplateFeatures, ...]


def corpus_of(rows: Sequence[Sequence[str]], names: Sequence[str]) -> Corpus:
    """Make a corpus without labels from one sentence. Every row has one value per name."""
    columns = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        numbers = {value: i for i, value in enumerate(dict.fromkeys(values))}
        ids = np.array([numbers[value] for value in values], np.int32)
        columns.append(Column(name, Vocabulary.from_strings(list(numbers)), ids))
    return Corpus(tuple(columns), None, np.array([0, len(rows)], np.int64))


def names(features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS) -> list[list[str]]:
    """The names of the features of every token, in the order of the templates. Those of label pairs come last.

    For trees, those of every arc: into the first word from the root and from each other word, then into the second.
    This is slow, and meant for a few sentences.
    """
    if features.structure == "tree":
        return _arc_names(features, corpus, lexicons)
    coder, codes = Coder.trained(features, corpus, lexicons)
    vocabularies = coder.vocabularies
    kinds = _templates_by_kind(features, vocabularies)
    bags, _ = learn_bags(features.bags, corpus, 1, 0)
    tokens = coder.tokens_of(corpus)
    in_bags = [
        (bag, part) for bag in bags for part in _entries(bag).of_tokens(bag.cells(tokens), corpus.offsets)
    ]
    out = []
    for begin, end in pairwise(corpus.offsets.tolist()):
        for token in range(begin, end):
            names_of_token = []
            for slots, templates, resolved in kinds:
                for number, template in enumerate(templates if token - begin >= slots.skipped else ()):
                    values = _values(slots, number, codes, begin, end, token)
                    if UNKNOWN not in values:
                        names_of_token.append(named(template, resolved[number], vocabularies, values))
            for bag, part in in_bags:
                entries = part.ids[part.starts[token] : part.starts[token + 1]].tolist()
                names_of_token += [bag.spec.name(bag.vocabulary[entry]) for entry in entries]
            out.append(names_of_token)
    return out


def _arc_names(features: Features, corpus: Corpus, lexicons: Lexicons) -> list[list[str]]:
    """The names of the features of every arc."""
    lengths = np.diff(corpus.offsets)
    if int((lengths * lengths).sum()) * len(features.unigrams) > _MAX_ARC_FEATURES:
        fault = Fault("Send a shorter sentence or fewer templates.", pointer="/sentence")
        raise Invalid("The preview would be too large.", [fault], code="preview_too_large")
    coder, codes = Coder.trained(features, corpus, lexicons)
    vocabularies = coder.vocabularies
    slots, places = arc_slots_of(features, vocabularies), arc_places_of(features)
    # One row per feature: arc, template, sentence, head, modifier, and the code between.
    rows: list[tuple[int, ...]] = []
    arc = 0
    for begin, end in pairwise(corpus.offsets.tolist()):
        for m in range(1, end - begin + 1):
            for h in range(end - begin + 1):
                if h != m:
                    between = codes[:, begin + min(h, m) : begin + max(h, m) - 1]
                    rows += [
                        (arc, t, begin, end, h, m, code)
                        for t, column in enumerate(slots.between.tolist())
                        for code in (dict.fromkeys(between[column].tolist()) if column >= 0 else (UNKNOWN,))
                        if column < 0 or code != UNKNOWN
                    ]
                    arc += 1
    table = np.array(rows, np.int64).reshape(-1, 7).T
    sites = Sites(readonly(table[1], np.int32), *(readonly(each, np.int64) for each in table[2:6]))
    starts, values = values_at(slots, places, codes, sites, readonly(table[6], np.int32))
    out: list[list[str]] = [[] for _ in range(arc)]
    for (of, t, *_), (first, last) in zip(rows, pairwise(starts.tolist()), strict=True):
        own = values[first:last].tolist()
        if UNKNOWN not in own:
            out[of].append(named(features.unigrams[t], features.slots[t], vocabularies, own))
    return out


def _entries(bag: BagIndex) -> BagIndex:
    """The bag with its entries as attributes."""
    return replace(bag, attributes=np.arange(len(bag.vocabulary), dtype=np.int32))


def _templates_by_kind(
    features: Features, vocabularies: Sequence[Vocabulary]
) -> tuple[tuple[Slots, tuple[Template, ...], tuple[tuple[ResolvedSlot, ...], ...]], ...]:
    """The templates of single labels, and those of label pairs."""
    return (
        (slots_of(features, vocabularies), features.unigrams, features.slots),
        (edge_slots_of(features, vocabularies), features.rich, features.edge_slots),
    )


def named(
    template: Template,
    slots: Sequence[ResolvedSlot],
    vocabularies: Sequence[Vocabulary],
    values: Sequence[int],
) -> str:
    """The name of the feature that a template makes from the codes of its values."""

    def name(slot: ResolvedSlot, code: int) -> str:
        if slot.slot.anchor == "arc":
            return ARC_VALUES[slot.column][code]
        if code >= 0:
            return vocabularies[slot.column][code]
        return "?" if code == UNKNOWN else template.boundary(boundary_row(code))

    return template.joined([name(slot, code) for slot, code in zip(slots, values, strict=True)])


def _values(slots: Slots, number: int, codes: Codes, begin: int, end: int, token: int) -> list[int]:
    return [
        int(code_at(slots, s, codes, begin, end, token))
        for s in range(slots.starts[number], slots.starts[number + 1])
    ]


def count(features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS) -> PreviewCounts:
    """Count the attributes and weights that training on a corpus would have."""
    if features.structure == "tree":
        return _count_arcs(features, corpus, lexicons)
    coder, codes = Coder.trained(features, corpus, lexicons)
    labels = 0
    gold = np.zeros(0, np.int64)
    if corpus.labels is not None:
        names_of, gold = np.unique(corpus.labels.ids, return_inverse=True)
        labels = len(names_of)
    pairs = label_pairs(gold, corpus.offsets, labels)
    # Features are joined with the label of each token, or with the label pair that ends there.
    joined = ((gold, labels), (pairs, labels * labels))
    parameters = 0
    if features.edges:
        parameters += _transitions(features, pairs[pairs >= 0], labels)
    size, rows = 0, []
    for (slots, templates, _), (joins, ways) in zip(
        _templates_by_kind(features, coder.vocabularies), joined, strict=True
    ):
        index, attributes = build(slots, codes, corpus.offsets, features.cutoff)
        template_of = index.seen_at % max(len(slots.seeds), 1)
        attribute_counts = np.bincount(template_of, minlength=len(slots.seeds)).tolist()
        occurrences = np.bincount(template_of, weights=index.counts, minlength=len(slots.seeds)).tolist()
        cells, own = Cells(attributes.starts, attributes.rows, NO_CELLS.values), index.size
        rows += [
            TemplateFeatures(t.name, attribute_counts[i], int(occurrences[i]))
            for i, t in enumerate(templates)
        ]
        if slots.skipped == 0:
            bags, own = learn_bags(features.bags, corpus, features.cutoff, own)
            cells = attributes_of(bags, coder.tokens_of(corpus), cells)
            rows += [_bag_count(bag, cells) for bag in bags]
        size += own
        seen = features.weights.seen_pairs or features.weights.min_frequency > 0
        parameters += (
            _count_combinations(cells, joins, ways, features.weights.min_frequency) if seen else own * ways
        )
    return PreviewCounts(corpus.tokens, labels, size, parameters, tuple(rows))


def _count_arcs(features: Features, corpus: Corpus, lexicons: Lexicons) -> PreviewCounts:
    """Count the attributes and weights that training on a corpus of trees would have.

    Every attribute has a weight for the arc, and one for each relation.
    """
    if corpus.trees is None:
        raise Invalid(
            "The corpus has no dependency trees. Upload it with `label=tree`.", code="unlabelled_corpus"
        )
    coder, codes = Coder.trained(features, corpus, lexicons)
    slots, heads = arc_slots_of(features, coder.vocabularies), corpus.trees.heads
    index = build_arcs(slots, codes, corpus.offsets, heads, features.cutoff)
    present, gold = np.unique(corpus.trees.relations.ids, return_inverse=True)
    relations = len(present) if features.relations and corpus.trees.has_relations else 0
    parameters, least = index.size * (1 + relations), features.weights.min_frequency
    if features.weights.seen_pairs or least > 0:
        found = index.look_up_gold(codes, corpus.offsets, heads)
        cells = Cells(found.starts, found.rows, NO_CELLS.values)
        parameters = int(np.count_nonzero(index.counts >= least))
        parameters += _count_combinations(cells, gold, relations, least) if relations else 0
    template_of, count = index.seen_at % max(len(slots.seeds), 1), len(slots.seeds)
    attributes = np.bincount(template_of, minlength=count).tolist()
    occurrences = np.bincount(template_of, weights=index.counts, minlength=count).tolist()
    rows = tuple(
        TemplateFeatures(t.name, attributes[i], int(occurrences[i])) for i, t in enumerate(features.unigrams)
    )
    return PreviewCounts(corpus.tokens, relations, index.size, parameters, rows)


def _bag_count(bag: BagIndex, cells: Cells) -> TemplateFeatures:
    own = bag.attributes[bag.attributes >= 0]
    name = bag.spec.before.partition(":")[0] or BAG_NAME
    return TemplateFeatures(name, len(own), int(np.count_nonzero(np.isin(cells.ids, own))))


def label_pairs(gold: NDArray[np.int64], offsets: NDArray[np.int64], labels: int) -> NDArray[np.int64]:
    """The pair of labels that ends at each token, or -1 at the first token of a sentence."""
    pairs = np.concatenate([[-1], gold[:-1] * labels + gold[1:]])[: len(gold)]
    pairs[offsets[:-1][offsets[:-1] < len(gold)]] = -1
    return np.asarray(pairs)


def _transitions(features: Features, pairs: NDArray[np.int64], labels: int) -> int:
    """The number of pairs of labels with a weight, given those that occur."""
    least = features.weights.min_frequency
    if not features.weights.seen_transitions and least == 0:
        return labels * labels
    return int(np.count_nonzero(np.unique(pairs, return_counts=True)[1] >= least))


def _count_combinations(attributes: Cells, joins: NDArray[np.int64], ways: int, least: float) -> int:
    """The number of combinations of attribute and label, or pair of labels, that occur, with a sum of `least`."""
    if least > 0:
        combinations = _combinations(attributes, joins, ways, 0, len(joins))
        values = attributes.values if attributes.values.size else np.ones(len(combinations))
        sums = np.bincount(np.unique(combinations, return_inverse=True)[1], values)
        return int(np.count_nonzero(sums >= least))
    by_slice = [
        np.unique(_combinations(attributes, joins, ways, begin, _SLICE_TOKENS))
        for begin in range(0, len(joins), _SLICE_TOKENS)
    ]
    return len(np.unique(np.concatenate(by_slice))) if by_slice else 0


def _combinations(
    attributes: Cells, joins: NDArray[np.int64], ways: int, begin: int, tokens: int
) -> NDArray[np.int64]:
    starts = attributes.starts[begin : begin + tokens + 1]
    join = np.repeat(joins[begin : begin + tokens], np.diff(starts))
    return np.asarray(attributes.ids[starts[0] : starts[-1]].astype(np.int64) * ways + join)
