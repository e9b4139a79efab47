"""`lexicon` columns: entries of a lexicon, found by maximum matching."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.features.columns.matched.base import Folding, Matcher, TrainedMatcher, TrainingData
from tagsmith.core.features.columns.matched.lexicon_base import Entries, LexiconBase, LexiconId
from tagsmith.core.features.lexicon.dictionary import Dictionary
from tagsmith.core.features.lexicon.lexicon import Kind, Lexicon

_PARTS = {"iob": "BI", "bmes": "BMES"}


class LexiconColumn(LexiconBase):
    """Entries of a lexicon found by maximum matching: `O` outside, `B-type` and `I-type` within, or B M E S.

    `type` uses only the entries of one type. `prefix` cuts categories to their first characters. With `unit`
    `character`, each character of an entry is a token.
    """

    kind: Literal["lexicon"]
    lexicon: LexiconId
    match: Literal["forward", "backward"] = "forward"
    coding: Literal["iob", "bmes"] = "iob"
    unit: Literal["token", "character"] = "token"
    type: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    prefix: Annotated[int, Field(ge=1, le=64)] | None = None
    fold_case: bool = False

    lexicon_kinds: ClassVar[tuple[Kind, ...]] = ("words", "typed", "categories")

    @property
    def lexicon_id(self) -> str:
        return self.lexicon

    @property
    def folding(self) -> Folding:
        return Folding(self.fold_case, self.fold_width)

    @property
    def sharing_key(self) -> tuple[object, ...]:
        return (self.model_dump_json(exclude={"match", "coding"}),)

    def entries_of(self, lexicon: Lexicon) -> Entries:
        """Take the entries of the wanted type. The class of an entry with several types names them all: `LOC+PER`."""
        types: dict[str, set[str]] = {}
        for i, entry in enumerate(lexicon.entries):
            name = lexicon.classes[i] if lexicon.classes else ""
            if self.type is None or name == self.type:
                types.setdefault(entry, set()).add(name[: self.prefix])
        if self.unit == "character":
            sequences = [list(entry.replace(" ", "")) for entry in types]
        else:
            sequences = [entry.split(" ") for entry in types]
        return Entries.of(sequences, {entry: "+".join(sorted(names)) for entry, names in types.items()})

    def size(self, matcher: Matcher) -> int:
        return 1 + matcher.classes * len(self._parts)

    def match_tokens(
        self,
        matcher: Matcher,
        tokens: Ids,
        offsets: Places,
        left_out: Dictionary | None,  # noqa: ARG002
    ) -> Ids:
        find = matcher.trie.forward if self.match == "forward" else matcher.trie.backward
        return find(matcher.class_of, tokens, offsets, len(self._parts))

    def names(self, trained: TrainedMatcher, data: TrainingData) -> Callable[[int], str]:  # noqa: ARG002
        def name(code: int) -> str:
            if code == 0:
                return "O"
            number, part = divmod(code - 1, len(self._parts))
            entry_type = trained.classes[number]
            return f"{self._parts[part]}-{entry_type}" if entry_type else self._parts[part]

        return name

    @property
    def _parts(self) -> str:
        return _PARTS[self.coding]
