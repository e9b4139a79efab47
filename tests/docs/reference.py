"""Writes the reference pages: `python -m tests.docs.reference`.

The descriptions of operations, commands, settings and metrics are in the code. The sentences about error codes are in
the page itself: this script adds new codes without a sentence, and removes codes that no longer exist.
"""

import re
from pathlib import Path
from typing import NamedTuple

from pydantic_core import PydanticUndefined

from tagsmith.app.metrics import names
from tagsmith.core.service.settings import GIB, KIB, MIB, PREFIX, Settings
from tests.docs import codes
from tests.docs.arc_templates import arc_templates_page
from tests.docs.codes import Code
from tests.docs.commands import command_line_page
from tests.docs.operations import http_page

DOCS = codes.ROOT / "docs"
SETTINGS = DOCS / "settings.md"
METRICS = DOCS / "metrics.md"
ERRORS = DOCS / "errors.md"
HTTP = DOCS / "http.md"
COMMAND_LINE = DOCS / "command-line.md"
ARC_TEMPLATES = DOCS / "arc-templates.md"

#: The tables of the page of errors, by their headings.
PROBLEMS, JOBS, COMMANDS = "## Problem responses", "## Errors of jobs", "## Errors of commands"
ROW = re.compile(r"^\| `(\w+)` \|.*?([^|]*)\|$", re.MULTILINE)
TABLE = re.compile(r"^\|.*\n(?:\|.*\n)+", re.MULTILINE)


class Sentence(NamedTuple):
    """The sentence about a code, and the heading of its table."""

    heading: str
    text: str


def settings_page(page: str) -> str:
    """Return the page of settings with an updated table."""
    rows = [
        (f"`{PREFIX}{name.upper()}`", _default(name, field.get_default()), field.description or "")
        for name, field in Settings.model_fields.items()
    ]
    return TABLE.sub(lambda _: _table(("variable", "default", "meaning"), rows), page, count=1)


def metrics_page(page: str) -> str:
    """Return the page of metrics with an updated table."""
    rows = []
    for name, spec in names.METRICS.items():
        labels = f"{{{','.join(spec.labels)}}}" if spec.labels else ""
        rows.append((f"`{name}{labels}`", spec.kind, spec.source, spec.help))
    return TABLE.sub(lambda _: _table(("metric", "type", "source", "meaning"), rows), page, count=1)


def errors_page(page: str) -> str:
    """Return the page of error codes with a row for every code. Keeps the sentences of the page."""
    described = sentences(page)
    tables: dict[str, list[tuple[str, ...]]] = {PROBLEMS: [], JOBS: [], COMMANDS: []}
    for name, code in sorted(codes.find().items()):
        sentence = described.get(name, Sentence(_heading(code), ""))
        status = (", ".join(map(str, sorted(code.statuses))),) if sentence.heading == PROBLEMS else ()
        tables[sentence.heading].append((f"`{name}`", *status, sentence.text))
    for heading, rows in tables.items():
        columns = ("code", "status", "meaning") if heading == PROBLEMS else ("code", "meaning")
        before, after = page.split(heading, 1)
        page = before + heading + TABLE.sub(lambda _, c=columns, r=rows: _table(c, r), after, count=1)
    return page


def sentences(page: str) -> dict[str, Sentence]:
    """Return the sentences of a page of error codes, by code."""
    found = {}
    for part in re.split(r"(?=^## )", page, flags=re.MULTILINE):
        heading = part.split("\n", 1)[0]
        found |= {name: Sentence(heading, text.strip()) for name, text in ROW.findall(part)}
    return found


def _heading(code: Code) -> str:
    if code.of_commands:
        return COMMANDS
    return JOBS if code.of_jobs else PROBLEMS


def _default(name: str, value: object) -> str:
    if value is None or value is PydanticUndefined:
        return ""
    if name.endswith("_bytes") and isinstance(value, int):
        unit, word = next((u, w) for u, w in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if value % u == 0)
        return f"{value // unit} {word}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value == "":
        return "(empty)"
    return f"{value:,}" if isinstance(value, int) and name != "port" else f"`{value}`"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(
        f"| {' | '.join(line)} |\n".replace("| --- ", "|---").replace("--- |", "---|") for line in lines
    )


def pages() -> dict[Path, str]:
    """Return every generated page with updated tables."""
    writers = {
        SETTINGS: settings_page,
        METRICS: metrics_page,
        ERRORS: errors_page,
        COMMAND_LINE: command_line_page,
        HTTP: http_page,
        ARC_TEMPLATES: arc_templates_page,
    }
    return {path: write(path.read_text(encoding="utf-8")) for path, write in writers.items()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(codes.ROOT)}")
