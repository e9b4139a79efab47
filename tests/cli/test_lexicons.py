"""Lexicons that a spec names by files."""

from pathlib import Path
from typing import Any

import pytest

from tagsmith.cli import lexicons
from tagsmith.cli.lexicons import LexiconFile


@pytest.mark.parametrize(
    ("column", "text", "kind"),
    [
        ({"kind": "lexicon"}, "New York\nParis\n", "words"),
        ({"kind": "lexicon"}, "# type, tab, entry\nLOC\tNew York\n\nLOC\tParis\n", "typed"),
        ({"kind": "lexicon", "type": "LOC"}, "LOC Paris Rome\n", "categories"),
        ({"kind": "lexicon", "prefix": 2}, "Aa01 human person\n", "categories"),
        ({"kind": "cluster"}, "0110\tAda\t7\n", "clusters"),
        ({"kind": "text"}, "Any\ttext.\n", "text"),
    ],
)
def test_the_kind_is_what_the_column_takes_and_the_content_shows(
    column: dict[str, Any], text: str, kind: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text(text)
    seen: list[LexiconFile] = []

    def id_of(file: LexiconFile) -> str:
        seen.append(file)
        return "its id"

    spec = {
        "features": {"cutoff": 2, "derived": {"a": {**column, "lexicon": "file"}, "b": {"kind": "shape"}}}
    }
    made = lexicons.with_ids(spec, tmp_path, id_of)
    assert made["features"]["derived"] == {"a": {**column, "lexicon": "its id"}, "b": {"kind": "shape"}}
    assert made["features"]["cutoff"] == 2
    assert seen == [LexiconFile(tmp_path / "file", kind, text.encode())]  # type: ignore[arg-type]
