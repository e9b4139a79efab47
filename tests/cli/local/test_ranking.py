"""`rank --local`: what to label next, from every kind of file."""

import json
from pathlib import Path
from typing import Any

import pytest

from tagsmith.cli.main import main
from tests.cli.command import CommandRunner, people

TEXT = "Zed Zarquon met Ada Lovelace in Paris.\nAda Lovelace wrote to Charles Babbage in London.\n"
COLUMNS = "Ada\nwrote\nto\nParis\n\nZed\nZarquon\nlives\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranking")
    (folder / "people.conll").write_text(people())
    path = folder / "people.tagsmith"
    arguments = ["train", "--local", folder / "people.conll", "--model", path, "--passes", "5"]
    assert main([str(each) for each in arguments]) == 0
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandRunner:
    # Nothing listens there: whatever calls a server fails.
    return CommandRunner(monkeypatch, capsys, tmp_path, url="http://127.0.0.1:1")


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_raw_text_is_split_and_the_unknown_names_come_first(
    run: CommandRunner, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "raw.txt").write_text(TEXT)
    ran = run("rank", "--local", model, tmp_path / "raw.txt")
    assert ran.code == 0
    first, second = lines_of(ran.out)
    assert (first["index"], second["index"]) == (0, 1)
    assert first["tokens"] == ["Zed", "Zarquon", "met", "Ada", "Lovelace", "in", "Paris", "."]
    assert first["score"] < second["score"] < 0
    assert second["tags"] == ["B-PER", "I-PER", "O", "O", "B-PER", "I-PER", "O", "B-LOC", "O"]
    assert ran.err.endswith("Listed 2 of 2 distinct sentences.\n")


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("columns.conll", COLUMNS, []),
        ("labelled.conll", "Ada X\nwrote X\nto Y\nParis X\n\nZed Y\nZarquon X\nlives Y\n", []),
        ("named.conll", COLUMNS, ["--format", "conll", "--option", "labelled=false"]),
        ("bare.ndjson", '{"tokens": ["Ada", "wrote"], "id": 1}\n{"tokens": ["Zed", "Zarquon"]}\n', []),
        ("tagged.ndjson", '{"tokens": ["Ada"], "tags": ["X"]}\n{"tokens": ["Zed"], "tags": ["Y"]}\n', []),
    ],
)
def test_files_may_have_labels_or_none(
    run: CommandRunner, model: Path, tmp_path: Path, name: str, text: str, options: list[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    lines = lines_of(run.ok("rank", "--local", model, path, "--by", "entropy", *options))
    assert sorted(line["index"] for line in lines) == [0, 1]
    assert {line["tokens"][0] for line in lines} == {"Ada", "Zed"}


def test_standard_input_a_target_and_a_limit(run: CommandRunner, model: Path, tmp_path: Path) -> None:
    target = tmp_path / "next.ndjson"
    options = ["--by", "margin", "--top", "1", "--diverse", "-o", target]
    ran = run("rank", "--local", model, "-", *options, stdin=TEXT)
    assert (ran.code, ran.out) == (0, "")
    assert [line["index"] for line in lines_of(target.read_text())] == [0]
    assert ran.err.endswith("Listed 1 of 2 distinct sentences.\n")


def test_the_list_trains_the_next_model_as_it_is(run: CommandRunner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "raw.txt").write_text(TEXT)
    run.ok("rank", "--local", model, tmp_path / "raw.txt", "-o", tmp_path / "next.ndjson")
    said = run.ok("train", "--local", tmp_path / "next.ndjson", "--model", tmp_path / "next", "--passes", "1")
    assert "ndjson, 2 sentences" in said


def test_a_model_without_probabilities_says_so(run: CommandRunner, model: Path, tmp_path: Path) -> None:
    corpus, path = model.parent / "people.conll", tmp_path / "margin.tagsmith"
    run.ok("train", "--local", corpus, "--model", path, "--trainer", "mira", "--passes", "2")
    assert "not trained to give probabilities" in run("rank", "--local", path, corpus).err
    assert "not trained to give probabilities" not in run("rank", "--local", model, corpus).err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--by", "length"], "There is no measure length"),
        (["--detach"], "--detach does not wait for the list"),
    ],
)
def test_what_cannot_be_done_is_said(
    run: CommandRunner, model: Path, arguments: list[str], said: str
) -> None:
    ran = run("rank", "--local", model, model.parent / "people.conll", *arguments)
    assert ran.code == 2
    assert said in ran.err


def test_a_missing_file_is_said(run: CommandRunner, model: Path) -> None:
    ran = run("rank", "--local", model, "nowhere.conll")
    assert (ran.code, ran.err) == (2, "There is no file nowhere.conll.\n")
