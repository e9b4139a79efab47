"""UDPipe 1 as the contender: trained on the same sentences with gold tags, in a process with an interpreter of its own.

    python3 -m venv ../udpipe && ../udpipe/bin/pip install ufal.udpipe

Its options are the defaults: 10 iterations of a projective transition parser that reads form, upos and feats.
"""

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from tagsmith.core.corpus.corpus import Column, Trees
from tagsmith.core.corpus.vocabulary import Vocabulary

_WORKER = Path(__file__).with_name("udpipe_worker.py")


def options_for(single_root: bool) -> str:
    """The defaults, except that sentences may have several roots if those of the training data do."""
    return "" if single_root else "single_root=0"


class Peer:
    """A process of UDPipe. `log` gets what it writes about its training."""

    def __init__(self, python: Path, log: Path | None = None) -> None:
        self._log = None if log is None else log.open("a", encoding="utf-8")
        self._process = subprocess.Popen(
            [str(python), str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        if self._log is not None:
            self._log.close()

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Send a request, and return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("UDPipe ended. Does its interpreter have ufal.udpipe?")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def parse(self) -> dict[str, list[float]]:
        """Parse the open text, and return the seconds and processor seconds of `reading` and `parsing`."""
        return self.ask("parse")

    def trees(self) -> Trees:
        """Return the trees of the text that was parsed."""
        answer = self.ask("trees")
        return trees_of(answer["heads"], answer["relations"])


def trees_of(heads: list[int], relations: list[str]) -> Trees:
    """Make trees of the heads and relations of all words."""
    numbers = {name: i for i, name in enumerate(dict.fromkeys(relations))}
    ids = np.array([numbers[name] for name in relations], np.int32)
    column = Column("relation", Vocabulary.from_strings(list(numbers)), ids)
    return Trees(np.array(heads, np.int32), column)
