"""A corpus: integer columns with a vocabulary and one id per token, and the offsets of sentences.

Instead of columns, tokens may have bags of named attributes with values (see `bag`). Instead of labels, they may have
heads and relations: the sentences are then dependency trees (see `trees`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places, ranges
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.hashing import GOLDEN, splitmix64_of
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus import trees as tree_kernels
from tagsmith.core.corpus.bag import Bag
from tagsmith.core.corpus.labels import partial
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tagsmith.core.corpus.vocabulary import Vocabulary

#: What is wrong with a corpus of trees where labels are needed.
TREES_NOT_LABELS = (
    "has dependency trees, which cannot be used for this yet. Upload it again with a field as `label`."
)


#: The relation of words that have none.
NO_RELATION = "_"


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """One column: a vocabulary, and the id of each token's value in it."""

    name: str
    vocabulary: Vocabulary
    ids: Ids  # (tokens,), always read-only, so that kernels are compiled for one type

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", readonly(self.ids, np.int32))

    def of_tokens(self, tokens: Places) -> "Column":
        """Return the column of these tokens, with the same vocabulary."""
        return Column(self.name, self.vocabulary, self.ids[tokens])


@dataclass(frozen=True, eq=False, slots=True)
class Trees:
    """The dependency trees of all sentences."""

    heads: Ids  # (tokens,) number of the head within its sentence, from 1; 0 for a root
    relations: Column  # of each token to its head

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", readonly(self.heads, np.int32))

    @property
    def has_relations(self) -> bool:
        """Whether relations can be learned: there are at least two, and every word has one."""
        present = np.unique(self.relations.ids)
        return present.size > 1 and not bool((present == self.relations.vocabulary.id_of(NO_RELATION)).any())

    def of_tokens(self, tokens: Places) -> "Trees":
        """Return the trees of whole sentences, given by their tokens."""
        return Trees(self.heads[tokens], self.relations.of_tokens(tokens))


