"""The callers of a load test: each is a thread that repeats one kind of work until the end."""

import itertools
import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from tagsmith.core.corpus.synthetic.generate import generate

#: The model whose alias moves between two versions, and the model that is trained again and again.
MOVED, TRAINED = "moved", "trained"
TRAINER = {"kind": "sgd-l1", "passes": 3}
FEATURES = {"preset": "chunking"}
TIMEOUT_S = 60.0
#: Versions of the trained model that stay. Older ones are deleted.
KEEP_VERSIONS = 3
#: The pause between two calls of a caller. Without it the callers would measure their own queue.
PAUSE_S = {"tag": 0.02, "upload": 0.2, "move": 0.5, "train": 0.2, "read": 0.1, "follow": 0.1}
READ_PATHS = (
    "/jobs?limit=20",
    "/models",
    "/corpora?limit=20",
    "/audit?limit=20",
    "/metrics",
    "/readyz",
    f"/models/{MOVED}/versions/1",
    f"/models/{MOVED}/versions/1/features",
    f"/models/{MOVED}/versions/1/transitions",
    f"/models/{MOVED}/aliases/champion/history?limit=20",
)


@dataclass
class Record:
    """What callers saw: seconds and statuses by kind of call."""

    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    #: The first body of each kind and status that is not a success.
    refusals: dict[str, str] = field(default_factory=dict)
    jobs: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, status: str, seconds: float, body: str = "") -> None:
        with self._lock:
            self.seconds[kind].append(seconds)
            self.statuses[kind][status] += 1
            if body:
                self.refusals.setdefault(f"{kind} {status}", body[:500])

    def ended(self, state: str) -> None:
        with self._lock:
            self.jobs[state] += 1


class Caller:
    """Makes calls, and records how long each took and how it ended."""

    def __init__(self, url: str, record: Record) -> None:
        self._http = httpx.Client(base_url=url, timeout=TIMEOUT_S)
        self.record = record

    def call(self, kind: str, method: str, path: str, **arguments: Any) -> httpx.Response | None:
        """Return the response, or None if there was none."""
        began = time.perf_counter()
        try:
            response = self._http.request(method, path, **arguments)
        except httpx.TransportError as error:
            self.record.add(kind, type(error).__name__, time.perf_counter() - began, str(error))
            return None
        seconds = time.perf_counter() - began
        self.record.add(kind, str(response.status_code), seconds, response.text if response.is_error else "")
        return response

    def made(self, kind: str, method: str, path: str, **arguments: Any) -> dict[str, Any] | None:
        """Return the JSON of a successful response."""
        response = self.call(kind, method, path, **arguments)
        return None if response is None or response.is_error else response.json()

    def follow(self, job_id: str) -> None:
        """Read the event stream of a job to its end."""
        kind, began = "follow a job", time.perf_counter()
        try:
            with self._http.stream(
                "GET", f"/jobs/{job_id}/events", headers={"Accept": "text/event-stream"}
            ) as response:
                for _ in response.iter_lines():
                    pass
        except httpx.TransportError as error:
            self.record.add(kind, type(error).__name__, time.perf_counter() - began, str(error))
            return
        self.record.add(kind, str(response.status_code), time.perf_counter() - began)

    def close(self) -> None:
        self._http.close()


def text(sentences: int, seed: int) -> bytes:
    return b"".join(generate("references", sentences, seed))


def sentences_of(corpus: bytes) -> list[list[list[str]]]:
    """The sentences of a corpus without their labels."""
    blocks = corpus.decode().split("\n\n")
    return [[line.split()[:-1] for line in block.splitlines()] for block in blocks if block.strip()]


def train(caller: Caller, corpus: str, model: str, seed: int) -> dict[str, Any] | None:
    """Post a small training and follow it; return the ended job. Each seed gives another model file."""
    spec = {
        "kind": "train",
        "model": model,
        "corpus": corpus,
        "features": FEATURES,
        "trainer": TRAINER,
        "promote": "champion",
        "seed": seed,
    }
    job = caller.made("post a job", "POST", "/jobs", json=spec)
    if job is None:
        return None
    caller.follow(job["id"])
    ended = caller.made("get a job", "GET", f"/jobs/{job['id']}")
    if ended is not None:
        caller.record.ended(ended["state"])
    return ended


def prepare(url: str) -> str:
    """Publish two versions of the moved model and one of the trained one; return the corpus of trainings."""
    caller = Caller(url, Record())
    made = caller.made("upload", "POST", "/corpora", content=text(300, 1), params={"name": "load"})
    if made is None:
        raise SystemExit(f"nothing could be uploaded: {caller.record.refusals}")
    for seed, model in enumerate((MOVED, MOVED, TRAINED)):
        job = train(caller, made["id"], model, seed)
        if job is None or job["state"] != "succeeded":
            raise SystemExit(f"the first training failed: {job or caller.record.refusals}")
    caller.close()
    return str(made["id"])


