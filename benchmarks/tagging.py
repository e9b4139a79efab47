"""`/tag` over HTTP: one sentence compared with a bare route, 1,000 sentences with python-crfsuite in process.

    python -m benchmarks.tagging --data ../shared/data [--rounds 21]

The bare route is a FastAPI route that parses a JSON body of the same bytes and returns the same JSON, with the same
settings of uvicorn, in its own process. A sentence has 25 tokens. Contenders alternate within each round. The client
is one thread with 8 connections over plain sockets, so that it uses less time than the server.
"""

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import httpx
import pycrfsuite
from fastapi import FastAPI

from benchmarks import chunking, common, crfsuite
from tagsmith.app.cli import api, listen
from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.service.settings import Settings

TOKENS = 25
SENTENCES = 1_000
CONNECTIONS = 8
#: Many short rounds: the load of the machine changes more slowly than the contenders alternate.
ROUND_S = 0.5
MODEL = {"features": {"preset": "chunking"}, "trainer": {"kind": "sgd-l1", "l1": 0.5, "passes": 10}}


def bare(answer: Any) -> FastAPI:
    """A route that parses its body and returns a prepared response."""
    app = FastAPI()

    @app.post("/tag")
    async def tag(body: dict[str, Any]) -> dict[str, Any]:
        assert body["model"]
        return answer  # type: ignore[no-any-return]

    return app


@contextlib.contextmanager
def bare_server(answer: Path) -> Iterator[str]:
    """Run the bare route in its own process; yield its URL."""
    command = [sys.executable, "-m", "benchmarks.tagging", "--bare", str(answer)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def serve_bare(answer: Path) -> None:
    api.tune_interpreter()
    with listen.opened("127.0.0.1", 0) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        app = bare(json.loads(answer.read_bytes()))
        api.server_of(app).run(sockets=[listener])


class Load:
    """Connections that send the same request again and again."""

    def __init__(self, url: str, body: bytes, connections: int = CONNECTIONS) -> None:
        parts = urlsplit(url)
        head = (
            f"POST /tag HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._request = head.encode() + body
        address = (parts.hostname or "", parts.port or 80)
        self._connections = [socket.create_connection(address) for _ in range(connections)]
        for each in self._connections:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._size = self._first()

    def _first(self) -> int:
        """The size of a response; all have the same size."""
        one = self._connections[0]
        one.sendall(self._request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += one.recv(1 << 16)
        head, _, rest = received.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(head.decode())
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        left = int(fields[b"content-length"]) - len(rest)
        while left:
            left -= len(one.recv(min(left, 1 << 20)))
        return len(head) + 4 + int(fields[b"content-length"])

    def requests(self) -> int:
        """Send one request on each connection and wait for all responses; return their number."""
        for each in self._connections:
            each.sendall(self._request)
        for each in self._connections:
            left = self._size
            while left:
                left -= len(each.recv(left))
        return len(self._connections)

    def rate(self, seconds: float) -> float:
        """Return the requests per second."""
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            count += self.requests()
        return count / (time.perf_counter() - began)

    def close(self) -> None:
        for each in self._connections:
            each.close()


def measure_small(url: str, body: bytes, folder: Path, rounds: int) -> dict[str, Any]:
    """One sentence per request, in requests per second."""
    answer = folder / "answer.json"
    answer.write_bytes(httpx.post(f"{url}/tag", content=body, headers=JSON).content)
    with bare_server(answer) as bare_url:
        loads = {"tagsmith": Load(url, body), "bare FastAPI route": Load(bare_url, body)}
        for load in loads.values():
            load.rate(ROUND_S)
        rates: dict[str, list[float]] = {name: [] for name in loads}
        for _ in range(rounds):
            for name, load in loads.items():
                rates[name].append(load.rate(ROUND_S))
        for load in loads.values():
            load.close()
    ratios = [a / b for a, b in zip(*rates.values(), strict=True)]
    return {
        "request_bytes": len(body),
        "answer_bytes": answer.stat().st_size,
        "requests_per_second": {name: round(median(values)) for name, values in rates.items()},
        "all": {name: [round(value) for value in values] for name, values in rates.items()},
        "ratio": round(median(ratios), 3),
    }


JSON = {"Content-Type": "application/json"}


def measure_large(
    url: str, data: list[crfsuite.Sentence], raw: bytes, folder: Path, rounds: int
) -> dict[str, Any]:
    """1,000 sentences per request, in tokens per second; python-crfsuite with and without expanding features."""
    chunking.theirs(raw, folder / "theirs", 10)
    peer, parsed = pycrfsuite.Tagger(), crfsuite.templates()
    peer.open(str(folder / "theirs"))
    tokens = sum(map(len, data))
    load = Load(url, json.dumps({"model": "chunker", "sentences": data}).encode(), 1)
    features = [crfsuite.expand(sentence, parsed) for sentence in data]
    contenders = {
        "tagsmith over HTTP": lambda: common.timed(load.requests),
        "python-crfsuite": lambda: common.timed(
            lambda: [peer.tag(crfsuite.expand(sentence, parsed)) for sentence in data]
        ),
        "python-crfsuite, features ready": lambda: common.timed(
            lambda: [peer.tag(each) for each in features]
        ),
    }
    common.alternate(contenders, 1)
    seconds = common.alternate(contenders, rounds)
    load.close()
    result = common.summary(seconds, "tagsmith over HTTP")
    for name, values in seconds.items():
        result[name]["tokens_per_second"] = round(tokens / median(values))
    return {"sentences": len(data), "tokens": tokens, **result}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder of corpora")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare is not None:
        serve_bare(options.bare)
        return
    raw, raw_test = (common.read(options.data / "conll2000" / f"{part}.txt") for part in ("train", "test"))
    data = [[row[:-1] for row in sentence] for sentence in crfsuite.sentences(raw_test)]
    one = next(sentence for sentence in data if len(sentence) == TOKENS)
    body = json.dumps({"model": "chunker", "sentences": [one]}).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stack = BackgroundStack(Settings.from_env({}, {"port": 0, "data_dir": folder / "data"}))
        with stack, Client(stack.url) as client:
            corpus = client.upload(raw, name="train").id
            job = client.wait(client.train({"model": "chunker", "corpus": corpus, **MODEL}).id)
            assert job.state == "succeeded", job.error
            result = {
                "one_sentence_of_25_tokens": measure_small(stack.url, body, folder, options.rounds),
                "1000_sentences": measure_large(stack.url, data[:SENTENCES], raw, folder, options.rounds),
            }
    print(common.record("tagging", result).read_text())


if __name__ == "__main__":
    main()
