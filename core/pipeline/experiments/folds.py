"""Folds of a compiled corpus. A fold is equal to compiling its training part separately.

The corpus is compiled once, with every feature (cutoff 1). The training part of a fold keeps the features that occur in
it at least `cutoff` times; the held-out sentences do not count. Only the label set comes from the whole corpus.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.corpus import shuffled
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Problem


@dataclass(frozen=True, eq=False, slots=True)
class Fold:
    """The training part and the held-out part, with the same attributes and labels."""

    train: Problem
    held_out: Problem


def shared(features: FeatureSpec) -> FeatureSpec:
    """Return the features with which to compile a corpus for all specs that differ only in cutoff and weights."""
    return features.model_copy(
        update={"cutoff": 1, "pairs": "all", "transitions": None, "min_frequency": 0.0}
    )


def parts(sentences: int, folds: int, seed: int) -> list[NDArray[np.int64]]:
    """Distribute the sentences over `folds` parts by the seed. Sizes differ by at most one; parts keep corpus order."""
    check(sentences, folds)
    order = shuffled(sentences, seed)
    return [np.sort(order[first::folds]) for first in range(folds)]


def check(sentences: int, folds: int) -> None:
    """Raise Invalid when there are fewer sentences than folds."""
    if sentences < folds:
        reason = f"The corpus has {sentences} sentence{'s' * (sentences != 1)}. Use fewer folds or a larger corpus."
        fault = Fault(reason, pointer="/folds")
        raise Invalid("There are fewer sentences than folds.", [fault], code="corpus_too_small")


def _complete(whole: Problem, sentences: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return those of the sentences that are labelled at every token. Only these can be scored."""
    if not whole.data.partial:
        return sentences
    complete = sentences[whole.data.complete[sentences]]
    if not complete.size:
        raise Invalid(
            "A fold has no sentence that is labelled at every token, so nothing can be scored. Use fewer folds, or "
            "give a corpus as `dev`.",
            code="no_complete_sentence",
        )
    return complete


def fold_of(whole: Problem, held_out: NDArray[np.int64], features: FeatureSpec) -> Fold:
    """Hold out the sentences `held_out` of a problem that was compiled with the `shared` features."""
    rest = np.setdiff1d(np.arange(whole.sentences), held_out, assume_unique=True)
    learned = replace(whole.subset(rest), existing=features.weights)
    scored = replace(whole.subset(_complete(whole, held_out)), existing=learned.existing)
    used = np.bincount(learned.data.rows, minlength=whole.attributes) >= features.cutoff
    edges = np.bincount(learned.data.edge_rows, minlength=whole.edge_attributes) >= features.cutoff
    return Fold(learned.with_attributes(used, edges), scored.with_attributes(used, edges))
