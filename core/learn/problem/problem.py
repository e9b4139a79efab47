"""A training problem: a corpus as attribute rows and gold labels, ready for kernels."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import offsets_of, ranges
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.jit import readonly
from tagsmith.core.base.simd import LANES, padded
from tagsmith.core.corpus.bag import Cells
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.labels import partial
from tagsmith.core.features.arc_index import ArcIndex, build_arcs
from tagsmith.core.features.arcs import arc_slots_of
from tagsmith.core.features.columns.bags import BagIndex, attributes_of, learn_bags
from tagsmith.core.features.columns.coder import Coder, Codes
from tagsmith.core.features.columns.tokens import TokenTable
from tagsmith.core.features.index import FeatureIndex, TokenAttributes, build, edge_slots_of, slots_of
from tagsmith.core.features.lexicon.lexicon import NO_LEXICONS, Lexicons
from tagsmith.core.features.resolved import ALL_WEIGHTS, ExistingWeights, Features
from tagsmith.core.inference.chain import Chain, chain
from tagsmith.core.inference.tree.rules import NO_TREES, TreeRules
from tagsmith.core.inference.tree.solver import solver_block
from tagsmith.core.learn.problem import tree_gold
from tagsmith.core.learn.problem.groups import Templates, templates_of
from tagsmith.core.learn.problem.layout import Layout
from tagsmith.core.learn.problem.tree_gold import GoldTrees


class Sequences(NamedTuple):
    """A corpus as kernels read it: sentence i is tokens `offsets[i]:offsets[i+1]`."""

    offsets: NDArray[np.int64]  # (sentences + 1,)
    starts: NDArray[np.int64]  # (tokens + 1,) token t has attributes starts[t]:starts[t+1]
    rows: NDArray[np.int32]  # attribute rows
    values: NDArray[np.float32]  # their values; empty unless `valued`; empty means all are 1
    gold: NDArray[np.int32]  # (tokens,) label ids; may exceed the model's labels in evaluation data
    edge_starts: NDArray[np.int64]  # (tokens + 1,) the same for edge attributes; empty unless `rich`
    edge_rows: NDArray[np.int32]  # edge attributes; the first token of a sentence has none
    weights: NDArray[np.float32]  # (sentences,) how much each sentence counts; empty unless `weighted`
    allowed: NDArray[
        np.uint8
    ]  # (tokens * width / 8,) one bit per label a token may have; empty unless `partial`
    complete: NDArray[np.bool_]  # (sentences,) whether every token has one label; empty unless `partial`
    valued: bool  # whether attributes have values
    rich: bool  # whether tokens have edge attributes
    weighted: bool  # whether sentences have weights
    partial: bool  # whether some tokens have several labels to choose from, or any; their `gold` is -1
    trees: TreeRules  # if present, tokens are the arcs of trees, and only the arcs of the gold tree have a `gold` label


@dataclass(frozen=True, eq=False)
class Problem:
    """Sequences with their number of attributes and their label names.

    `edges` is true if label bigrams are features. `edge_attributes` is the number of attributes combined with label
    bigrams. `existing` is which features have weights. `trainable` restricts these further.
    """

    data: Sequences
    attributes: int
    labels: tuple[str, ...]
    edges: bool
    existing: ExistingWeights = ALL_WEIGHTS
    edge_attributes: int = 0
    independent: bool = False  # whether every token is labelled independently
    templates: Templates | None = None  # the templates of the attributes, if the problem comes from a corpus
    #: The gold trees, if the sentences are trees and whole.
    gold_trees: GoldTrees | None = None
    #: (rows * width / 8,) one bit per trainable weight, as in the mask of `Rows`; the others stay zero. None: no limit.
    trainable: NDArray[np.uint8] | None = None

    @property
    def width(self) -> int:
        return padded(len(self.labels))

    @cached_property
    def layout(self) -> Layout:
        """The layout of the weights, for kernels."""
        return Layout(self.attributes, self.blocks, len(self.labels), self.width, self.edges, self.rich)

    @property
    def blocks(self) -> int:
        """The first row of the edge attribute blocks, after the rows of attributes and transitions."""
        return self.attributes + len(self.labels)

    @property
    def rows(self) -> int:
        """The number of weight rows (see `Layout`)."""
        return self.blocks + self.edge_attributes * len(self.labels)

    @property
    def rich(self) -> bool:
        """Whether tokens have their own transitions."""
        return self.edge_attributes > 0

    @property
    def has_all_weights(self) -> bool:
        """Whether every feature has a weight."""
        return self.existing.all and self.trainable is None

    @property
    def sentences(self) -> int:
        return len(self.data.offsets) - 1

    @property
    def tokens(self) -> int:
        """The number of tokens; of trees, the number of arcs."""
        return int(self.data.offsets[-1])

    @cached_property
    def words(self) -> int:
        """The number of tokens in the text."""
        if not self.data.trees.present:
            return self.tokens
        return int(np.sqrt(np.diff(self.data.offsets)).round().sum())

    @property
    def log_labellings(self) -> float:
        """An upper bound for the loss of all weights zero: the logarithm of the number of labellings."""
        if self.gold_trees is None:
            return self.tokens * log(max(len(self.labels), 2))
        return self.gold_trees.log_trees() + self.words * log(max(len(self.labels), 2))

    @cached_property
    def longest(self) -> int:
        return int(np.max(np.diff(self.data.offsets), initial=0))

    def chain(self, rows: int, dtype: Any) -> Chain:
        """Allocate the scratch of sentences with `rows` tokens in total."""
        trees = solver_block(isqrt(self.longest)) if self.data.trees.present else None
        return chain(rows, len(self.labels), dtype, rich=self.rich, partial=self.data.partial, trees=trees)

    def room(self, batch: int) -> int:
        """Return the number of tokens in the longest possible batch of `batch` sentences."""
        if batch == 1:
            return self.longest
        lengths = np.sort(np.diff(self.data.offsets))[::-1]
        return int(lengths[:batch].sum())

    def cells(self) -> NDArray[np.int64]:
        """The number of rows that each sentence uses, counting repeats."""
        cells = np.diff(self.data.starts[self.data.offsets])
        if self.rich:
            cells = cells + len(self.labels) * np.diff(self.data.edge_starts[self.data.offsets])
        return np.asarray(cells)

    def by_token(self) -> "Problem":
        """If tokens are labelled independently, return the problem with each token as a separate sentence."""
        if not self.independent or self.longest <= 1:
            return self
        data = self.data
        return replace(
            self,
            data=data._replace(
                offsets=readonly(np.arange(self.tokens + 1), np.int64),
                weights=readonly(np.repeat(data.weights, np.diff(data.offsets)), np.float32)
                if data.weighted
                else data.weights,
                complete=readonly(data.gold >= 0, np.bool_) if data.partial else data.complete,
            ),
        )

    def sample(self, sentences: int) -> "Problem":
        """Return the problem restricted to `sentences` evenly spaced sentences."""
        if sentences >= self.sentences:
            return self
        chosen = np.linspace(0, self.sentences - 1, sentences).round().astype(np.int64)
        return self.subset(chosen)

    def with_attributes(self, used: NDArray[np.bool_], used_edges: NDArray[np.bool_]) -> "Problem":
        """Return the problem restricted to the marked attributes and edge attributes, renumbered in the same order."""
        data = self.data
        starts, rows, cells = _picked(data.starts, data.rows, used)
        edge_starts, edge_rows, _ = _picked(data.edge_starts, data.edge_rows, used_edges)
        trainable = self.trainable
        if trainable is not None:
            rows_left = self.rows_with(used, used_edges)
            trainable = readonly(trainable.reshape(self.rows, -1)[rows_left].reshape(-1), np.uint8)
        return replace(
            self,
            trainable=trainable,
            attributes=int(np.count_nonzero(used)),
            edge_attributes=int(np.count_nonzero(used_edges)),
            templates=self.templates and self.templates.picked(used, used_edges),
            data=data._replace(
                starts=starts,
                rows=rows,
                values=readonly(data.values[cells] if data.valued else data.values, np.float32),
                edge_starts=edge_starts,
                edge_rows=edge_rows,
            ),
        )

    def rows_with(self, used: NDArray[np.bool_], used_edges: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the weight rows that remain with only the marked attributes and edge attributes."""
        transitions = np.ones(len(self.labels), np.bool_)
        return np.flatnonzero(np.concatenate([used, transitions, np.repeat(used_edges, len(self.labels))]))

    def occurring(self) -> tuple["Problem", NDArray[np.int64]]:
        """Return the problem without attributes that occur at no token, and the weight rows that remain."""
        used, used_edges = np.zeros(self.attributes, np.bool_), np.zeros(self.edge_attributes, np.bool_)
        used[self.data.rows], used_edges[self.data.edge_rows] = True, True
        return self.with_attributes(used, used_edges), self.rows_with(used, used_edges)

    def subset(self, chosen: NDArray[np.int64]) -> "Problem":
        """Return the problem restricted to the sentences `chosen`, in that order."""
        offsets, starts = self.data.offsets, self.data.starts
        tokens = ranges(offsets[chosen], offsets[chosen + 1])
        cells = ranges(starts[tokens], starts[tokens + 1])
        edge_starts, edge_rows = self.data.edge_starts, self.data.edge_rows
        size = self.width // LANES  # bytes of `allowed` per token
        if self.rich:
            lengths = edge_starts[tokens + 1] - edge_starts[tokens]
            edge_rows = edge_rows[ranges(edge_starts[tokens], edge_starts[tokens + 1])]
            edge_starts = offsets_of(lengths)
        data = Sequences(
            offsets=offsets_of(offsets[chosen + 1] - offsets[chosen]),
            starts=offsets_of(starts[tokens + 1] - starts[tokens]),
            rows=readonly(self.data.rows[cells], np.int32),
            values=readonly(self.data.values[cells] if self.data.valued else self.data.values, np.float32),
            gold=readonly(self.data.gold[tokens], np.int32),
            edge_starts=readonly(edge_starts, np.int64),
            edge_rows=readonly(edge_rows, np.int32),
            weights=readonly(self.data.weights[chosen], np.float32)
            if self.data.weighted
            else self.data.weights,
            allowed=readonly(self.data.allowed.reshape(-1, size)[tokens].reshape(-1), np.uint8)
            if self.data.partial
            else self.data.allowed,
            complete=readonly(self.data.complete[chosen], np.bool_)
            if self.data.partial
            else self.data.complete,
            valued=self.data.valued,
            rich=self.data.rich,
            weighted=self.data.weighted,
            partial=self.data.partial,
            trees=self.data.trees,
        )
        return replace(self, data=data, gold_trees=None)


