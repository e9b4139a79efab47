"""The option tables of the pages for users of other programs name trainers, fields and options that exist."""

import re
from pathlib import Path

import pytest
import typer.main

from tagsmith.cli.main import app
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.run.stopping import FlatStop, PatienceStop
from tagsmith.core.learn.trainers.registry import SPECS
from tests.docs.pages import ROOT

PAGES = sorted((ROOT / "docs" / "how-to").glob("coming-from-*.md"))
TRAINERS = {str(spec.model_fields["kind"].default): spec for spec in SPECS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_trainers_and_fields_of_the_tables_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"--trainer ([\w-]+)", text)) <= set(TRAINERS)
    fields = {
        "trainer": {name for spec in TRAINERS.values() for name in spec.model_fields},
        "features": set(FeatureSpec.model_fields),
        "stop": {*PatienceStop.model_fields, *FlatStop.model_fields},
    }
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    for part, name in re.findall(r"\b(trainer|features|stop)\.([A-Za-z_]\w*)", table.replace(".md", "")):
        assert name in fields[part], f"{part}.{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_options_of_the_tables_exist(page: Path) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    known = {
        name: {flag for each in command.params for flag in each.opts} for name, command in commands.items()
    }
    for name, rest in re.findall(
        r"tagsmith (train|tag|eval)((?: [^`\n|]*)?)", page.read_text(encoding="utf-8")
    ):
        assert set(re.findall(r" (--[\w-]+)", rest)) <= known[name], (name, rest)
