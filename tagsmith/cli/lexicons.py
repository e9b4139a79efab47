"""Lexicons of a spec that are files. A column names one by its path: `lexicon: cities.txt`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tagsmith.cli import recognition, specs
from tagsmith.cli.errors import CommandError

if TYPE_CHECKING:
    from tagsmith.client import Client
    from tagsmith.core.features.lexicon.lexicon import Kind

_ID = re.compile(r"lex_[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class LexiconFile:
    """The text of a lexicon, decompressed, and its kind."""

    path: Path
    kind: "Kind"
    text: bytes


def with_ids(spec: dict[str, Any], folder: Path, id_of: Callable[[LexiconFile], str]) -> dict[str, Any]:
    """Return the spec with the id of a lexicon wherever a column names a file. `folder` is that of the spec file."""
    features = specs.object_in(spec, "features")
    columns = specs.object_in(features, "derived")
    derived = {
        name: {**column, "lexicon": id_of(_read(name, column, folder))} if _names_file(column) else column
        for name, column in columns.items()
    }
    return {**spec, "features": {**features, "derived": derived}} if derived != columns else spec


def uploaded(client: "Client", spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Upload the lexicons that a spec names by files. One that the server has is not stored again."""
    from tagsmith.client.files import corpus_name  # noqa: PLC0415

    return with_ids(
        spec, folder, lambda file: client.upload_lexicon(file.text, corpus_name(file.path), file.kind).id
    )


def _names_file(column: Any) -> bool:
    named = column.get("lexicon") if isinstance(column, dict) else None
    return isinstance(named, str) and _ID.fullmatch(named) is None


def _read(name: str, column: Mapping[str, Any], folder: Path) -> LexiconFile:
    path = specs.path_of(column["lexicon"], folder)
    if not path.is_file():
        raise CommandError(f"features.derived.{name}: there is no lexicon file {path}.")
    with path.open("rb") as file:
        text = b"".join(recognition.decoded(file))
    return LexiconFile(path, _kind_of(column, text), text)


def _kind_of(column: Mapping[str, Any], text: bytes) -> "Kind":
    """Return the kind that the column takes. If it takes several, lines with tabs have types.

    Words and categories look the same. A column that chooses a type or cuts categories needs the latter.
    """
    from tagsmith.core.features.columns.matched.kinds import MatchedSpec  # noqa: PLC0415
    from tagsmith.core.features.columns.matched.lexicon_base import LexiconBase  # noqa: PLC0415

    columns: list[type[LexiconBase]] = [
        each for each in get_args(MatchedSpec) if issubclass(each, LexiconBase)
    ]
    for each in columns:
        own = column.get("kind") in get_args(each.model_fields["kind"].annotation)
        if own and len(each.lexicon_kinds) == 1:
            return each.lexicon_kinds[0]
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith((b"# ", b"#\t"))]
    if all(b"\t" in line for line in lines):
        return "typed"
    return "words" if column.get("type") is None and column.get("prefix") is None else "categories"
