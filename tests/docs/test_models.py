"""The commands of the page about models work as described."""

import re
from pathlib import Path
from typing import get_args

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.model.importing import ModelFormat
from tests.docs.test_readme import ROOT, run_script

PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")


def test_the_commands_run_as_they_stand(stack: BackgroundStack, tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    printed = run_script("\n".join(blocks), stack, tmp_path)
    assert '"tags":[["B-NP","B-VP"]]' in printed
    assert '"added":0,"removed":0,"changed":0' in printed
    with Client(stack.url) as client:
        first, second = sorted(client.versions("brought"), key=lambda version: version.version)
        assert first.sha256 == second.sha256
        assert [(move.action, move.to_version) for move in client.history("brought")] == [
            ("rollback", 2),
            ("rollback", 1),
            ("move", 2),
            ("move", 1),
        ]


def test_the_table_has_every_format() -> None:
    table = PAGE.partition("## Aliases")[0]
    assert re.findall(r"^\| `([a-z]+)` \| ", table, re.MULTILINE)[-4:] == list(get_args(ModelFormat))
