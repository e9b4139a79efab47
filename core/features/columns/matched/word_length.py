"""`word-length` columns: the length of the longest word of the training text at a token."""

from collections.abc import Callable
from typing import Literal

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.features.columns.matched.base import Matcher, TrainedMatcher, TrainingData
from tagsmith.core.features.columns.matched.words_base import WordLength, WordsBase
from tagsmith.core.features.lexicon.dictionary import Dictionary
from tagsmith.core.features.lexicon.trie import Side


class WordLengthColumn(WordsBase):
    """The length of the longest word of the training text that starts here, ends here or has this token inside; or 0.

    Words have 2 to `longest` tokens.
    """

    kind: Literal["word-length"]
    side: Side
    longest: WordLength = 6

    @property
    def lengths(self) -> tuple[int, int]:
        return 2, self.longest

    def size(self, matcher: Matcher) -> int:  # noqa: ARG002
        return self.longest + 1

    def match_tokens(
        self, matcher: Matcher, tokens: Ids, offsets: Places, left_out: Dictionary | None
    ) -> Ids:
        words = left_out.words if left_out else None
        return matcher.trie.lengths(tokens, offsets, self.longest, self.side, words)

    def names(self, trained: TrainedMatcher, data: TrainingData) -> Callable[[int], str]:  # noqa: ARG002
        return str
