"""Scoring models on a labelled corpus, and each pair of them against each other."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.corpus.corpus import Column, Corpus
from core.corpus.vocabulary import Vocabulary
from core.evaluate import significance
from core.evaluate.segmentation import evaluate, sentence_counts
from core.evaluate.spans import Metrics
from core.learn.problem import gold_of
from core.model.constraints import Constraints, allowed_by, infeasible
from core.model.decoding import Wanted, decode
from core.model.tagger import Coded, Tagger

#: Tokens tagged between two chances to stop: a small part of a second.
SLICE_TOKENS = 50_000


@dataclass(frozen=True, eq=False, slots=True)
class Tagging:
    """What a model made of a corpus: all that is needed to compare it with others."""

    name: str
    metrics: Metrics
    right: NDArray[np.bool_]  # (tokens,)
    counts: NDArray[np.int64]  # (sentences, 3), see `sentence_counts`


def tag_corpus(name: str, tagger: Tagger, corpus: Corpus) -> Generator[float, None, Tagging]:
    """Tag a labelled corpus, yielding the fraction done."""
    names, gold = gold_of(corpus, tagger.model.labels)
    predicted = yield from predicted_labels(tagger, corpus)
    return Tagging(
        name,
        evaluate(names, gold, predicted, corpus.offsets),
        gold == predicted,
        sentence_counts(names, gold, predicted, corpus.offsets),
    )


def tagged_corpus(
    tagger: Tagger, corpus: Corpus, *, posterior: bool = False, constraints: Constraints | None = None
) -> Generator[float, None, Corpus]:
    """The corpus with the labels that a model gives it, yielding the fraction done."""
    decoder: Callable[[Coded], NDArray[np.int32]] = tagger.decode
    if posterior or constraints is not None:
        allowed = allowed_by(constraints or Constraints(), tagger.labels, corpus.offsets, at=())

        def decoder(part: Coded) -> NDArray[np.int32]:
            found = decode(tagger, part, Wanted(posterior=posterior), allowed)
            if not found.feasible.all():
                raise infeasible(found.feasible)
            return found.labels

    ids = yield from predicted_labels(tagger, corpus, decoder)
    labels = Column("label", Vocabulary.from_strings(tagger.model.labels), ids)
    return replace(corpus, labels=labels)


def predicted_labels(
    tagger: Tagger, corpus: Corpus, decoder: Callable[[Coded], NDArray[np.int32]] | None = None
) -> Generator[float, None, NDArray[np.int32]]:
    """The labels that a model gives to a corpus, as ids of its own, yielding the fraction done."""
    decoder = decoder or tagger.decode
    coded, offsets = tagger.code_corpus(corpus), corpus.offsets
    predicted = np.empty(corpus.tokens, np.int32)
    first = 0
    while first < corpus.sentences:
        begin = int(offsets[first])
        last = max(first + 1, int(np.searchsorted(offsets, begin + SLICE_TOKENS, side="right")) - 1)
        end = int(offsets[last])
        predicted[begin:end] = decoder(coded.part(first, last))
        first = last
        yield end / max(1, corpus.tokens)
    return predicted


def compare_all(
    taggings: Sequence[Tagging], resamples: int, confidence: float, seed: int
) -> Generator[float, None, list[dict[str, Any]]]:
    """Every pair of taggings of one corpus, the one named first as base, yielding the fraction done."""
    if len(taggings) < 2:
        return []
    f1 = yield from significance.resampled_f1([each.counts for each in taggings], resamples, seed)
    pairs = []
    for (i, base), (j, head) in combinations(enumerate(taggings), 2):
        observed = significance.f1_of(head.counts) - significance.f1_of(base.counts)
        judged = significance.bootstrap(f1[:, i], f1[:, j], observed, confidence)
        pairs.append(
            {
                "base": base.name,
                "head": head.name,
                "bootstrap": {
                    **asdict(judged),
                    "resamples": resamples,
                    "confidence": confidence,
                    "seed": seed,
                },
                "mcnemar": asdict(significance.mcnemar(base.right, head.right)),
            }
        )
        yield 1.0
    return pairs
