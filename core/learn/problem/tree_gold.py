"""Dependency trees as a training problem: the arcs of a sentence are its tokens, and the relations are its labels."""

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places, offsets_of
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.corpus import trees as tree_kernels
from tagsmith.core.corpus.corpus import Column, Corpus, Trees
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.evaluate.trees import TreeMetrics, evaluate, punctuation, usable_relations
from tagsmith.core.features.arcs import arc_of
from tagsmith.core.features.resolved import Features
from tagsmith.core.inference.tree.rules import HEAD, TreeRules

#: Columns that hold the words of a corpus, by name; otherwise the first column does.
_FORMS = ("form", "word", "token")


@dataclass(frozen=True, eq=False, slots=True)
class GoldTrees:
    """The gold trees behind the arcs of a problem."""

    trees: Trees
    offsets: Places  # (sentences + 1,) over words
    punctuation: NDArray[np.bool_]  # (words,)

    @classmethod
    def of(cls, corpus: Corpus) -> "GoldTrees":
        """Return the gold trees of a corpus."""
        forms = next((column for column in corpus.columns if column.name in _FORMS), corpus.columns[0])
        return cls(trees_of(corpus), corpus.offsets, punctuation(forms))

    @property
    def words(self) -> int:
        return int(self.offsets[-1])

    def arc_offsets(self) -> Places:
        """Return the first arc of each sentence, and the end of the last one."""
        lengths = np.diff(self.offsets)
        return offsets_of(lengths * lengths)

    def log_trees(self) -> float:
        """Return the logarithm of the number of ways to choose all trees, with several roots (Cayley)."""
        return float(sum((n - 1) * log(n + 1) for n in np.diff(self.offsets).tolist() if n))

    def score(self, chosen: NDArray[np.int32], labels: tuple[str, ...]) -> TreeMetrics:
        """Score predicted trees, given by the label of each arc, -1 for arcs that they do not have."""
        return evaluate(self.trees, self.predicted(chosen, labels), self.offsets, self.punctuation)

    def predicted(self, chosen: NDArray[np.int32], labels: tuple[str, ...]) -> Trees:
        """Return trees that are given by the label of each arc."""
        arcs = np.flatnonzero(chosen >= 0)
        lengths = np.repeat(np.diff(self.offsets), np.diff(self.offsets))
        within = arcs - np.repeat(self.arc_offsets()[:-1], np.diff(self.offsets))
        modifiers, heads = within // lengths + 1, within % lengths
        heads += heads >= modifiers
        names = Vocabulary.from_strings(list(labels))
        return Trees(heads.astype(np.int32), Column("deprel", names, chosen[arcs]))


def trees_of(corpus: Corpus) -> Trees:
    """Return the trees of a corpus, or raise `Invalid` if it has none."""
    if corpus.trees is None:
        raise Invalid(
            "The corpus has no dependency trees. Upload it as CoNLL-U with `label=tree`, or use features of tokens.",
            code="unlabelled_corpus",
        )
    return corpus.trees


def rules_of(features: Features, corpus: Corpus) -> TreeRules:
    """Return which trees a model of a training corpus considers."""
    trees, projective = trees_of(corpus), features.projective
    if projective is None:
        projective = not tree_kernels.nonprojective(trees.heads, corpus.offsets).any()
    single = (tree_kernels.root_counts(trees.heads, corpus.offsets) <= 1).all()
    return TreeRules(present=True, projective=bool(projective), single_root=bool(single))


def labels_of(features: Features, trees: Trees) -> tuple[str, ...]:
    """Return the labels of arcs: that of the head and, if they can be learned, the relations in alphabetical order."""
    names = trees.relations.vocabulary.strings()
    present = sorted(names[i] for i in np.unique(trees.relations.ids))
    if HEAD in present:
        raise Invalid(
            f"The relation {HEAD!r} is reserved. Rename it in the corpus.", code="reserved_relation"
        )
    return (HEAD, *(present if features.relations and usable_relations(trees.relations) else ()))


def gold_arcs(trees: Trees, offsets: Places, known: tuple[str, ...]) -> tuple[Ids, tuple[str, ...]]:
    """Return the label of each arc, -1 for arcs that are not in the gold trees, and all labels.

    Relations that are not known are numbered after the known labels. Without known relations, all gold arcs have the
    label of the head.
    """
    numbers = {name: i for i, name in enumerate(known)}
    names = trees.relations.vocabulary.strings()
    if len(known) > 1:
        for name in sorted(names[i] for i in np.unique(trees.relations.ids)):
            numbers.setdefault(name, len(numbers))
    table = np.array([numbers.get(name, 0) for name in names], np.int32)
    lengths = np.diff(offsets)
    gold = np.full(int((lengths * lengths).sum()), -1, np.int32)
    _mark_gold(trees.heads, readonly(table[trees.relations.ids], np.int32), readonly(offsets, np.int64), gold)
    return gold, tuple(numbers)


@kernel
def _mark_gold(heads: Ids, relations: Ids, offsets: Places, gold: Ids) -> None:
    first = 0
    for sentence in range(offsets.shape[0] - 1):
        begin, n = offsets[sentence], offsets[sentence + 1] - offsets[sentence]
        for m in range(1, n + 1):
            gold[first + arc_of(heads[begin + m - 1], m, n)] = relations[begin + m - 1]
        first += n * n
