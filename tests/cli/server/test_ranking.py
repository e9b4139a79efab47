"""`rank` against a server: what is uploaded, what is written, and what is said meanwhile."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tests.cli.command import CommandRunner

TEXT = "Zed Zarquon met Ada Lovelace in Paris.\nAda Lovelace wrote to Charles Babbage in London.\n"


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_raw_text_is_uploaded_as_tokens_once_and_ranked(
    run: CommandRunner, trained: str, tmp_path: Path, stack: BackgroundStack
) -> None:
    path = tmp_path / "cli-raw.txt"
    path.write_text(TEXT)
    ran = run("rank", trained, path)
    assert (ran.code, ran.err) == (0, "Listed 2 of 2 distinct sentences.\n")
    first, second = lines_of(ran.out)
    assert (first["index"], first["tokens"][:2]) == (0, ["Zed", "Zarquon"])
    assert first["score"] < second["score"]
    assert run.ok("rank", trained, path, "--diverse") == ran.out
    with Client(stack.url) as client:
        (corpus,) = client.corpora(name="cli-raw")
        assert (corpus.format, corpus.labels, corpus.sentences) == ("ndjson", [], 2)


def test_a_list_is_written_to_a_file_and_uploaded_again(
    run: CommandRunner, trained: str, corpus_file: Path, tmp_path: Path
) -> None:
    target = tmp_path / "cli-next.ndjson"
    said = run.ok("rank", trained, corpus_file, "--by", "entropy", "-n", "2", "-o", target, "--json")
    job = json.loads(said)
    assert (job["kind"], job["result"]["sentences"], job["result"]["distinct"]) == ("rank", 2, 4)
    lines = lines_of(target.read_text())
    assert [set(line) for line in lines] == [{"tokens", "tags", "index", "score"}] * 2
    assert "cli-next.ndjson: ndjson, 2 sentences" in run.ok("corpora", "push", target)
    assert run.ok("rank", trained, "cli-next", "-n", "1") != ""


def test_a_detached_job_is_read_later(run: CommandRunner, trained: str, corpus_file: Path) -> None:
    said = run.ok("rank", trained, corpus_file, "--detach")
    short = re.search(r"Started job (\w{6})\.", said)
    assert short is not None
    watched = run.ok("jobs", "watch", short[1])
    assert "Listed 4 sentences." in watched
    assert f"tagsmith jobs output {short[1]} -o FILE" in watched
    assert run.ok("jobs", "output", short[1]) == run.ok("rank", trained, corpus_file)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cli-people", "nothing"], "There is no corpus nothing. There is no file nothing either."),
        (["cli-people", "nothing.txt"], "There is no file nothing.txt."),
        (["cli-nobody", "{corpus}"], "There is no model cli-nobody."),
        (["cli-people", "{corpus}", "--by", "lenght"], "There is no measure lenght."),
        (["cli-people", "{corpus}", "--top", "0"], "--top"),
        (["cli-people", "{corpus}", "--detach", "-o", "x"], "--detach does not wait for the list."),
    ],
)
@pytest.mark.usefixtures("trained")
def test_mistakes_are_answered_by_a_sentence_and_code_2(
    run: CommandRunner, corpus_file: Path, arguments: list[str], says: str
) -> None:
    ran = run("rank", *(each.format(corpus=corpus_file) for each in arguments))
    assert ran.code == 2, ran
    assert says in ran.err
    assert ran.out == ""
