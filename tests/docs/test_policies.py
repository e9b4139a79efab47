"""The commands of the page about policies work as described."""

import re
from pathlib import Path

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import ApiError, Client
from tagsmith.wire.policies import PromotionPolicy, RetentionPolicy
from tests.docs.test_readme import ROOT, run_script

PAGE = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")


def test_the_commands_run_as_they_stand(stack: BackgroundStack, tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    printed = run_script("\n".join(blocks), stack, tmp_path)
    assert re.findall(r'"code":"(\w+)"', printed) == ["not_evaluated", "policy_not_met"]
    with Client(stack.url) as client:
        back, forced, first = client.history("postal")
        with pytest.raises(ApiError, match="policy_not_found"):
            client.policy("postal")
    assert [(move.action, move.to_version) for move in (back, forced, first)] == [
        ("rollback", 1),
        ("move", 2),
        ("move", 1),
    ]
    assert (back.forced, first.forced) == (None, None)
    assert forced.forced is not None
    assert "and a drop of 0.5 is allowed" in forced.forced


def test_the_table_has_every_field_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", PAGE, re.MULTILINE)
    shown = {"null": None, "`f1`": "f1", '`["champion"]`': ["champion"], "`10`": 10, "`3`": 3}
    fields = PromotionPolicy.model_fields | RetentionPolicy.model_fields
    assert {name: shown[default] for name, default in rows} == {
        name: field.default for name, field in fields.items()
    }
