"""Columns that look up entries of a lexicon: what `lexicon`, `cluster` and `text` columns share."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import StringConstraints

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.columns.matched.base import (
    Matcher,
    MatchingBase,
    TrainedMatcher,
    TrainingData,
    no_pairs,
)
from tagsmith.core.features.lexicon.lexicon import Kind, Lexicon, Lexicons
from tagsmith.core.features.lexicon.trie import Trie

LexiconId = Annotated[str, StringConstraints(pattern=r"^lex_[0-9a-f]{40}$")]


class Entries(NamedTuple):
    """The entries of a lexicon as a column uses them."""

    sequences: list[list[str]]  # the tokens of each entry
    classes: list[str]  # the names of the classes
    class_of: list[int]  # the class of each entry

    @staticmethod
    def of(sequences: list[list[str]], class_names: Mapping[str, str]) -> "Entries":
        """Number the classes in alphabetical order. `class_names` has one name per sequence, in order."""
        classes = sorted(set(class_names.values()))
        number = {name: i for i, name in enumerate(classes)}
        return Entries(sequences, classes, [number[name] for name in class_names.values()])


class LexiconBase(MatchingBase):
    """The spec of a column that uses a lexicon."""

    #: The kinds of lexicon that the column can use.
    lexicon_kinds: ClassVar[tuple[Kind, ...]]

    def check_lexicon(self, kind: str, pointer: str) -> None:
        """Raise Invalid if the column cannot use a lexicon of this kind. `pointer` names the field of the spec."""
        if kind not in self.lexicon_kinds:
            expected = " or ".join(self.lexicon_kinds)
            fault = Fault(
                f"The column needs a lexicon of kind {expected}. This one is of kind {kind}.", pointer=pointer
            )
            raise Invalid("The lexicon has the wrong kind.", [fault], code="wrong_lexicon_kind")

    @property
    def sharing_key(self) -> tuple[object, ...]:
        return (self.model_dump_json(),)

    def train_matcher(self, name: str, data: TrainingData) -> TrainedMatcher:
        entries = self.entries_of(self._lexicon(name, data.lexicons))
        return TrainedMatcher(self._matcher(entries, data), entries.classes)

    @abstractmethod
    def entries_of(self, lexicon: Lexicon) -> Entries:
        """Take the entries of a lexicon that the column uses."""

    def trie_of(self, ids: Ids, starts: Places, class_of: Ids) -> tuple[Trie, Ids]:
        """Make the trie of sequences of tokens, and give each of its entries the class of the first such sequence."""
        trie, entry_of = Trie.of(ids, starts)
        _, first = np.unique(entry_of, return_index=True)
        return trie, class_of[first]

    def classes_fit(self, matcher: Matcher) -> bool:
        return len(matcher.class_of) == matcher.entries

    def size(self, matcher: Matcher) -> int:
        return matcher.classes

    def names(self, trained: TrainedMatcher, data: TrainingData) -> Callable[[int], str]:  # noqa: ARG002
        return lambda code: trained.classes[code]

    def _lexicon(self, name: str, lexicons: Lexicons) -> Lexicon:
        found = lexicons.get(self.lexicon_id or "")
        pointer = f"/features/derived/{name}/lexicon"
        if found is None:
            fault = Fault("The lexicon does not exist. Upload it first.", pointer=pointer)
            raise Invalid(f"Lexicon {self.lexicon_id} does not exist.", [fault], code="lexicon_not_found")
        self.check_lexicon(found.kind, pointer)
        return found

    def _matcher(self, entries: Entries, data: TrainingData) -> Matcher:
        folding = self.folding
        flat = folding([token for sequence in entries.sequences for token in sequence])
        numbers = {token: number for number, token in enumerate(dict.fromkeys(flat))}
        ids = np.fromiter((numbers[token] for token in flat), np.int32, len(flat))
        lengths = [len(sequence) for sequence in entries.sequences]
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
        trie, class_of = self.trie_of(ids, starts, np.array(entries.class_of, np.int32))
        tokens = Vocabulary.from_strings(list(numbers))
        return Matcher(
            folding,
            self.of,
            tokens,
            data.of_base(self, tokens),
            trie,
            readonly(class_of, np.int32),
            no_pairs(),
        )


def classes_of(ids: Ids, class_of: Ids) -> Ids:
    """Map ids to their classes, and -1 to -1."""
    return np.append(class_of, np.int32(-1))[ids]
