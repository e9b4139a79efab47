"""Columns of words that are gathered from training text: what `word`, `word-pair` and `word-length` columns share."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.labels.segmentation import is_coding, word_starts
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.columns.matched.base import Matcher, MatchingBase, TrainedMatcher, TrainingData
from tagsmith.core.features.lexicon.dictionary import Dictionary

#: Tokens of a dictionary word. The trie is walked this far from every token.
WordLength = Annotated[int, Field(ge=1, le=16)]


class WordsBase(MatchingBase):
    """The spec of a column that uses the words of the training text that occur at least `least` times."""

    least: Annotated[int, Field(ge=1, le=1_000_000)] = 1

    @property
    def gathers(self) -> bool:
        return True

    @property
    @abstractmethod
    def lengths(self) -> tuple[int, int]:
        """The shortest and the longest words that the column needs, in tokens."""

    @property
    def sharing_key(self) -> tuple[object, ...]:
        return ("training", self.of, self.fold_width, self.least)

    def train_matcher(self, name: str, data: TrainingData) -> TrainedMatcher:
        corpus = data.corpus
        tokens = Vocabulary.from_strings(list(dict.fromkeys(data.strings(self))))
        of_base = data.of_base(self, tokens)
        lengths = [
            each.lengths
            for each in data.specs
            if isinstance(each, WordsBase) and each.sharing_key == self.sharing_key
        ]
        found = Dictionary.gathered(
            of_base[corpus.columns[self.of].ids],
            _word_starts(name, corpus),
            corpus.offsets,
            (min(shortest for shortest, _ in lengths), max(longest for _, longest in lengths)),
            self.least,
        )
        no_classes = readonly(np.empty(0, np.int32), np.int32)
        matcher = Matcher(self.folding, self.of, tokens, of_base, found.trie, no_classes, found.pairs)
        return TrainedMatcher(matcher, dictionary=found)

    def classes_fit(self, matcher: Matcher) -> bool:  # noqa: ARG002
        return True

    def word_names(self, trained: TrainedMatcher, data: TrainingData) -> Callable[[int], str]:
        """Return a function from the number of a word to the word."""
        known, strings, ids = trained.dictionary, data.strings(self), data.corpus.columns[self.of].ids
        assert known is not None

        def word(number: int) -> str:
            start = int(known.word_at[number])
            return "".join(strings[i] for i in ids[start : start + int(known.length_of[number])].tolist())

        return word


def _word_starts(name: str, corpus: Corpus) -> NDArray[np.bool_]:
    """Mark the tokens where words start. Text without labels, which only a preview has, has no known words."""
    labels = corpus.labels
    if labels is None:
        return np.zeros(corpus.tokens, np.bool_)
    names = labels.vocabulary.strings()
    if not is_coding([names[i] for i in np.unique(labels.ids).tolist()]):
        fault = Fault(
            "The column needs labels that segment the text into words: B I, B M E S or B B2 B3 M E S.",
            pointer=f"/features/derived/{name}",
        )
        raise Invalid("The corpus is not a segmentation corpus.", [fault], code="not_segmented")
    return word_starts(names, labels.ids, corpus.offsets)
