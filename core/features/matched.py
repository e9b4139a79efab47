"""Columns whose values depend on the whole sentence or on a lexicon: what a spec says of them."""

from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator

from core.features.derived import Derived
from core.specs_base import Spec

LexiconId = Annotated[str, StringConstraints(pattern=r"^lex_[0-9a-f]{40}$")]
ColumnNumber = Annotated[int, Field(ge=0, le=255)]
#: Tokens of a dictionary word: the trie is walked so far from every token.
WordLength = Annotated[int, Field(ge=1, le=16)]
Least = Annotated[int, Field(ge=1, le=1_000_000)]


#: How a word lies at a token.
Side = Literal["start", "end", "inside"]
SIDES: tuple[Side, ...] = get_args(Side)


class _Matched(Spec):
    """`fold_width` reads full-width forms as the plain ones (Unicode's NFKC)."""

    of: ColumnNumber = 0
    fold_width: bool = False

    @property
    def lexicon_id(self) -> str | None:
        """The lexicon it needs, if any."""
        return getattr(self, "lexicon", None)

    @property
    def gathers(self) -> bool:
        """Whether it is made from the labels of the training text."""
        return False


class LexiconColumn(_Matched):
    """Entries of a lexicon found by maximum matching: `O` outside, `B-type` and `I-type` within, or B M E S.

    `type` takes the entries of one type only; `prefix` cuts categories to their first characters; with `unit`
    `character` each character of an entry is a token.
    """

    kind: Literal["lexicon"]
    lexicon: LexiconId
    match: Literal["forward", "backward"] = "forward"
    coding: Literal["iob", "bmes"] = "iob"
    unit: Literal["token", "character"] = "token"
    type: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    prefix: Annotated[int, Field(ge=1, le=64)] | None = None
    fold_case: bool = False


class ClusterColumn(_Matched):
    """The cluster of a word: the first `n` bits of its bit string, all of them without `n`."""

    kind: Literal["cluster"]
    lexicon: LexiconId
    n: Annotated[int, Field(ge=1, le=64)] | None = None
    fold_case: bool = False


class TextColumn(_Matched):
    """What raw text tells of the `n` characters that start here: see `core.lexicon.ngrams`."""

    kind: Literal["text"]
    lexicon: LexiconId
    measure: Literal["left-variety", "right-variety", "information"]
    n: Annotated[int, Field(ge=1, le=4)] = 2

    @model_validator(mode="after")
    def _information_of_several(self) -> "TextColumn":
        if self.measure == "information" and self.n < 2:
            raise ValueError("the information of one character is none: n must be 2 or more")
        return self


class _Gathered(_Matched):
    """Made from the words of training text that occur `least` times or more."""

    least: Least = 1

    @property
    def gathers(self) -> bool:
        return True


class WordColumn(_Gathered):
    """The `n` tokens that start here, where they are a word of the training text."""

    kind: Literal["word"]
    n: WordLength = 2


class WordPairColumn(_Gathered):
    """A word bigram of the training text whose second word starts here.

    Of several it is the one after `rank` longer ones. Words have `shortest` to `longest` tokens.
    """

    kind: Literal["word-pair"]
    shortest: WordLength = 2
    longest: WordLength = 6
    rank: Annotated[int, Field(ge=0, le=15)] = 0

    @model_validator(mode="after")
    def _is_a_range(self) -> "WordPairColumn":
        if self.shortest > self.longest:
            raise ValueError("shortest must not be more than longest")
        return self


class WordLengthColumn(_Gathered):
    """The length of the longest word of the training text that starts here, ends here, or goes on on both sides; or 0.

    Words have 2 to `longest` tokens.
    """

    kind: Literal["word-length"]
    side: Side
    longest: WordLength = 6


class SameColumn(_Matched):
    """Whether the token `n` further on is the same as this one: `same` or `other`; nothing past the end."""

    kind: Literal["same"]
    n: Annotated[int, Field(ge=1, le=16)] = 1


MatchedSpec = (
    LexiconColumn | ClusterColumn | TextColumn | WordColumn | WordPairColumn | WordLengthColumn | SameColumn
)
_KINDS = frozenset({"lexicon", "cluster", "text", "word", "word-pair", "word-length", "same"})


def _sort(column: Any) -> str:
    """Tell columns of one value from those that look further, so that faults are said of the one meant."""
    kind = column.get("kind") if isinstance(column, dict) else getattr(column, "kind", None)
    return "matched column" if isinstance(kind, str) and kind in _KINDS else "derived column"


#: A column in a spec, of either sort.
AnyColumn = Annotated[
    Annotated[Derived, Tag("derived column")]
    | Annotated[Annotated[MatchedSpec, Field(discriminator="kind")], Tag("matched column")],
    Discriminator(_sort),
]
