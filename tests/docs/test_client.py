"""Every example of the page about the client runs, and prints what the page shows."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tagsmith import Client
from tagsmith.app.cli.background import BackgroundStack
from tests.docs.test_readme import ROOT

PAGE = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_print_what_stands_below_them(
    stack: BackgroundStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAGSMITH_URL", stack.url)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    assert len(EXAMPLES) == PAGE.count("```python")
    with contextlib.ExitStack() as closing:
        for code, shown in EXAMPLES:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            if "client" in names:
                closing.callback(names["client"].close)
            assert _without_other_models(printed.getvalue()) == shown


def _without_other_models(printed: str) -> str:
    """Other tests may have left models on the same stack."""
    return re.sub(r"^\[.*'people'.*\]$", "['people']", printed, flags=re.MULTILINE)


def test_the_page_names_methods_that_exist() -> None:
    for name in re.findall(r"client\.(\w+)\(", PAGE):
        assert hasattr(Client, name), name
