"""What to label next: the sentences of a corpus about which a model is least sure.

With y* the best labelling of a sentence x of n tokens, the measures are

- probability: log p(y* | x) / n, lowest first (Shen et al. 2017, "Deep active learning for named entity recognition":
  maximum normalized log-probability). Not divided, it is the least confidence of Culotta and McCallum (2005, "Reducing
  labeling effort for structured prediction tasks"), which falls with every token and so prefers long sentences;
- margin: log p(y* | x) - log p(y' | x), with y' the second best labelling, lowest first (Scheffer et al. 2001, "Active
  hidden Markov models for information extraction"). It does not grow with the length, so it is never divided;
- entropy: H(y | x) / n, exact over all labellings, highest first (Settles and Craven 2008, "An analysis of active
  learning strategies for sequence labeling tasks", who also measure it without the division).

Of a parser, y* is the best tree, and only the first measure is there.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Places, slices
from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.base.steps import mapped
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conllu import CONLLU, ConlluOptions, word_writer
from tagsmith.core.corpus.formats.ndjson import write_ndjson
from tagsmith.core.corpus.formats.scan import fields as word_fields
from tagsmith.core.corpus.formats.writing import TREE
from tagsmith.core.corpus.near_copies import without_near_copies
from tagsmith.core.corpus.sentence_hashes import sentence_hashes
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.tagger import Coded, Tagger
from tagsmith.core.pipeline import parsing
from tagsmith.core.pipeline.evaluation import tagged_corpus

Measure = Literal["probability", "margin", "entropy"]

#: Tokens scored between two points at which the caller can stop: a small part of a second, also with many labels.
SLICE_TOKENS = 10_000
#: The format of the list, and that with trees.
FORMAT, TREE_FORMAT = "ndjson", "conllu"
#: Of scores. More are not the same on every machine.
DECIMALS = 6
#: Fractions of the progress: up to the end of scoring, and of choosing. The rest is for tagging.
SCORED, CHOSEN = 0.9, 0.95

_OPTIONS = {
    "probability": DecodingOptions(probabilities=True),
    "margin": DecodingOptions(nbest=2),
    "entropy": DecodingOptions(entropies=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlan:
    """Which sentences to list."""

    by: Measure
    #: The most sentences to list.
    top: int
    #: Whether to leave out near copies.
    diverse: bool
    #: Whether to divide probabilities and entropies by the number of tokens.
    per_token: bool


@dataclass(frozen=True, eq=False, slots=True)
class Ranking:
    """The chosen sentences, least sure first."""

    #: With the labels of the model.
    tagged: Corpus
    #: Their numbers in the corpus, from 0.
    indices: Places
    #: The measure of each. A margin is infinite if there is no second labelling.
    scores: NDArray[np.float64]
    #: Sentences of the corpus that differ from all before them.
    distinct: int


def rank(tagger: Tagger, corpus: Corpus, plan: RankPlan, max_bytes: int) -> Generator[float, None, Ranking]:
    """Find the sentences about which the model is least sure. Yields the fraction done.

    Raises Invalid for a measure that parsers do not have, and for columns that the list of a parser cannot hold.

    Equal sentences are listed once, as the first of them. Of equal scores, the first in the corpus comes first. The
    buffers of the longest sentence must fit into `max_bytes`.
    """
    if tagger.is_parser:
        check_measure(plan.by)
        fields_of(corpus.names)
    coded = tagger.code_corpus(corpus)
    _check_longest(tagger, coded, max_bytes)
    scores = yield from mapped(_scores(tagger, coded, plan), lambda done: SCORED * done)
    distinct = _first_of_equals(corpus)
    keys = -scores[distinct] if plan.by == "entropy" else scores[distinct]
    order = distinct[np.argsort(keys, kind="stable")]
    yield SCORED
    chosen = yield from _chosen(corpus, order, plan)
    steps = tagged_corpus(tagger, corpus.subset(chosen))
    tagged = yield from mapped(steps, lambda done: CHOSEN + (1 - CHOSEN) * done)
    return Ranking(tagged, chosen, scores[chosen], distinct.size)


def format_of(*, parses: bool) -> str:
    """Return the format of the list."""
    return TREE_FORMAT if parses else FORMAT


def check_measure(by: Measure) -> None:
    """Raise Invalid for a measure that parsers do not have."""
    if by != "probability":
        reason = "A parser measures sentences by the probability of their best tree only. Choose probability."
        raise Invalid(
            "The measure is not for parsers.",
            [Fault(reason, pointer="/by", type=FaultType.INCONSISTENT)],
            code="invalid_spec",
        )


def fields_of(columns: Sequence[str]) -> list[str]:
    """Return the fields that hold the columns in the list of a parser. Raise Invalid if a column has none."""
    fields = word_fields.named_fields(columns, CONLLU.fields)
    if fields is None:
        reason = f"Columns {', '.join(columns)} are not all fields of CoNLL-U. Upload the corpus as CoNLL-U."
        raise Invalid(
            "The sentences cannot be written with trees.",
            [Fault(reason, pointer="/corpus")],
            code="unwritable_value",
        )
    return fields


def written(ranking: Ranking) -> Iterator[bytes]:
    """Write the chosen sentences, ready to be corrected and uploaded: `index` and `score` are ignored."""
    others = [
        # JSON has no infinity.
        {"index": index, "score": score if isfinite(score) else None}
        for index, score in zip(
            ranking.indices.tolist(), np.round(ranking.scores, DECIMALS).tolist(), strict=True
        )
    ]
    if ranking.tagged.trees is None:
        return write_ndjson(ranking.tagged, label_field="tags", others=others)
    return _with_comments(ranking.tagged, others)


def _with_comments(corpus: Corpus, others: Sequence[Mapping[str, object]]) -> Iterator[bytes]:
    """Write trees as CoNLL-U, with further values of each sentence as comments."""
    options = ConlluOptions(columns=tuple(fields_of(corpus.names)), label=TREE)
    comments = iter(others)
    for chunk in word_writer(corpus, options):
        for sentence in chunk.split(b"\n\n")[:-1]:
            own = "".join(f"# {name} = {value}\n" for name, value in next(comments).items())
            yield own.encode() + sentence + b"\n\n"


def _scores(tagger: Tagger, coded: Coded, plan: RankPlan) -> Generator[float, None, NDArray[np.float64]]:
    """Measure every sentence; those without tokens have the score 0. Yields the fraction done."""
    offsets, options = coded.offsets, _OPTIONS[plan.by]
    scores = np.zeros(offsets.size - 1)
    if tagger.is_parser:
        return (yield from _tree_scores(tagger, coded, plan))
    for first, last in slices(offsets, SLICE_TOKENS):
        decoded = decode(tagger, coded.part(first, last), options)
        if plan.by == "margin":
            best, second = decoded.path_scores.T
            scores[first:last] = np.where(decoded.path_counts > 1, best - second, np.inf)
        else:
            found = decoded.entropies if plan.by == "entropy" else decoded.log_probabilities
            lengths = np.maximum(np.diff(offsets[first : last + 1]), 1)
            scores[first:last] = found / lengths if plan.per_token else found
        yield int(offsets[last]) / max(1, int(offsets[-1]))
    return scores


def _tree_scores(tagger: Tagger, coded: Coded, plan: RankPlan) -> Generator[float, None, NDArray[np.float64]]:
    """Return the log probability of the best tree of every sentence."""
    parts = [np.empty(0)]
    for parsed, _, done in parsing.parsed_parts(tagger, coded, probabilities=True):
        parts.append(parsed.log_probabilities)
        yield done
    found = np.concatenate(parts)
    scores: NDArray[np.float64] = found / np.maximum(np.diff(coded.offsets), 1) if plan.per_token else found
    return scores


def _first_of_equals(corpus: Corpus) -> Places:
    """Return the sentences that have tokens and differ from all before them, in order."""
    _, firsts = np.unique(sentence_hashes(corpus), return_index=True)
    firsts.sort()
    return firsts[np.diff(corpus.offsets)[firsts] > 0]


def _chosen(corpus: Corpus, order: Places, plan: RankPlan) -> Generator[float, None, Places]:
    if not plan.diverse:
        return order[: plan.top]
    parts = [order[:0]]
    for part in without_near_copies(corpus, order, plan.top):
        parts.append(part)
        yield SCORED
    return np.concatenate(parts)


def _check_longest(tagger: Tagger, coded: Coded, max_bytes: int) -> None:
    if tagger.is_parser:
        parsing.check_longest(tagger, coded, max_bytes, posterior=True)
        return
    needed = tagger.scratch_bytes(coded.longest, posterior=True)
    if needed > max_bytes:
        reason = (
            f"The longest sentence has {coded.longest:,} tokens. With {len(tagger.labels):,} labels it needs "
            f"{needed >> 20:,} MiB of memory, and {max_bytes >> 20:,} MiB are allowed. Split it."
        )
        raise Invalid("A sentence is too long.", [Fault(reason, pointer="/corpus")], code="too_large")
