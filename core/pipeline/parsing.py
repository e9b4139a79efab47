"""Parsing of whole corpora, in steps."""

from collections.abc import Generator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import offsets_of, slices
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.corpus import Column, Corpus, Trees
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.evaluate.trees import UNKNOWN
from tagsmith.core.model.parser import Parsed, parse
from tagsmith.core.model.tagger import Coded, Tagger

#: Pairs of words between two points at which the caller can stop: a small part of a second.
SLICE_PAIRS = 50_000


def predicted_trees(
    tagger: Tagger, corpus: Corpus, max_bytes: int | None = None
) -> Generator[float, None, Trees]:
    """Parse a corpus. Yields the fraction done.

    If given, the buffers of the longest sentence must fit into `max_bytes`.
    """
    coded = tagger.code_corpus(corpus)
    if max_bytes is not None:
        check_longest(tagger, coded, max_bytes)
    heads, relations = np.empty(corpus.tokens, np.int32), np.empty(corpus.tokens, np.int32)
    for part, begin, done in parsed_parts(tagger, coded):
        end = begin + part.heads.size
        heads[begin:end], relations[begin:end] = part.heads, part.relations
        yield done
    return Trees(heads, Column("relation", Vocabulary.from_strings(_relations(tagger)), relations))


def parsed_parts(
    tagger: Tagger, coded: Coded, *, probabilities: bool = False
) -> Generator[tuple[Parsed, int, float], None, None]:
    """Parse slice by slice. Yields the trees of each slice, its first token, and the fraction done after it."""
    lengths = np.diff(coded.offsets)
    pairs = offsets_of(lengths * lengths)
    for first, last in slices(pairs, SLICE_PAIRS):
        parsed = parse(tagger, coded.part(first, last), probabilities=probabilities)
        yield parsed, int(coded.offsets[first]), int(pairs[last]) / max(1, int(pairs[-1]))


def parsed_corpus(
    tagger: Tagger, corpus: Corpus, max_bytes: int | None = None
) -> Generator[float, None, Corpus]:
    """Return the corpus with the trees of a parser. Yields the fraction done."""
    trees = yield from predicted_trees(tagger, corpus, max_bytes)
    return replace(corpus, labels=None, partial=False, trees=trees)


def with_same_relations(tagger: Tagger, gold: Trees) -> Trees:
    """Return gold trees to compare with those of a parser: without relations if the parser has none."""
    if tagger.model.relations:
        return gold
    unknown: NDArray[np.int32] = np.zeros(gold.heads.size, np.int32)
    return Trees(gold.heads, Column("relation", Vocabulary.from_strings([UNKNOWN]), unknown))


def check_longest(tagger: Tagger, coded: Coded, max_bytes: int, *, posterior: bool = False) -> None:
    """Raise Invalid if the buffers of the longest sentence do not fit into `max_bytes`."""
    needed = tagger.scratch_bytes(coded.longest, posterior=posterior)
    if needed > max_bytes:
        reason = (
            f"The longest sentence has {coded.longest:,} words. It needs {needed >> 20:,} MiB of memory, and "
            f"{max_bytes >> 20:,} MiB are allowed. Split it."
        )
        raise Invalid("A sentence is too long.", [Fault(reason, pointer="/corpus")], code="too_large")


def _relations(tagger: Tagger) -> list[str]:
    """The names of predicted relations. The first label, which scores heads, stands for no relation."""
    return [UNKNOWN, *tagger.model.labels[1:]]
