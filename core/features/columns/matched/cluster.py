"""`cluster` columns: the cluster of a word, such as its Brown cluster."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.features.columns.matched.base import Folding, Matcher
from tagsmith.core.features.columns.matched.lexicon_base import Entries, LexiconBase, LexiconId, classes_of
from tagsmith.core.features.lexicon.dictionary import Dictionary
from tagsmith.core.features.lexicon.lexicon import Kind, Lexicon
from tagsmith.core.features.lexicon.trie import Trie


class ClusterColumn(LexiconBase):
    """The cluster of a word: the first `n` bits of its bit string, or all bits without `n`."""

    kind: Literal["cluster"]
    lexicon: LexiconId
    n: Annotated[int, Field(ge=1, le=64)] | None = None
    fold_case: bool = False

    lexicon_kinds: ClassVar[tuple[Kind, ...]] = ("clusters",)

    @property
    def lexicon_id(self) -> str:
        return self.lexicon

    @property
    def folding(self) -> Folding:
        return Folding(self.fold_case, self.fold_width)

    def entries_of(self, lexicon: Lexicon) -> Entries:
        """Take all words. A word with several clusters keeps the first in alphabetical order."""
        clusters: dict[str, str] = {}
        for entry, bits in zip(lexicon.entries, lexicon.classes, strict=True):
            cut = bits[: self.n]
            clusters[entry] = min(cut, clusters.get(entry, cut))
        return Entries.of([[entry] for entry in clusters], clusters)

    def trie_of(self, ids: Ids, starts: Places, class_of: Ids) -> tuple[Trie, Ids]:
        """Classes belong to single tokens, so the trie is empty. Of words that fold to the same, the first counts."""
        _, first = np.unique(ids, return_index=True)
        return Trie.of(ids[:0], starts[:1])[0], class_of[first]

    def classes_fit(self, matcher: Matcher) -> bool:
        return len(matcher.class_of) == len(matcher.tokens)

    def match_tokens(
        self,
        matcher: Matcher,
        tokens: Ids,
        offsets: Places,  # noqa: ARG002
        left_out: Dictionary | None,  # noqa: ARG002
    ) -> Ids:
        return classes_of(tokens, matcher.class_of)
