"""Previews of features over arcs against a dictionary of their names."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Column, Corpus, Trees
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features import preview
from tagsmith.core.features.resolved import ExistingWeights
from tests.core.model.parsers import SPEC, TEMPLATES, corpus_of_trees, features_of, rows_of


def test_the_features_of_every_arc_have_their_names() -> None:
    rows = [["the", "DET"], ["dog", "NOUN"], ["saw", "VERB"], ["the", "DET"], ["cat", "NOUN"]]
    found = preview.names(SPEC.resolve(["form", "upos"]), preview.corpus_of(rows, ["form", "upos"]))
    arcs = [(h, m) for m in range(1, 6) for h in range(6) if h != m]
    assert len(found) == len(arcs)
    for names, (h, m) in zip(found, arcs, strict=True):
        assert sorted(names) == sorted(features_of(rows, h, m))


def test_attributes_and_weights_of_gold_arcs_are_counted() -> None:
    corpus = corpus_of_trees(20)
    assert corpus.trees is not None
    heads, relations = corpus.trees.heads.tolist(), corpus.trees.relations.ids.tolist()
    counts, pairs, at = Counter[str](), Counter[tuple[str, int]](), 0
    for rows in rows_of(corpus):
        for m in range(1, len(rows) + 1):
            own = features_of(rows, heads[at], m)
            counts.update(own)
            pairs.update((name, relations[at]) for name in own)
            at += 1
    kinds = len(set(relations))
    features = replace(SPEC.resolve(corpus.names, trees=True), cutoff=2)
    kept = {name: count for name, count in counts.items() if count >= 2}
    found = preview.count(features, corpus)
    assert (found.tokens, found.labels, found.attributes) == (corpus.tokens, kinds, len(kept))
    assert found.parameters == len(kept) * (1 + kinds)
    names = [each.template for each in found.templates]
    assert names == ["|".join(places) for places in TEMPLATES]
    for each in found.templates:
        own = [count for name, count in kept.items() if name.startswith(f"{each.template}=")]
        assert (each.attributes, each.occurrences) == (len(own), sum(own))
    for least in (0, 3):
        existing = ExistingWeights(seen_pairs=True, min_frequency=least)
        seen = preview.count(replace(features, weights=existing), corpus)
        expected = sum(count >= least for count in kept.values())
        expected += sum(count >= least for (name, _), count in pairs.items() if name in kept)
        assert seen.parameters == expected
    assert preview.count(replace(features, relations=False), corpus).parameters == len(kept)
    assert preview.count(features, _without_relations(corpus)).parameters == len(kept)


def _without_relations(corpus: Corpus) -> Corpus:
    """The corpus with words that have no relation."""
    assert corpus.trees is not None
    relations = corpus.trees.relations
    names = ["_", *relations.vocabulary.strings()[1:]]
    unknown = Column(relations.name, Vocabulary.from_strings(names), relations.ids)
    return replace(corpus, trees=Trees(corpus.trees.heads, unknown))


def test_previews_of_arcs_have_limits() -> None:
    features = SPEC.resolve(["form", "upos"])
    rows = [["a", "X"]] * 200
    with pytest.raises(Invalid, match="too large"):
        preview.names(features, preview.corpus_of(rows, ["form", "upos"]))
    with pytest.raises(Invalid, match="no dependency trees"):
        preview.count(features, preview.corpus_of(rows[:2], ["form", "upos"]))
    assert np.ndim(preview.names(features, preview.corpus_of(rows[:1], ["form", "upos"]))[0]) == 1
