"""`word` columns: words of the training text."""

from collections.abc import Callable
from typing import Literal

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.features.columns.matched.base import Matcher, TrainedMatcher, TrainingData
from tagsmith.core.features.columns.matched.words_base import WordLength, WordsBase
from tagsmith.core.features.lexicon.dictionary import Dictionary


class WordColumn(WordsBase):
    """The `n` tokens that start here, if they are a word of the training text."""

    kind: Literal["word"]
    n: WordLength = 2

    @property
    def lengths(self) -> tuple[int, int]:
        return self.n, self.n

    def size(self, matcher: Matcher) -> int:
        return matcher.entries

    def match_tokens(
        self, matcher: Matcher, tokens: Ids, offsets: Places, left_out: Dictionary | None
    ) -> Ids:
        return matcher.trie.starting(tokens, offsets, self.n, left_out.words if left_out else None)

    def names(self, trained: TrainedMatcher, data: TrainingData) -> Callable[[int], str]:
        return self.word_names(trained, data)
