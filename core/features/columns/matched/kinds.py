"""The kinds of matched columns, and of all columns that a spec can describe."""

from typing import Annotated, Any, get_args

from pydantic import Discriminator, Field, Tag

from tagsmith.core.features.columns.derived import Derived
from tagsmith.core.features.columns.matched.cluster import ClusterColumn
from tagsmith.core.features.columns.matched.lexicon import LexiconColumn
from tagsmith.core.features.columns.matched.same import SameColumn
from tagsmith.core.features.columns.matched.text import TextColumn
from tagsmith.core.features.columns.matched.word import WordColumn
from tagsmith.core.features.columns.matched.word_length import WordLengthColumn
from tagsmith.core.features.columns.matched.word_pair import WordPairColumn

MatchedSpec = (
    LexiconColumn | ClusterColumn | TextColumn | WordColumn | WordPairColumn | WordLengthColumn | SameColumn
)
_KINDS = frozenset(
    name for column in get_args(MatchedSpec) for name in get_args(column.model_fields["kind"].annotation)
)


def _tag(column: Any) -> str:
    """Choose the member of the union by `kind`, so that errors are about the column that was meant."""
    kind = column.get("kind") if isinstance(column, dict) else getattr(column, "kind", None)
    return "matched column" if isinstance(kind, str) and kind in _KINDS else "derived column"


#: A column in a spec, derived or matched.
AnyColumn = Annotated[
    Annotated[Derived, Tag("derived column")]
    | Annotated[Annotated[MatchedSpec, Field(discriminator="kind")], Tag("matched column")],
    Discriminator(_tag),
]
