"""A training problem: a corpus as attribute rows and gold labels, ready for kernels."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import ranges
from core.corpus.bag import Cells
from core.corpus.corpus import Corpus
from core.errors import Invalid
from core.features.columns import Coder, Codes
from core.features.index import Attributes, FeatureIndex, build, edge_slots_of, slots_of
from core.features.matching import NO_LEXICONS, Lexicons
from core.features.settled import Features
from core.features.several import Family, attributes_of, learn_families
from core.inference.vector import padded
from core.jit import readonly
from core.learn.templates import Templates, templates_of


class Sequences(NamedTuple):
    """What kernels see of a corpus: sentence i is tokens `offsets[i]:offsets[i+1]`."""

    offsets: NDArray[np.int64]  # (sentences + 1,)
    starts: NDArray[np.int64]  # (tokens + 1,) token t has attributes starts[t]:starts[t+1]
    rows: NDArray[np.int32]  # attribute rows
    values: NDArray[np.float32]  # their values, or empty when all are 1
    gold: NDArray[np.int32]  # (tokens,) label ids; may exceed the model's labels in evaluation data
    edge_starts: NDArray[np.int64]  # (tokens + 1,) likewise of edge attributes, or empty when there are none
    edge_rows: NDArray[np.int32]  # edge attributes; the first token of a sentence has none


@dataclass(frozen=True, eq=False)
class Problem:
    """Sequences over so many attributes and the labels by name.

    `edges` says whether label bigrams are features; `edge_attributes`, how many attributes are joined with them;
    `seen_pairs`, whether only features of the gold data have weights.
    """

    data: Sequences
    attributes: int
    labels: tuple[str, ...]
    edges: bool
    seen_pairs: bool = False
    edge_attributes: int = 0
    independent: bool = False  # every token is labelled on its own
    templates: Templates | None = None  # what attributes come from, where they come from a corpus

    @property
    def width(self) -> int:
        return padded(len(self.labels))

    @property
    def blocks(self) -> int:
        """The first row of the blocks of edge attributes, behind those of attributes and of transitions."""
        return self.attributes + len(self.labels)

    @property
    def rows(self) -> int:
        """Rows of weights (see `rows`)."""
        return self.blocks + self.edge_attributes * len(self.labels)

    @property
    def rich(self) -> bool:
        """Whether tokens have transitions of their own."""
        return self.edge_attributes > 0

    @property
    def sentences(self) -> int:
        return len(self.data.offsets) - 1

    @property
    def tokens(self) -> int:
        return int(self.data.offsets[-1])

    @cached_property
    def longest(self) -> int:
        return int(np.max(np.diff(self.data.offsets), initial=0))

    def room(self, batch: int) -> int:
        """Tokens that the longest possible batch of so many sentences holds."""
        if batch == 1:
            return self.longest
        lengths = np.sort(np.diff(self.data.offsets))[::-1]
        return int(lengths[:batch].sum())

    def cells(self) -> NDArray[np.int64]:
        """How many rows each sentence uses, those that occur again counted again."""
        cells = np.diff(self.data.starts[self.data.offsets])
        if self.rich:
            cells = cells + len(self.labels) * np.diff(self.data.edge_starts[self.data.offsets])
        return np.asarray(cells)

    def by_token(self) -> "Problem":
        """The problem with every token a sentence of its own, where they are labelled so."""
        if not self.independent or self.longest <= 1:
            return self
        return replace(self, data=self.data._replace(offsets=readonly(np.arange(self.tokens + 1), np.int64)))

    def sample(self, sentences: int) -> "Problem":
        """The problem restricted to so many sentences, spread evenly."""
        if sentences >= self.sentences:
            return self
        chosen = np.linspace(0, self.sentences - 1, sentences).round().astype(np.int64)
        return self.subset(chosen)

    def with_attributes(self, used: NDArray[np.bool_], used_edges: NDArray[np.bool_]) -> "Problem":
        """The problem with only the attributes and edge attributes marked, numbered anew in the same order."""
        data = self.data
        starts, rows, cells = _picked(data.starts, data.rows, used)
        edge_starts, edge_rows, _ = _picked(data.edge_starts, data.edge_rows, used_edges)
        return replace(
            self,
            attributes=int(np.count_nonzero(used)),
            edge_attributes=int(np.count_nonzero(used_edges)),
            templates=self.templates and self.templates.picked(used, used_edges),
            data=data._replace(
                starts=starts,
                rows=rows,
                values=readonly(data.values[cells] if len(data.values) else data.values, np.float32),
                edge_starts=edge_starts,
                edge_rows=edge_rows,
            ),
        )

    def rows_with(self, used: NDArray[np.bool_], used_edges: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The rows of weights that are left with only the attributes and edge attributes marked."""
        transitions = np.ones(len(self.labels), np.bool_)
        return np.flatnonzero(np.concatenate([used, transitions, np.repeat(used_edges, len(self.labels))]))

    def occurring(self) -> tuple["Problem", NDArray[np.int64]]:
        """The problem without attributes that none of its tokens has, and the rows of weights it is left with."""
        used, used_edges = np.zeros(self.attributes, np.bool_), np.zeros(self.edge_attributes, np.bool_)
        used[self.data.rows], used_edges[self.data.edge_rows] = True, True
        return self.with_attributes(used, used_edges), self.rows_with(used, used_edges)

    def subset(self, chosen: NDArray[np.int64]) -> "Problem":
        """The problem restricted to the sentences `chosen`, in that order."""
        offsets, starts = self.data.offsets, self.data.starts
        tokens = ranges(offsets[chosen], offsets[chosen + 1])
        cells = ranges(starts[tokens], starts[tokens + 1])
        edge_starts, edge_rows = self.data.edge_starts, self.data.edge_rows
        if self.rich:
            lengths = edge_starts[tokens + 1] - edge_starts[tokens]
            edge_rows = edge_rows[ranges(edge_starts[tokens], edge_starts[tokens + 1])]
            edge_starts = offsets_of(lengths)
        data = Sequences(
            offsets=offsets_of(offsets[chosen + 1] - offsets[chosen]),
            starts=offsets_of(starts[tokens + 1] - starts[tokens]),
            rows=readonly(self.data.rows[cells], np.int32),
            values=readonly(
                self.data.values[cells] if len(self.data.values) else self.data.values, np.float32
            ),
            gold=readonly(self.data.gold[tokens], np.int32),
            edge_starts=readonly(edge_starts, np.int64),
            edge_rows=readonly(edge_rows, np.int32),
        )
        return replace(self, data=data)


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where items of these lengths begin, one after the other, and where the last one ends."""
    return readonly(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), np.int64)


def _picked(
    starts: NDArray[np.int64], rows: NDArray[np.int32], used: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """The cells of attributes that are used, numbered anew: where each token's begin, attributes, which cells."""
    cells = used[rows]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(cells)])
    numbers = np.cumsum(used, dtype=np.int32) - 1
    return readonly(before[starts], np.int64), readonly(numbers[rows[cells]], np.int32), cells


