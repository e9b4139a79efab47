"""The sentences of a corpus as strings, for people to read."""

from dataclasses import dataclass
from itertools import pairwise

from tagsmith.core.corpus.corpus import Corpus


@dataclass(frozen=True, slots=True)
class ReadableSentence:
    """A sentence. Without labels, `labels` is empty; without a tree, `heads` and `relations` are."""

    index: int  # from 0
    tokens: list[str]  # the first column, or the first attribute of each bag
    columns: list[list[str]]  # per token
    labels: list[str]
    length: int  # tokens of the whole sentence
    heads: list[int]  # numbers of tokens from 1; 0 for a root
    relations: list[str]


class Sentences:
    """Reads the sentences of a corpus. The strings of its vocabularies are decoded once."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._columns = [(column.ids, column.vocabulary.strings()) for column in corpus.columns]
        self._attributes = [] if corpus.bag is None else corpus.bag.vocabulary.strings()
        self._relations = [] if corpus.trees is None else corpus.trees.relations.vocabulary.strings()
        self._labels = [] if corpus.labels is None else corpus.labels.vocabulary.strings()

    def read(self, index: int, max_tokens: int | None = None) -> ReadableSentence:
        """Return sentence `index`, counted from 0; of a longer one, the first `max_tokens` tokens."""
        first, end = self.corpus.offsets[index : index + 2].tolist()
        last = end if max_tokens is None else min(end, first + max_tokens)
        cells = self._bags(first, last) if self.corpus.bag is not None else self._cells(first, last)
        labels, trees = self.corpus.labels, self.corpus.trees
        return ReadableSentence(
            index,
            [row[0] if row else "" for row in cells],
            cells,
            [] if labels is None else [self._labels[label] for label in labels.ids[first:last].tolist()],
            end - first,
            [] if trees is None else trees.heads[first:last].tolist(),
            [] if trees is None else [self._relations[i] for i in trees.relations.ids[first:last].tolist()],
        )

    def _cells(self, first: int, last: int) -> list[list[str]]:
        columns = [[strings[i] for i in ids[first:last].tolist()] for ids, strings in self._columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def _bags(self, first: int, last: int) -> list[list[str]]:
        """Return the attributes of each token, with their value if it is not 1."""
        assert self.corpus.bag is not None
        cells = self.corpus.bag.cells.part(first, last)
        values = cells.values.tolist() if cells.values.size else [1.0] * cells.ids.size
        shown = [
            self._attributes[attribute] if value == 1 else f"{self._attributes[attribute]}:{value:g}"
            for attribute, value in zip(cells.ids.tolist(), values, strict=True)
        ]
        starts = cells.starts.tolist()
        return [shown[begin:end] for begin, end in pairwise(starts)]