def tagging(caller: Caller, chance: random.Random) -> Iterator[None]:
    """Requests of several sizes, as JSON and as a stream of lines."""
    sentences = sentences_of(text(1_000, 3))
    while True:
        count = chance.choices((1, 100, 1_000), (90, 9, 1))[0]
        model = chance.choice((MOVED, TRAINED))
        first = chance.randrange(len(sentences) - count + 1)
        chosen = sentences[first : first + count]
        if chance.random() < 0.1:
            lines = [{"model": model}, *({"tokens": each} for each in chosen[:100])]
            body = "".join(json.dumps(line) + "\n" for line in lines).encode()
            headers = {"Content-Type": "application/x-ndjson"}
            caller.call("tag lines", "POST", "/tag", content=body, headers=headers)
        else:
            kind = f"tag {count} sentence{'s' * (count > 1)}"
            caller.call(kind, "POST", "/tag", json={"model": model, "sentences": chosen})
        yield


def uploading(caller: Caller, chance: random.Random) -> Iterator[None]:
    """Inspect, upload, look at and delete corpora of different text."""
    while True:
        content = text(chance.choice((20, 200, 1_000)), chance.randrange(1 << 30))
        caller.call("inspect a corpus", "POST", "/corpora/inspect", content=content)
        made = caller.made("upload", "POST", "/corpora", content=content, params={"name": "load"})
        if made is not None:
            caller.call("report on a corpus", "GET", f"/corpora/{made['id']}/report")
            caller.call("delete a corpus", "DELETE", f"/corpora/{made['id']}")
        yield


def moving(caller: Caller, chance: random.Random) -> Iterator[None]:
    """Promote one version and the other, and roll back."""
    path = f"/models/{MOVED}/aliases/champion"
    while True:
        caller.call("promote", "PUT", path, json={"version": chance.choice((1, 2))})
        if chance.random() < 0.5:
            caller.call("roll back", "POST", f"{path}/rollback", json={})
        yield


def training(caller: Caller, corpus: str) -> Iterator[None]:
    """Train, promote, and delete the job and the version that is too old."""
    for seed in itertools.count(100):
        job = train(caller, corpus, TRAINED, seed)
        if job is not None and job["state"] == "succeeded":
            caller.call("delete a job", "DELETE", f"/jobs/{job['id']}")
            oldest = int(job["result"]["version"]) - KEEP_VERSIONS
            if oldest > 0:
                caller.call("delete a version", "DELETE", f"/models/{TRAINED}/versions/{oldest}")
        yield


def reading(caller: Caller, chance: random.Random) -> Iterator[None]:
    """Lists, metrics, health, and the inside of a model."""
    while True:
        path = chance.choice(READ_PATHS)
        caller.call(f"get {path.partition('?')[0]}", "GET", path)
        yield


def following(caller: Caller) -> Iterator[None]:
    """The event streams of jobs that others posted, ended and running."""
    while True:
        listed = caller.made("get /jobs", "GET", "/jobs?limit=5")
        for job in (listed or {"data": []})["data"]:
            caller.follow(job["id"])
        yield


def callers(url: str, corpus: str, seed: int, record: Record) -> list[tuple[str, Caller, Iterator[None]]]:
    """All callers with their work."""
    chance = random.Random(seed)
    work: list[tuple[str, Callable[[Caller], Iterator[None]]]] = [
        *[("tag", lambda caller: tagging(caller, random.Random(chance.random())))] * 4,
        ("upload", lambda caller: uploading(caller, random.Random(chance.random()))),
        ("move", lambda caller: moving(caller, random.Random(chance.random()))),
        ("train", lambda caller: training(caller, corpus)),
        ("read", lambda caller: reading(caller, random.Random(chance.random()))),
        ("follow", following),
    ]
    made = []
    for name, start in work:
        caller = Caller(url, record)
        made.append((name, caller, start(caller)))
    return made


def run(url: str, corpus: str, seconds: float, seed: int) -> Record:
    """Let all callers work for `seconds`; return what they saw."""
    record, end = Record(), time.monotonic() + seconds

    def work(name: str, caller: Caller, steps: Iterator[None]) -> None:
        while time.monotonic() < end:
            next(steps)
            time.sleep(PAUSE_S[name])
        caller.close()

    threads = [
        threading.Thread(target=work, args=each, daemon=True) for each in callers(url, corpus, seed, record)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return record
