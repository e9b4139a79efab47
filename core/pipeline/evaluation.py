"""Evaluation of models on a labelled corpus, and comparison of each pair of them."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import slices
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.evaluate import mistakes, significance, trees
from tagsmith.core.evaluate.mistakes import LabelPair, WrongSentence
from tagsmith.core.evaluate.segmentation import evaluate, sentence_counts
from tagsmith.core.evaluate.spans import Metrics
from tagsmith.core.evaluate.tree_mistakes import WrongTree, wrong_trees
from tagsmith.core.evaluate.trees import TreeMetrics
from tagsmith.core.learn.problem.problem import gold_of
from tagsmith.core.learn.problem.tree_gold import GoldTrees
from tagsmith.core.model.constraints import Constraints, allowed_by, infeasible
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.tagger import Coded, Tagger
from tagsmith.core.pipeline import parsing

#: Tokens tagged between two points at which the caller can stop: a small part of a second.
SLICE_TOKENS = 50_000

#: A function that labels a slice of a corpus, given the number of its first sentence.
Decoder = Callable[[Coded, int], NDArray[np.int32]]


@dataclass(frozen=True, eq=False, slots=True)
class ScoredTagging:
    """The scores of a model on a corpus, with the counts needed to compare it with others."""

    name: str
    metrics: Metrics | TreeMetrics
    right: NDArray[np.bool_]  # (tokens,) whether the label or the head is
    counts: NDArray[np.int64]  # (sentences, 3), see `sentence_counts`
    confusion: list[LabelPair]  # of labels or relations
    wrong_sentences: Sequence[WrongSentence | WrongTree]


def tag_corpus(
    name: str, tagger: Tagger, corpus: Corpus, max_bytes: int | None = None
) -> Generator[float, None, ScoredTagging]:
    """Tag or parse a labelled corpus, and score the result. Yields the fraction done.

    To parse a sentence may take up to `max_bytes`.
    """
    check_structure(name, tagger, corpus)
    if corpus.trees is not None:
        return (yield from _parse_corpus(name, tagger, corpus, max_bytes))
    whole, corpus = corpus, corpus.comparable()
    found = gold_of(corpus, tagger.model.labels)
    names, gold = found.labels, found.ids
    predicted = yield from predicted_labels(tagger, corpus)
    wrong = mistakes.wrong_sentences(corpus, names, gold, predicted)
    places = whole.complete()
    return ScoredTagging(
        name,
        evaluate(names, gold, predicted, corpus.offsets),
        gold == predicted,
        sentence_counts(names, gold, predicted, corpus.offsets),
        mistakes.confusion(names, gold, predicted),
        [{**each, "index": int(places[each["index"]])} for each in wrong],
    )


def check_structure(name: str, tagger: Tagger, corpus: Corpus) -> None:
    """Raise Invalid if a parser meets a corpus without trees, or a tagger one with trees."""
    if tagger.is_parser == (corpus.trees is not None):
        return
    fault = Fault("has trees" if corpus.trees is not None else "has no trees", pointer="/corpus")
    parses = tagger.is_parser
    raise Invalid(structures_differ(name, parses=parses), [fault], code="structures_differ")


def structures_differ(name: str, *, parses: bool) -> str:
    """Say that a model cannot be scored on a corpus."""
    if parses:
        return f"{name} is a parser, and the corpus has no dependency trees. Score it on a corpus with trees."
    return f"{name} gives tags, and the corpus has dependency trees. Score it on a corpus with labels."


def _parse_corpus(
    name: str, tagger: Tagger, corpus: Corpus, max_bytes: int | None
) -> Generator[float, None, ScoredTagging]:
    found = GoldTrees.of(corpus)
    gold = parsing.with_same_relations(tagger, found.trees)
    predicted = yield from parsing.predicted_trees(tagger, corpus, max_bytes)
    right, pairs = gold.heads == predicted.heads, list[LabelPair]()
    if trees.usable_relations(gold.relations):
        names, own, other = trees.numbered_together(gold.relations, predicted.relations)
        pairs = mistakes.confusion(names, own[right], other[right])
    return ScoredTagging(
        name,
        trees.evaluate(gold, predicted, corpus.offsets, found.punctuation),
        right,
        trees.sentence_counts(gold, predicted, corpus.offsets),
        pairs,
        wrong_trees(corpus, gold, predicted),
    )


def tagged_corpus(
    tagger: Tagger,
    corpus: Corpus,
    *,
    posterior: bool = False,
    constraints: Constraints | None = None,
    max_bytes: int | None = None,
) -> Generator[float, None, Corpus]:
    """Return the corpus with the labels or the trees of a model. Yields the fraction done.

    To parse a sentence may take up to `max_bytes`.
    """
    if tagger.is_parser:
        return (yield from parsing.parsed_corpus(tagger, corpus, max_bytes))
    decoder: Decoder | None = None
    if posterior or constraints is not None:
        allowed = allowed_by(constraints or Constraints(), tagger.labels, corpus.offsets, at=())

        def decoder(part: Coded, first: int) -> NDArray[np.int32]:
            begin = int(corpus.offsets[first])
            own = allowed._replace(fixed=allowed.fixed[begin : begin + int(part.offsets[-1])])
            found = decode(tagger, part, DecodingOptions(posterior=posterior), own)
            if not found.feasible.all():
                raise infeasible(np.flatnonzero(~found.feasible) + first)
            return found.labels

    ids = yield from predicted_labels(tagger, corpus, decoder)
    labels = Column("label", Vocabulary.from_strings(tagger.model.labels), ids)
    return replace(corpus, labels=labels, partial=False, trees=None)


def predicted_labels(
    tagger: Tagger, corpus: Corpus, decoder: Decoder | None = None
) -> Generator[float, None, NDArray[np.int32]]:
    """Tag a corpus slice by slice; return the labels as ids of the model. Yields the fraction done."""
    coded, offsets = tagger.code_corpus(corpus), corpus.offsets
    predicted = np.empty(corpus.tokens, np.int32)
    for first, last in slices(offsets, SLICE_TOKENS):
        begin, end = int(offsets[first]), int(offsets[last])
        part = coded.part(first, last)
        predicted[begin:end] = tagger.decode(part) if decoder is None else decoder(part, first)
        yield end / max(1, corpus.tokens)
    return predicted


def compare_all(
    taggings: Sequence[ScoredTagging], resamples: int, confidence: float, seed: int
) -> Generator[float, None, list[dict[str, Any]]]:
    """Compare every pair of taggings of one corpus; the first of a pair is the base. Yields the fraction done."""
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
