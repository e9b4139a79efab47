"""Base classes of matched columns.

A matched column is computed in three steps. Each token is mapped to a token of a matcher, once per distinct string.
A kernel matches the sentences and gives each token a raw code. The raw codes are mapped to values of the column's
vocabulary. Training and tagging take the same steps, except for words gathered from training text: see
`tagsmith.core.features.lexicon.dictionary`.
"""

import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.hash_table import Table
from tagsmith.core.base.jit import readonly
from tagsmith.core.base.spec import Spec
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.vocabulary import Vocabulary, pack
from tagsmith.core.features.columns.codes import UNKNOWN
from tagsmith.core.features.columns.tokens import TokenColumn
from tagsmith.core.features.lexicon.dictionary import Dictionary
from tagsmith.core.features.lexicon.lexicon import Lexicons
from tagsmith.core.features.lexicon.trie import Trie

ColumnNumber = Annotated[int, Field(ge=0, le=255)]


class Folding(NamedTuple):
    """Normalises strings before they are compared."""

    case: bool
    width: bool

    def __call__(self, strings: Sequence[str]) -> list[str]:
        if self.width:
            strings = [unicodedata.normalize("NFKC", text) for text in strings]
        return [text.casefold() for text in strings] if self.case else list(strings)


@dataclass(frozen=True, eq=False)
class Matcher:
    """The entries that columns look up. Columns that need the same entries share one matcher."""

    folding: Folding
    of: int  # the column of the corpus
    tokens: Vocabulary
    of_base: Ids  # (values of the corpus column,) the matcher's token, or -1
    trie: Trie
    class_of: Ids  # (entries,) the class of each entry, or (tokens,) without a trie; empty without classes
    pairs: Table

    def tokens_of(self, text: TokenColumn) -> Ids:
        """Map each token of a text to the matcher's token, or to -1."""
        return readonly(text.mapped(self.of_base, self._tokens_of_strings), np.int32)

    def _tokens_of_strings(self, strings: Sequence[str]) -> Ids:
        return self.tokens.lookup(*pack(self.folding(strings)))

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.class_of.max(initial=-1)) + 1

    @property
    def entries(self) -> int:
        """The number of entries in the trie."""
        return int(self.trie.nodes.entries.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class TrainedMatcher:
    """A matcher during training, with the names of its classes and the dictionary it was made from."""

    matcher: Matcher
    classes: list[str] = field(default_factory=list)
    dictionary: Dictionary | None = None


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The input of training: the corpus, the lexicons by id, and the specs of all matched columns."""

    corpus: Corpus
    lexicons: Lexicons
    specs: Sequence["MatchedBase"]

    def strings(self, spec: "MatchedBase") -> list[str]:
        """The folded vocabulary of the corpus column that `spec` reads."""
        return spec.folding(self.corpus.columns[spec.of].vocabulary.strings())

    def of_base(self, spec: "MatchedBase", tokens: Vocabulary) -> Ids:
        """Map the values of the corpus column to `tokens`, or to -1."""
        return readonly(tokens.lookup(*pack(self.strings(spec))), np.int32)


class MatchedBase(Spec):
    """The spec of a matched column. `fold_width` reads full-width forms as the plain ones (Unicode's NFKC)."""

    of: ColumnNumber = 0
    fold_width: bool = False

    @property
    def lexicon_id(self) -> str | None:
        """The lexicon that the column needs, if any."""
        return None

    @property
    def gathers(self) -> bool:
        """Whether the column is made from the labels of the training text."""
        return False

    @property
    def folding(self) -> Folding:
        return Folding(case=False, width=self.fold_width)

    @property
    @abstractmethod
    def sharing_key(self) -> tuple[object, ...]:
        """Columns with equal keys share a matcher."""

    @abstractmethod
    def train_matcher(self, name: str, data: TrainingData) -> TrainedMatcher | None:
        """Make the matcher of the column called `name`; None for a kind that needs none."""

    @abstractmethod
    def fits(self, matcher: Matcher | None) -> bool:
        """Whether a matcher, read from an untrusted file, is one that this column can use."""

    @abstractmethod
    def raw_size(self, matcher: Matcher | None) -> int:
        """The number of raw codes that the column can have."""

    @abstractmethod
    def raw_codes(
        self, matcher: Matcher | None, text: TokenColumn, left_out: Dictionary | None = None
    ) -> Ids:
        """The raw code of each token, -1 where nothing is found.

        `left_out` is the dictionary if the text is the one that the dictionary was gathered from.
        """

    @abstractmethod
    def raw_names(self, trained: TrainedMatcher | None, data: TrainingData) -> Callable[[int], str]:
        """Return a function from a raw code to the value that it becomes."""


class MatchingBase(MatchedBase):
    """The spec of a column that uses a matcher."""

    def fits(self, matcher: Matcher | None) -> bool:
        return matcher is not None and matcher.of == self.of and self.classes_fit(matcher)

    def raw_size(self, matcher: Matcher | None) -> int:
        assert matcher is not None
        return self.size(matcher)

    def raw_codes(
        self, matcher: Matcher | None, text: TokenColumn, left_out: Dictionary | None = None
    ) -> Ids:
        assert matcher is not None
        return self.match_tokens(matcher, matcher.tokens_of(text), text.offsets, left_out)

    def raw_names(self, trained: TrainedMatcher | None, data: TrainingData) -> Callable[[int], str]:
        assert trained is not None
        return self.names(trained, data)

    @abstractmethod
    def classes_fit(self, matcher: Matcher) -> bool:
        """Whether the classes of a matcher have the size that this kind needs."""

    @abstractmethod
    def size(self, matcher: Matcher) -> int:
        """The number of raw codes, as `raw_size`."""

    @abstractmethod
    def match_tokens(
        self, matcher: Matcher, tokens: Ids, offsets: Places, left_out: Dictionary | None
    ) -> Ids:
        """The raw code of each token, as `raw_codes`. `tokens` are those of the matcher."""

    @abstractmethod
    def names(self, trained: TrainedMatcher, data: TrainingData) -> Callable[[int], str]:
        """Return a function from a raw code to its value, as `raw_names`."""


@dataclass(frozen=True, eq=False)
class MatchedColumn:
    """A matched column of a model."""

    name: str
    spec: MatchedBase
    vocabulary: Vocabulary
    value_of: Ids  # (raw codes,) the value of each raw code, or UNKNOWN
    matcher: Matcher | None

    def codes(self, text: TokenColumn) -> Ids:
        """The values of a text that is not the training text."""
        return self.of_raw(self.spec.raw_codes(self.matcher, text))

    def of_raw(self, raw: Ids) -> Ids:
        """Map raw codes to values, and -1 to UNKNOWN."""
        return np.append(self.value_of, np.int32(UNKNOWN))[raw]

    def restricted(self, vocabulary: Vocabulary, value_of: Ids) -> "MatchedColumn":
        """The column with fewer values."""
        return replace(self, vocabulary=vocabulary, value_of=readonly(value_of, np.int32))


def no_pairs() -> Table:
    """A table without word bigrams."""
    return Table.of(np.empty(0, np.uint64))
