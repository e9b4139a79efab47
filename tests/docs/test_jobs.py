"""The commands of the page about jobs work as described."""

import re
from pathlib import Path

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.jobs import kinds
from tests.docs.test_readme import ROOT, run_script


def test_the_table_names_every_kind_and_only_fields_of_its_result() -> None:
    page = (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(\w+)` \|.*\| (.*) \|$", page.partition("| kind |")[2].partition("\n\n")[0], re.MULTILINE
    )
    assert [name for name, _ in rows] == list(kinds.known())
    for name, fields in rows:
        assert set(re.findall(r"`(\w+)`", fields)) <= set(kinds.known()[name].result.model_fields)


def test_the_commands_run_as_they_stand(stack: BackgroundStack, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 6
    printed = run_script("\n".join(blocks), stack, tmp_path)
    with Client(stack.url) as client:
        kinds = [job.kind for job in client.jobs() if job.state == "succeeded"][:6]
        (evaluated, *_) = [job for job in client.jobs() if job.kind == "evaluate"]
        # The newest ones: other files of tests may have used the same stack.
        cancelled = list(client.jobs(model="long"))[:2]
    assert [job.state for job in cancelled] == ["cancelled", "cancelled"]
    assert cancelled[0].retry_of == cancelled[1].id
    assert kinds == ["rank", "evaluate", "train", "tune", "tune", "compare"]
    assert evaluated.result is not None
    assert len(evaluated.result["pairs"]) == 1
    assert (tmp_path / "curves.svg").read_text().startswith("<svg")
    assert "PA-I, C 0.1" in printed
    assert 0 < len((tmp_path / "next.ndjson").read_text().splitlines()) <= 20