def _picked(
    starts: NDArray[np.int64], rows: NDArray[np.int32], used: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """Select and renumber the cells of used attributes. Return token starts, attributes and selected cells."""
    cells = used[rows]
    before = offsets_of(cells)
    numbers = np.cumsum(used, dtype=np.int32) - 1
    return readonly(before[starts], np.int64), readonly(numbers[rows[cells]], np.int32), cells


@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled training corpus: the problem, and the data needed to compile other text in the same way.

    `edge_index` numbers the edge attributes, if the features have any.
    """

    problem: Problem
    features: Features
    coder: Coder
    index: FeatureIndex | ArcIndex
    bags: tuple[BagIndex, ...]
    codes: Codes
    edge_index: FeatureIndex | None = None

    def problem_of(self, corpus: Corpus) -> Problem:
        """Compile another corpus with the same features. Unknown labels are numbered after the known ones."""
        tokens = self.coder.tokens_of(corpus)
        codes = self.coder.code(tokens)
        if self.problem.data.trees.present:
            return _problem_of_trees(self.problem, self.index.look_up(codes, corpus.offsets), corpus)
        attributes = self.index.look_up(codes, corpus.offsets)
        edges = None if self.edge_index is None else self.edge_index.look_up(codes, corpus.offsets)
        gold = gold_of(corpus, self.problem.labels)
        return replace(
            self.problem,
            data=_sequences(tokens, attributes, edges, gold, self.bags, corpus.weights),
            labels=gold.labels,
        )


def compile_corpus(features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS) -> Compiled:
    """Compile a training corpus. `lexicons` holds the lexicons that the features name, by id."""
    if features.structure == "tree":
        return _compile_trees(features, corpus, lexicons)
    corpus.needed_labels()
    coder, codes = Coder.trained(features, corpus, lexicons)
    vocabularies = coder.vocabularies
    index, attributes = build(slots_of(features, vocabularies), codes, corpus.offsets, features.cutoff)
    edge_index, edge_attributes = None, None
    if features.rich:
        edge_slots = edge_slots_of(features, vocabularies)
        edge_index, edge_attributes = build(edge_slots, codes, corpus.offsets, features.cutoff)
    bags, attributes_in_all = learn_bags(features.bags, corpus, features.cutoff, index.size)
    gold = gold_of(corpus, ())
    labels = gold.labels
    if len(labels) > np.iinfo(np.int16).max:
        raise Invalid(
            f"The corpus has {len(labels)} labels. At most 32,767 can be trained.", code="too_many_labels"
        )
    problem = Problem(
        _sequences(coder.tokens_of(corpus), attributes, edge_attributes, gold, bags, corpus.weights),
        attributes_in_all,
        labels,
        features.edges,
        features.weights,
        edge_index.size if edge_index else 0,
        features.independent,
        templates_of(features, coder, index, edge_index, bags, attributes_in_all),
    )
    return Compiled(problem, features, coder, index, bags, codes, edge_index)


def _compile_trees(features: Features, corpus: Corpus, lexicons: Lexicons) -> Compiled:
    """Compile a training corpus of trees."""
    trees = tree_gold.trees_of(corpus)
    labels, rules = tree_gold.labels_of(features, trees), tree_gold.rules_of(features, corpus)
    coder, codes = Coder.trained(features, corpus, lexicons)
    slots = arc_slots_of(features, coder.vocabularies)
    index = build_arcs(slots, codes, corpus.offsets, trees.heads, features.cutoff)
    empty = Problem(
        _sequences_of_arcs(rules), index.size, labels, edges=False, existing=features.weights,
        templates=templates_of(features, coder, index, None, (), index.size),
    )  # fmt: skip
    problem = _problem_of_trees(empty, index.look_up(codes, corpus.offsets), corpus)
    return Compiled(problem, features, coder, index, (), codes)


def _problem_of_trees(like: Problem, arcs: TokenAttributes, corpus: Corpus) -> Problem:
    """Return the problem of a corpus whose arcs have these attributes, with the labels and rules of another problem."""
    found = tree_gold.GoldTrees.of(corpus)
    gold, labels = tree_gold.gold_arcs(found.trees, corpus.offsets, like.labels)
    data = like.data._replace(
        offsets=found.arc_offsets(),
        starts=arcs.starts,
        rows=arcs.rows,
        gold=readonly(gold, np.int32),
        weights=readonly(np.empty(0) if corpus.weights is None else corpus.weights, np.float32),
        weighted=corpus.weights is not None,
    )
    return replace(like, data=data, labels=labels, gold_trees=found)


def _sequences_of_arcs(rules: TreeRules) -> Sequences:
    """Return no sentences, under the given rules."""
    places, ids = readonly(np.zeros(1), np.int64), readonly(np.empty(0), np.int32)
    numbers, bits = readonly(np.empty(0), np.float32), readonly(np.empty(0), np.uint8)
    return Sequences(
        offsets=places,
        starts=places,
        rows=ids,
        values=numbers,
        gold=ids,
        edge_starts=readonly(np.empty(0), np.int64),
        edge_rows=ids,
        weights=numbers,
        allowed=bits,
        complete=readonly(np.empty(0), np.bool_),
        valued=False,
        rich=False,
        weighted=False,
        partial=False,
        trees=rules,
    )


@dataclass(frozen=True, eq=False, slots=True)
class Gold:
    """The labels of a corpus as numbers."""

    labels: tuple[str, ...]
    ids: NDArray[np.int32]  # (tokens,) -1 where there is no single label
    allowed: NDArray[np.uint8] | None  # as in `Sequences`, if the labels are partial


def gold_of(corpus: Corpus, known: tuple[str, ...]) -> Gold:
    """Number the labels: first the known ones, then the other labels of the corpus in alphabetical order."""
    labels = corpus.needed_labels()
    names, ids = labels.vocabulary.strings(), labels.ids
    present = [names[i] for i in np.unique(ids)]
    numbers = {name: i for i, name in enumerate(known)}
    for name in sorted(partial.names_of(present) if corpus.partial else present):
        numbers.setdefault(name, len(numbers))
    if corpus.partial:
        choices = partial.Choices.of(names, numbers)
        return Gold(tuple(numbers), choices.single[ids], choices.allowed[ids].reshape(-1))
    table = np.array([numbers.get(name, -1) for name in names], np.int32)
    return Gold(tuple(numbers), table[ids], None)


def _sequences(
    tokens: TokenTable,
    attributes: TokenAttributes,
    edges: TokenAttributes | None,
    gold: Gold,
    bags: tuple[BagIndex, ...],
    weights: NDArray[np.float32] | None,
) -> Sequences:
    singles = Cells(attributes.starts, attributes.rows, np.empty(0, np.float32))
    cells = attributes_of(bags, tokens, singles)
    return Sequences(
        offsets=readonly(tokens.offsets, np.int64),
        starts=cells.starts,
        rows=cells.ids,
        values=cells.values,
        gold=readonly(gold.ids, np.int32),
        edge_starts=edges.starts if edges else readonly(np.empty(0), np.int64),
        edge_rows=edges.rows if edges else readonly(np.empty(0), np.int32),
        weights=readonly(np.empty(0) if weights is None else weights, np.float32),
        allowed=readonly(np.empty(0) if gold.allowed is None else gold.allowed, np.uint8),
        complete=readonly(
            np.empty(0) if gold.allowed is None else _complete(gold.ids, tokens.offsets), np.bool_
        ),
        valued=len(cells.values) > 0,
        rich=edges is not None,
        weighted=weights is not None,
        partial=gold.allowed is not None,
        trees=NO_TREES,
    )


def _complete(gold: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each sentence has a label at every token."""
    open_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(gold < 0)])
    return np.asarray(np.diff(open_before[offsets]) == 0)
