"""The results of drills: kept by row while they run, then written as a page."""

import dataclasses
import json
import statistics
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.drills.framework.drill import Drill
from tests.drills.framework.rehearsal import Outcome

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results" / "drills.json"
PAGE = ROOT / "docs" / "reliability.md"
#: The table stands between these lines.
BEGIN, END = "<!-- `make drills` writes the table. -->", "<!-- The end of the table. -->"
ISSUES = {
    "procrastinate": "https://github.com/procrastinate-org/procrastinate/issues/",
    "Oban": "https://github.com/oban-bg/oban/issues/",
    "Celery": "https://github.com/celery/celery/issues/",
}


@dataclass(frozen=True, slots=True)
class Row:
    """All repetitions of one drill."""

    commit: str
    seed: int
    outcomes: list[Outcome]
    #: What the checker found in the histories of all repetitions together, at the end.
    findings: str

    @property
    def is_clean(self) -> bool:
        return not self.findings and all(each.is_clean for each in self.outcomes)


def commit() -> str:
    """Return the newest commit that changed more than the results, marked if the working tree differs from it."""
    others = ["--", ".", *(f":!{path.relative_to(ROOT)}" for path in (RESULTS, PAGE))]
    newest = _git("log", "-1", "--format=%h", "--abbrev=7", *others)
    return f"{newest}-dirty" if _git("status", "--porcelain", "--untracked-files=no", *others) else newest


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def read() -> dict[str, Row]:
    """Read the rows that are done."""
    if not RESULTS.exists():
        return {}
    return {name: _row(record) for name, record in json.loads(RESULTS.read_text()).items()}


def write(rows: Mapping[str, Row]) -> None:
    """Write the rows that are done."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    record = {name: dataclasses.asdict(row) for name, row in rows.items()}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")


def write_page(drills: Mapping[str, Drill], rows: Mapping[str, Row]) -> None:
    """Replace the table of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    table = "\n".join(table_lines(drills, rows))
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def table_lines(drills: Mapping[str, Drill], rows: Mapping[str, Row]) -> list[str]:
    """Return the table: a line for each drill that was run."""
    head = (
        "row", "fault", "where injected", "promise", "times", "seed", "lost", "doubled", "mixed",
        "tagging unanswered, worst (s)", "recovery, median and worst (s)", "commit", "known hole",
    )  # fmt: skip
    lines = [_line(head), _line(["---"] * len(head))]
    return lines + [_line(_cells(each, rows[name])) for name, each in drills.items() if name in rows]


def _cells(drill: Drill, row: Row) -> list[str]:
    outcomes = row.outcomes
    recoveries = [each.recovery_s for each in outcomes]
    return [
        f"`{drill.name}`",
        drill.fault,
        drill.where,
        drill.promise,
        str(len(outcomes)),
        str(row.seed),
        *(str(sum(getattr(each, damage) for each in outcomes)) for damage in ("lost", "doubled", "mixed")),
        f"{max(each.unanswered_s for each in outcomes):.1f}",
        f"{statistics.median(recoveries):.1f}, {max(recoveries):.1f}",
        row.commit,
        _links(drill.rival),
    ]


def _links(rival: str) -> str:
    """Link issues, given as `project number` with commas between."""
    made = []
    for issue in filter(None, rival.split(", ")):
        project, number = issue.split()[:2]
        made.append(f"[{project} #{number}]({ISSUES[project]}{number})")
    return ", ".join(made)


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"


def _row(record: Mapping[str, Any]) -> Row:
    return Row(**{**record, "outcomes": [Outcome(**each) for each in record["outcomes"]]})
