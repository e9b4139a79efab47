"""`word-pair` columns: word bigrams of the training text."""

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.features.columns.matched.base import Matcher, TrainedMatcher, TrainingData
from tagsmith.core.features.columns.matched.words_base import WordLength, WordsBase
from tagsmith.core.features.lexicon.dictionary import Dictionary, pairs_in


class WordPairColumn(WordsBase):
    """A word bigram of the training text whose second word starts here.

    If there are several, `rank` chooses: 0 is the longest, 1 the next. Words have `shortest` to `longest` tokens.
    """

    kind: Literal["word-pair"]
    shortest: WordLength = 2
    longest: WordLength = 6
    rank: Annotated[int, Field(ge=0, le=15)] = 0

    @model_validator(mode="after")
    def _is_a_range(self) -> "WordPairColumn":
        if self.shortest > self.longest:
            raise ValueError("`shortest` must not be greater than `longest`.")
        return self

    @property
    def lengths(self) -> tuple[int, int]:
        return self.shortest, self.longest

    def size(self, matcher: Matcher) -> int:
        return int(np.count_nonzero(matcher.pairs.rows >= 0))

    def match_tokens(
        self, matcher: Matcher, tokens: Ids, offsets: Places, left_out: Dictionary | None
    ) -> Ids:
        bigrams = left_out.bigrams if left_out else None
        return pairs_in(matcher.trie, matcher.pairs, tokens, offsets, self.lengths, self.rank, bigrams)

    def names(self, trained: TrainedMatcher, data: TrainingData) -> Callable[[int], str]:
        word, known = self.word_names(trained, data), trained.dictionary
        assert known is not None
        return lambda code: "{} {}".format(*map(word, known.pair_of[code].tolist()))
