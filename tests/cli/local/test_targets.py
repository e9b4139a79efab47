"""What commands write to: nothing that a user has is replaced by mistake, and special files stay what they are."""

import os
from pathlib import Path
from threading import Thread

import pytest

from tagsmith.client.files import part_file
from tests.cli.command import CommandRunner


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["train", "--local", "people.conll", "--model", "people.conll"],
            "--model people.conll is the training file. Give another name.\n",
        ),
        (
            ["train", "--local", "people.conll", "--dev", "raw.txt", "--model", "raw.txt"],
            "--model raw.txt is the dev file. Give another name.\n",
        ),
        (
            ["train", "--local", "people.conll", "--model", "raw.txt"],
            "--model raw.txt exists and is not a model file. Give another name.\n",
        ),
        (["tag", "--local", "m", "raw.txt", "--out", "raw.txt"], "--out raw.txt is the input file."),
        (["tag", "--local", "m", "raw.txt", "--out", "m"], "--out m is the model file."),
    ],
)
def test_inputs_and_files_that_are_no_models_are_not_replaced(
    run: CommandRunner, arguments: list[str], says: str
) -> None:
    before = {path: path.read_bytes() for path in Path().iterdir()}
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.err.startswith(says)
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_models_and_empty_files_are_replaced(run: CommandRunner) -> None:
    Path("empty").touch()
    for name in ("m", "empty"):
        run.ok("train", "--local", "people.conll", "--model", name, "--passes", "2")
    assert Path("m").read_bytes() == Path("empty").read_bytes()


def test_a_dash_is_standard_output(run: CommandRunner) -> None:
    assert "PER" in run.ok("tag", "--local", "m", "raw.txt", "-o", "-")
    assert not Path("-").exists()


def test_links_are_followed_and_pipes_are_written_to(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("real")
    with part_file(link) as file:
        file.write(b"linked")
    assert (link.is_symlink(), real.read_bytes()) == (True, b"linked")
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with part_file(pipe) as file:
        file.write(b"piped")
    reader.join(timeout=30)
    assert (pipe.is_fifo(), read) == (True, [b"piped"])
