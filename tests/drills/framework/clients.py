"""Clients that upload, train and promote, and write down what they were told."""

import functools
import hashlib
import itertools
import random
import re
import threading
from types import TracebackType
from typing import Any, Self

import httpx

from tagsmith.client import ApiError, Client
from tagsmith.core.corpus.synthetic.generate import generate
from tests.drills.history import History, Promotion, Submission, Upload, Version

MODEL = "drill"
ALIAS = "champion"
#: A training of some seconds, in the middle of which a fault happens.
LONG_SENTENCES, LONG_PASSES = 3000, 110
SHORT_SENTENCES, SHORT_PASSES = 60, 3
#: The clients repeat a call after this many seconds at the latest.
TIMEOUT_S = 10.0
PAUSE_S = 0.4
#: Trainings that one load submits, beside the long one.
MOST_TRAININGS = 4

_LABEL = re.compile(rb" ([BI]-[A-Z]+)$", re.MULTILINE)


@functools.cache
def _text(sentences: int) -> bytes:
    return b"".join(generate("references", sentences, 7))


def corpus(sentences: int, number: int) -> bytes:
    """Return a corpus whose labels no other number has, so that an answer shows which corpus its model learnt."""
    return _LABEL.sub(rb" \g<1>" + str(number).encode(), _text(sentences))


def sentences() -> list[list[list[str]]]:
    """Return what is tagged: two sentences of the corpora."""
    blocks = _text(SHORT_SENTENCES).decode().split("\n\n")[:2]
    return [[line.split()[:2] for line in block.splitlines()] for block in blocks]


class Clients:
    """Calls the service as users do, with retries, and records intentions and responses."""

    def __init__(self, url: str, history: History, numbers: "itertools.count[int]") -> None:
        self.client = Client(url, timeout_s=TIMEOUT_S)
        self.history = history
        self._numbers = numbers

    def close(self) -> None:
        self.client.close()

    def upload(self, sentence_count: int) -> Upload:
        """Upload a corpus. Its id is None if no response came."""
        number = next(self._numbers)
        content = corpus(sentence_count, number)
        upload = Upload(f"{MODEL}-{number}", hashlib.sha256(content).hexdigest())
        self.history.uploads.append(upload)
        upload.id = self.client.upload(content, name=upload.name).id
        return upload

    def train(self, upload: Upload, passes: int) -> Submission:
        """Submit a training that promotes its version."""
        submission = self.intend()
        self.submit(submission, upload, passes)
        return submission

    def intend(self, ends: tuple[str, ...] = ("succeeded",)) -> Submission:
        """Write down a training that will be submitted."""
        submission = Submission(MODEL, next(self._numbers), ends=ends)
        self.history.jobs.append(submission)
        return submission

    def submit(self, submission: Submission, upload: Upload, passes: int) -> None:
        """Submit a training that was written down."""
        spec: dict[str, Any] = {
            "kind": "train",
            "model": MODEL,
            "corpus": upload.id,
            "seed": submission.seed,
            "features": {"preset": "chunking"},
            "trainer": {"kind": "sgd-l1", "passes": passes},
            "promote": ALIAS,
        }
        submission.id = self.client.submit(spec).id

    def promote(self, version: int) -> None:
        """Move the alias."""
        promotion = Promotion(MODEL, ALIAS, version)
        self.history.moves.append(promotion)
        promotion.seq = self.client.promote(MODEL, version).seq

    def look(self) -> list[int]:
        """List the versions, and remember their checksums."""
        stored = list(self.client.versions(MODEL))
        seen = {f"{each.model}:{each.version}" for each in self.history.versions} | self.history.others
        self.history.versions += [
            Version(MODEL, each.version, each.sha256)
            for each in stored
            if f"{MODEL}:{each.version}" not in seen
        ]
        return [each.version for each in stored]


class Load:
    """Clients in a thread that do a bit of everything until the end of the `with` block."""

    def __init__(self, url: str, history: History, numbers: "itertools.count[int]", seed: int) -> None:
        self._clients = Clients(url, history, numbers)
        self._rng = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._trainings = MOST_TRAININGS
        #: Responses that are neither success nor an outage.
        self.refused: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._clients.close()

    def _work(self) -> None:
        while not self._over.wait(self._rng.uniform(0, PAUSE_S)):
            try:
                self._step()
            except ApiError as error:
                if error.status < 500 and error.status not in (409, 429):
                    self.refused.append(str(error))
            except httpx.HTTPError:
                pass

    def _step(self) -> None:
        what = self._rng.choice(("upload", "train", "promote", "promote"))
        if what == "promote":
            self._clients.promote(self._rng.choice(self._clients.look()))
            return
        upload = self._clients.upload(SHORT_SENTENCES)
        if what == "train" and self._trainings:
            self._trainings -= 1
            self._clients.train(upload, SHORT_PASSES)
