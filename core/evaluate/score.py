"""The score by which passes, runs and versions are compared."""

from typing import Literal

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.evaluate import segmentation
from tagsmith.core.evaluate.spans import ScoreName


def score_name(corpus: Corpus) -> ScoreName | Literal["uas"]:
    """Return the name of the score for a training corpus."""
    return "uas" if corpus.trees is not None else segmentation.score_name(tuple(corpus.label_names))
