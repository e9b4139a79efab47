"""Sentences with wrong heads or relations."""

from typing import TypedDict

import numpy as np

from tagsmith.core.corpus.corpus import Corpus, Trees
from tagsmith.core.corpus.sentences import Sentences
from tagsmith.core.evaluate.mistakes import MAX_SENTENCES, MAX_TOKENS
from tagsmith.core.evaluate.trees import numbered_together, usable_relations


class WrongTree(TypedDict):
    """A sentence with at least one wrong head or relation; `index` counts from 0."""

    index: int
    tokens: list[str]
    heads: list[int]  # of the corpus
    relations: list[str]
    predicted_heads: list[int]
    predicted_relations: list[str]


def wrong_trees(corpus: Corpus, gold: Trees, predicted: Trees) -> list[WrongTree]:
    """Return the first sentences with a wrong head or, if the relations of `gold` can be compared, relation."""
    offsets = corpus.offsets
    wrong = gold.heads != predicted.heads
    compared = usable_relations(gold.relations)
    if compared:
        _, own, other = numbered_together(gold.relations, predicted.relations)
        wrong = wrong | (own != other)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(wrong)])
    places = np.flatnonzero(np.diff(before[offsets]))[:MAX_SENTENCES].tolist()
    if not places:
        return []
    sentences, found, left = Sentences(corpus), list[WrongTree](), MAX_TOKENS
    names = [trees.relations.vocabulary.strings() for trees in (gold, predicted)]
    for index in places:
        first, last = offsets[index : index + 2].tolist()
        left -= last - first
        if left < 0:
            break
        own_relations, other_relations = (
            [strings[i] for i in trees.relations.ids[first:last].tolist()] if compared else []
            for strings, trees in zip(names, (gold, predicted), strict=True)
        )
        found.append(
            {
                "index": index,
                "tokens": sentences.read(index).tokens,
                "heads": gold.heads[first:last].tolist(),
                "relations": own_relations,
                "predicted_heads": predicted.heads[first:last].tolist(),
                "predicted_relations": other_relations,
            }
        )
    return found