@dataclass(frozen=True, eq=False)
class Compiled:
    """A training corpus compiled: the problem, and what is needed to read other text the same way.

    `edge_index` numbers the edge attributes, where the features have any.
    """

    problem: Problem
    features: Features
    coder: Coder
    index: FeatureIndex
    families: tuple[Family, ...]
    codes: Codes
    edge_index: FeatureIndex | None = None

    def problem_of(self, corpus: Corpus) -> Problem:
        """Compile another corpus with this one's features. Labels unknown here are numbered behind the known ones."""
        codes = self.coder.code(corpus)
        attributes = self.index.look_up(codes, corpus.offsets)
        edges = None if self.edge_index is None else self.edge_index.look_up(codes, corpus.offsets)
        labels, gold = gold_of(corpus, self.problem.labels)
        return replace(
            self.problem,
            data=_sequences(corpus, attributes, edges, gold, self.families, self.coder),
            labels=labels,
        )


def compile_corpus(features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS) -> Compiled:
    """Compile a training corpus. `lexicons` are those that the features name, by id."""
    if corpus.labels is None:
        raise Invalid("The corpus has no labels to train on", code="unlabelled_corpus")
    coder, codes = Coder.trained(features, corpus, lexicons)
    vocabularies = coder.vocabularies
    index, attributes = build(slots_of(features, vocabularies), codes, corpus.offsets, features.cutoff)
    edge_index, edge_attributes = None, None
    if features.rich:
        edge_slots = edge_slots_of(features, vocabularies)
        edge_index, edge_attributes = build(edge_slots, codes, corpus.offsets, features.cutoff)
    families, attributes_in_all = learn_families(features.several, corpus, features.cutoff, index.size)
    labels, gold = gold_of(corpus, ())
    if len(labels) > np.iinfo(np.int16).max:
        raise Invalid(
            f"The corpus has {len(labels)} labels; at most 32,767 can be trained", code="too_many_labels"
        )
    problem = Problem(
        _sequences(corpus, attributes, edge_attributes, gold, families, coder),
        attributes_in_all,
        labels,
        features.edges,
        features.seen_pairs,
        edge_index.size if edge_index else 0,
        features.independent,
        templates_of(features, coder, index, edge_index, families, attributes_in_all),
    )
    return Compiled(problem, features, coder, index, families, codes, edge_index)


def gold_of(corpus: Corpus, known: tuple[str, ...]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Number the labels: the known ones first, then, in alphabetical order, those that occur besides."""
    if corpus.labels is None:
        raise Invalid("The corpus has no labels", code="unlabelled_corpus")
    names = corpus.labels.vocabulary.strings()
    present = np.unique(corpus.labels.ids)
    numbers = {name: i for i, name in enumerate(known)}
    for name in sorted(names[i] for i in present):
        numbers.setdefault(name, len(numbers))
    ids = np.array([numbers.get(name, -1) for name in names], np.int32)
    return tuple(numbers), ids[corpus.labels.ids]


def _sequences(
    corpus: Corpus,
    attributes: Attributes,
    edges: Attributes | None,
    gold: NDArray[np.int32],
    families: tuple[Family, ...],
    coder: Coder,
) -> Sequences:
    singles = Cells(attributes.starts, attributes.rows, np.empty(0, np.float32))
    cells = attributes_of(families, corpus, coder.base, singles)
    return Sequences(
        offsets=readonly(corpus.offsets, np.int64),
        starts=cells.starts,
        rows=cells.ids,
        values=cells.values,
        gold=readonly(gold, np.int32),
        edge_starts=edges.starts if edges else readonly(np.empty(0), np.int64),
        edge_rows=edges.rows if edges else readonly(np.empty(0), np.int32),
    )
