"""Runs the command in process, as a shell would: with its own environment, standard input and exit code."""

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tagsmith.cli.main import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class CommandRunner:
    """Runs `tagsmith` with no settings of the machine, against one server."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        home: Path,
        url: str | None = None,
    ) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
        monkeypatch.delenv("TAGSMITH_KEY", raising=False)
        monkeypatch.delenv("TAGSMITH_URL", raising=False)
        if url is not None:
            monkeypatch.setenv("TAGSMITH_URL", url)

    def __call__(self, *arguments: str | Path, stdin: str = "") -> Ran:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
        self._capsys.readouterr()
        code = main([str(each) for each in arguments])
        said = self._capsys.readouterr()
        return Ran(code, said.out, said.err)

    def ok(self, *arguments: str | Path, stdin: str = "") -> str:
        """Run a command that must succeed, and return what it printed."""
        ran = self(*arguments, stdin=stdin)
        assert ran.code == 0, ran
        return ran.out


#: Sentences about people and places: few words, so that a model learns them at once.
_SENTENCES = (
    "Ada/B-PER Lovelace/I-PER wrote/O to/O Charles/B-PER Babbage/I-PER in/O London/B-LOC ./O",
    "Yesterday/O Grace/B-PER met/O Alan/B-PER Turing/I-PER ./O",
    "Mary/B-PER Shelley/I-PER lives/O in/O Paris/B-LOC and/O works/O in/O Rome/B-LOC ./O",
    "The/O city/O of/O Vienna/B-LOC is/O large/O ./O",
)


def people(sentences: int = 80) -> str:
    """A labelled corpus of one column."""
    chosen = (_SENTENCES[i % len(_SENTENCES)] for i in range(sentences))
    return "".join(
        "".join(" ".join(pair.rsplit("/", 1)) + "\n" for pair in each.split()) + "\n" for each in chosen
    )
