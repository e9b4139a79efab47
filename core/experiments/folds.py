"""Folds of a compiled corpus: what compiling each part anew would give, without doing so.

The corpus is compiled once, with every feature (cutoff 1). A fold's training part keeps the features that occur in it
at least `cutoff` times: its held-out sentences do not count, as they would not in earnest, whatever the cutoff. Only
the set of labels is that of the whole corpus.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.corpus.corpus import shuffled
from core.errors import Fault, Invalid
from core.features.spec import FeatureSpec
from core.learn.problem import Problem


@dataclass(frozen=True, eq=False, slots=True)
class Fold:
    """A part to learn from and the part held out, over the same attributes and labels."""

    train: Problem
    held_out: Problem


def shared(features: FeatureSpec) -> FeatureSpec:
    """The features that a corpus is compiled with, for all specs that differ in cutoff and pairs only."""
    return features.model_copy(update={"cutoff": 1, "pairs": "all"})


def parts(sentences: int, folds: int, seed: int) -> list[NDArray[np.int64]]:
    """Deal the sentences into `folds` parts by the seed, sizes differing by one at most, each in corpus order."""
    check(sentences, folds)
    order = shuffled(sentences, seed)
    return [np.sort(order[first::folds]) for first in range(folds)]


def check(sentences: int, folds: int) -> None:
    """Raise Invalid when there are too few sentences for so many folds."""
    if sentences < folds:
        fault = Fault(f"the corpus has {sentences} sentence{'s' * (sentences != 1)}", pointer="/folds")
        raise Invalid("There are fewer sentences than folds", [fault], code="corpus_too_small")


def fold_of(whole: Problem, held_out: NDArray[np.int64], features: FeatureSpec) -> Fold:
    """Hold out these sentences of a problem compiled with the `shared` features."""
    rest = np.setdiff1d(np.arange(whole.sentences), held_out, assume_unique=True)
    learned = replace(whole.subset(rest), seen_pairs=features.pairs == "seen")
    scored = replace(whole.subset(held_out), seen_pairs=learned.seen_pairs)
    used = np.bincount(learned.data.rows, minlength=whole.attributes) >= features.cutoff
    edges = np.bincount(learned.data.edge_rows, minlength=whole.edge_attributes) >= features.cutoff
    return Fold(learned.with_attributes(used, edges), scored.with_attributes(used, edges))
