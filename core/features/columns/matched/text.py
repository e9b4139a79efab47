"""`text` columns: statistics of character n-grams in raw text."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.features.columns.matched.base import Matcher
from tagsmith.core.features.columns.matched.lexicon_base import Entries, LexiconBase, LexiconId, classes_of
from tagsmith.core.features.lexicon.dictionary import Dictionary
from tagsmith.core.features.lexicon.lexicon import Kind, Lexicon
from tagsmith.core.features.lexicon.ngrams import Measure, ngrams_of


class TextColumn(LexiconBase):
    """A statistic of the `n` characters that start here, taken from raw text.

    `left-variety` and `right-variety` count the different characters before or after the n-gram, `information` is
    its pointwise mutual information.
    """

    kind: Literal["text"]
    lexicon: LexiconId
    measure: Measure
    n: Annotated[int, Field(ge=1, le=4)] = 2

    lexicon_kinds: ClassVar[tuple[Kind, ...]] = ("text",)

    @model_validator(mode="after")
    def _needs_two_for_information(self) -> "TextColumn":
        if self.measure == "information" and self.n < 2:
            raise ValueError("One character has no mutual information. Set n to 2 or more.")
        return self

    @property
    def lexicon_id(self) -> str:
        return self.lexicon

    def entries_of(self, lexicon: Lexicon) -> Entries:
        found = ngrams_of(lexicon.entries, self.n, self.measure)
        sequences = [[found.characters[i] for i in row] for row in found.ids.tolist()]
        bins = int(found.bins.max(initial=-1)) + 1
        return Entries(sequences, [str(i) for i in range(bins)], found.bins.tolist())

    def match_tokens(
        self,
        matcher: Matcher,
        tokens: Ids,
        offsets: Places,
        left_out: Dictionary | None,  # noqa: ARG002
    ) -> Ids:
        return classes_of(matcher.trie.starting(tokens, offsets, self.n), matcher.class_of)