@dataclass(frozen=True, eq=False, slots=True)
class Corpus:
    """Sentences of tokens. Tokens have attribute columns or bags of attributes and, if labelled, a label or a head."""

    columns: tuple[Column, ...]
    labels: Column | None
    offsets: Places  # (sentences + 1,): sentence i is tokens offsets[i]:offsets[i + 1]
    bag: Bag | None = None
    #: What splits text into tokens like these; None if the upload does not name one.
    tokenizer: Tokenizer | None = None
    #: (sentences,) how much each sentence counts in training; None if all count the same.
    weights: NDArray[np.float32] | None = None
    #: Whether labels may be left open, as `labels.partial` describes.
    partial: bool = False
    #: The heads of the tokens, and their relations to them; a corpus with trees has no labels.
    trees: Trees | None = None

    def __post_init__(self) -> None:
        """Check ids and offsets once: training kernels use them as indices without checks."""
        object.__setattr__(self, "offsets", readonly(self.offsets, np.int64))
        offsets = self.offsets
        if offsets.ndim != 1 or offsets.size < 1 or offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
            raise ValueError("offsets must rise from 0")
        for column in self.every_column():
            ids = column.ids
            if ids.shape != (self.tokens,):
                raise ValueError(f"column {column.name} has {ids.size} ids for {self.tokens} tokens")
            if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < len(column.vocabulary):
                raise ValueError(f"column {column.name} has an id outside its vocabulary")
        if self.weights is not None and self.weights.shape != (self.sentences,):
            raise ValueError(f"{self.weights.size} weights for {self.sentences} sentences")
        if self.bag is not None and self.bag.cells.tokens != self.tokens:
            raise ValueError(f"{self.bag.cells.tokens} bags for {self.tokens} tokens")
        if self.trees is not None:
            self._check_trees(self.trees)

    def _check_trees(self, trees: Trees) -> None:
        if self.labels is not None:
            raise ValueError("a corpus has labels or trees, not both")
        if trees.heads.shape != (self.tokens,):
            raise ValueError(f"{trees.heads.size} heads for {self.tokens} tokens")
        fault = tree_kernels.fault_in(trees.heads, self.offsets)
        if fault is not None:
            raise ValueError(f"the heads of sentence {fault} are not a tree")

    def every_column(self) -> tuple[Column, ...]:
        """Return the attribute columns, then the labels or the relations if there are any."""
        last = self.trees.relations if self.trees is not None else self.labels
        return self.columns if last is None else (*self.columns, last)

    @property
    def labelled(self) -> bool:
        """Whether there is something to learn from: labels or trees."""
        return self.labels is not None or self.trees is not None

    def needed_labels(self) -> Column:
        """Return the labels. Raises `Invalid` if the tokens have none."""
        if self.labels is not None:
            return self.labels
        if self.trees is not None:
            raise Invalid(f"The corpus {TREES_NOT_LABELS}", code="unlabelled_corpus")
        raise Invalid("The corpus has no labels. Upload it with labels.", code="unlabelled_corpus")

    @property
    def names(self) -> list[str]:
        """The names of the attribute columns."""
        return [column.name for column in self.columns]

    @property
    def sentences(self) -> int:
        return self.offsets.size - 1

    @property
    def tokens(self) -> int:
        return int(self.offsets[-1])

    def subset(self, indices: Sequence[int] | NDArray[np.int64]) -> "Corpus":
        """Return the sentences `indices`, in that order, with the same vocabularies."""
        chosen = np.asarray(indices, np.int64)
        if chosen.size and not 0 <= int(chosen.min()) <= int(chosen.max()) < self.sentences:
            raise IndexError("no such sentence")
        starts = self.offsets[chosen]
        offsets = np.zeros(chosen.size + 1, np.int64)
        np.cumsum(self.offsets[chosen + 1] - starts, out=offsets[1:])
        tokens = ranges(starts, self.offsets[chosen + 1])
        return Corpus(
            tuple(column.of_tokens(tokens) for column in self.columns),
            None if self.labels is None else self.labels.of_tokens(tokens),
            offsets,
            None if self.bag is None else Bag(self.bag.vocabulary, self.bag.cells.of_tokens(tokens)),
            self.tokenizer,
            None if self.weights is None else self.weights[chosen],
            self.partial,
            None if self.trees is None else self.trees.of_tokens(tokens),
        )

    @property
    def label_names(self) -> list[str]:
        """The labels in order of first occurrence. Of partial labels, those that they name."""
        names = [] if self.labels is None else self.labels.vocabulary.strings()
        return partial.names_of(names) if self.partial else names

    def complete(self) -> NDArray[np.int64]:
        """Return the sentences in which every token has one label: those that can be compared with tags."""
        if not self.partial or self.labels is None:
            return np.arange(self.sentences)
        single = np.array([partial.is_single(name) for name in self.labels.vocabulary.strings()], np.bool_)
        open_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(~single[self.labels.ids])])
        return np.flatnonzero(np.diff(open_before[self.offsets]) == 0)

    def comparable(self) -> "Corpus":
        """Return the corpus of its complete sentences. Raise Invalid if there are none."""
        if not self.partial:
            return self
        chosen = self.complete()
        if not chosen.size:
            raise Invalid(
                "No sentence is labelled at every token, so nothing can be scored. Score on another corpus.",
                code="no_complete_sentence",
            )
        return self.subset(chosen)

    def split(self, fraction: float, seed: int) -> tuple["Corpus", "Corpus"]:
        """Return (train, dev) with about `fraction` of the sentences in dev, each in the order of the corpus.

        The split depends only on the seed and the number of sentences. It does not change with releases of libraries.
        With partial labels, dev gets this fraction of the complete sentences.
        """
        if not 0.0 < fraction < 1.0:
            raise ValueError("fraction must lie between 0 and 1")
        if self.sentences < 2:
            raise Invalid(
                "A corpus of one sentence cannot be split. Add sentences, or provide a second corpus.",
                code="corpus_too_small",
            )
        order, rest = shuffled(self.sentences, seed), np.empty(0, np.int64)
        if self.partial:
            whole = np.isin(order, self.complete())
            order, rest = order[whole], order[~whole]
            if order.size < 2:
                raise Invalid(
                    "Fewer than two sentences are labelled at every token, so none can be held out. Provide a second "
                    "corpus for `dev`, or train without.",
                    code="no_complete_sentence",
                )
        held_out = min(max(1, round(fraction * order.size)), order.size - 1)
        train = np.concatenate([order[held_out:], rest])
        return self.subset(np.sort(train)), self.subset(np.sort(order[:held_out]))


def shuffled(count: int, seed: int) -> NDArray[np.int64]:
    """Return the numbers below `count`, shuffled by the seed. The order does not change with releases of libraries."""
    return np.argsort(_mixed(count, seed), kind="stable")


def _mixed(count: int, seed: int) -> NDArray[np.uint64]:
    """Return the first `count` outputs of splitmix64 from `seed`."""
    states = np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
    return splitmix64_of(states + np.uint64(seed & 0xFFFFFFFFFFFFFFFF))
