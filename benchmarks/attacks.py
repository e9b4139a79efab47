"""Attacks on an API process that has 2 GB of memory: is `/livez` answered meanwhile, and does the process live?

    python -m benchmarks.attacks [--attack NAME] [--memory-mb 2048]

Each attack runs for some seconds from several connections. Meanwhile another process asks for `/livez` a hundred times
a second on one connection. The memory limit needs a control group, and so a user who may create one (root). Without it
the attacks run with the memory of the machine, and the result says so.
"""

import argparse
import contextlib
import gzip
import http.client
import io
import json
import lzma
import multiprocessing
import random
import socket
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import zstandard

from benchmarks import common
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import migrate
from tests.app.samples import model_file
from tests.app.servers import ProcessServer
from tests.services import RedisServer

MIB = 1 << 20
TIMEOUT_S = 600.0
POLL_S = 0.01
SHORT_LINES = b"a b\n"
#: The model that tagging requests name.
MODEL = "attacked"
#: The bar of the project.
MAX_LIVEZ_MS = 200
_GROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Attack:
    """Requests that are sent at once, by `connections` callers, `times` times each."""

    name: str
    #: Makes the function that sends one request. Bodies are large, so they are made when their turn comes.
    make: Callable[[], Callable[[str], str]]
    connections: int = 4
    times: int = 1


def posted(path: str, body: bytes, headers: dict[str, str] | None = None) -> Callable[[str], str]:
    """Return a function that sends a body and returns the status and the code of the response."""

    def send(url: str) -> str:
        try:
            response = httpx.post(f"{url}{path}", content=body, headers=headers, timeout=TIMEOUT_S)
        except httpx.TransportError as error:
            return type(error).__name__
        code = response.json().get("code", "") if response.status_code >= 400 else ""
        return f"{response.status_code} {code}".strip()

    return send


def repeated(piece: bytes, size_bytes: int) -> bytes:
    """Gzip members that decode to a piece repeated; made in no time."""
    block = piece * (16 * MIB // len(piece))
    return gzip.compress(block) * (size_bytes // len(block))


def distinct(line: bytes, size_bytes: int) -> bytes:
    """Gzip of lines that differ by a number."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as out:
        number = size = 0
        while size < size_bytes:
            block = b"".join(line % i for i in range(number, number + 100_000))
            number += 100_000
            size += out.write(block)
    return packed.getvalue()


def brat(size_bytes: int) -> bytes:
    """An archive of documents of one-letter words."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(size_bytes // MIB):
            archive.writestr(f"{i}.txt", "a " * (MIB // 2))
            archive.writestr(f"{i}.ann", "")
    return packed.getvalue()


def slow_heads(url: str) -> str:
    """Open connections that send one byte of a request per second, and count those that the server ends."""
    host, _, port = url.removeprefix("http://").partition(":")
    ended = 0
    connections = [socket.create_connection((host, int(port)), 30) for _ in range(200)]
    try:
        for each in connections:
            each.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        for _ in range(30):
            time.sleep(1)
            for each in connections:
                with contextlib.suppress(OSError):
                    each.send(b"x")
        for each in connections:
            each.settimeout(5)
            try:
                ended += each.recv(64)[:12] in (b"HTTP/1.1 408", b"")
            except ConnectionError:  # the server has ended it, and we went on sending
                ended += 1
            except OSError:
                pass
    finally:
        for each in connections:
            each.close()
    return f"{ended} of {len(connections)} ended"


def endless_head(url: str) -> str:
    """Send a header without end; return how many bytes were taken."""
    host, _, port = url.removeprefix("http://").partition(":")
    sent = 0
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        try:
            while sent < 300 * MIB:
                sent += connection.send(b"x" * MIB)
        except OSError:
            pass
    return f"ended after {sent / MIB:.1f} MiB"


def preview(pattern: str, value: str) -> Callable[[str], str]:
    """Return a feature preview with a regular expression over 100 tokens."""
    features = {
        "derived": {"m": {"kind": "regex", "pattern": pattern, "take": "match"}},
        "templates": [["m"]],
    }
    body = json.dumps({"features": features, "sentence": [f"{value}{i}" for i in range(100)]}).encode()
    return posted("/features/preview", body, _JSON)


def tokenized(pattern: str, text: str) -> Callable[[str], str]:
    """Return a request to tag text, with a regular expression that finds the tokens."""
    body = {"model": MODEL, "text": text, "tokenizer": {"pattern": pattern}}
    return posted("/tag", json.dumps(body).encode(), _JSON)


def tagged(sentences: bytes) -> Callable[[str], str]:
    """Return a request to tag."""
    return posted("/tag", b'{"model": "%s", "sentences": ' % MODEL.encode() + sentences + b"}", _JSON)


def attacks() -> Iterator[Attack]:
    """Yield all attacks."""
    yield Attack("regular expression, many ways", lambda: preview("(a?){160}b$", "a" * 900), 8, 20)
    nested = "((((a{30}){30}){30}){30})"
    yield Attack("regular expression, nested repetition", lambda: preview(nested, "aaa"), 8, 20)
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 900)))
    yield Attack("regular expression, many letters", lambda: preview(letters[:400], letters), 8, 5)
    yield Attack("tokenizer, many ways", lambda: tokenized("(a?){60}b", "a" * 900_000), 8, 2)
    yield from _uploads()
    yield from _bodies()
    yield Attack("header without end", lambda: endless_head, 8)
    yield Attack("slow heads", lambda: slow_heads, 4)


def _uploads() -> Iterator[Attack]:
    def corpus(name: str, make: Callable[[], bytes], given: str = "conll") -> Attack:
        return Attack(name, lambda: posted(f"/corpora?format={given}", make()))

    yield corpus("gzip, 1 GB of short lines", lambda: repeated(SHORT_LINES, 1000 * MIB))
    yield corpus("gzip, 600 MB of distinct words", lambda: distinct(b"w%08d X L\n", 600 * MIB))
    yield corpus("gzip, 2 GB of blank lines", lambda: repeated(b"\n", 2048 * MIB))
    yield corpus("xz, 1 GB", lambda: lzma.compress(SHORT_LINES * (64 * MIB), preset=0) * 4)
    yield corpus("zstd, 1 GB", lambda: zstandard.compress(SHORT_LINES * (64 * MIB)) * 4)
    yield corpus("brat, 800 MB of one-letter words", lambda: brat(800 * MIB), "brat")
    yield corpus(
        "CRFsuite data, distinct attributes", lambda: distinct(b"L\tf%08d\tg:0.5\n", 400 * MIB), "crfsuite"
    )
    line = b'{"tokens": ["w%08d"], "labels": ["A"]}\n'
    yield corpus("JSON lines, distinct tokens", lambda: distinct(line, 300 * MIB), "ndjson")
    spans = b'{"text": "w%08d' + b" w" * 500 + b'", "label": [[0, 9, "A"]]}\n'
    yield corpus("JSON lines with spans", lambda: distinct(spans, 300 * MIB), "spans")
    yield corpus("segmented text", lambda: repeated(b"a b c d e\n", 500 * MIB), "segmented")
    words = b"w%08d\n"
    yield Attack("lexicon, distinct words", lambda: posted("/lexicons?kind=words", distinct(words, 60 * MIB)))
    noise = random.Random(7).randbytes(8 * MIB)
    yield Attack("forged model file", lambda: posted("/models/forged/versions", b"TAGSMITH" + noise * 30))


def _bodies() -> Iterator[Attack]:
    yield Attack("JSON, ten million empty lists", lambda: tagged(repeated_json(b"[]", 10 * MIB)), 8, 2)
    yield Attack("JSON, 500,000 sentences", lambda: tagged(repeated_json(b'["a","b"]', 500_000)), 8, 4)
    sentence = repeated_json(b'["w","X"]', 10)
    yield Attack("JSON, a million tokens", lambda: tagged(repeated_json(sentence, 99_999)), 8, 4)
    yield Attack(
        "JSON, one sentence of a million tokens",
        lambda: tagged(b"[%b]" % repeated_json(b'["w","X"]', 1_000_000)),
        8,
        2,
    )
    two = repeated_json(b'["w","X"]', 300_000) + b', "sentences": [["a"]]'
    yield Attack("JSON, sentences twice", lambda: tagged(two), 8, 2)
    text = b'{"model": "%s", "text": "' % MODEL.encode()
    yield Attack(
        "JSON, one text of 30 MB", lambda: posted("/tag", text + b"a," * (15 * MIB) + b'"}', _JSON), 8, 2
    )
    yield Attack("JSON, nested", lambda: tagged(b"[" * 200_000), 8, 5)
    yield Attack(
        "job spec of ten million numbers", lambda: posted("/jobs", repeated_json(b"1", 10 * MIB), _JSON), 8, 2
    )
    yield Attack("job spec of 500 kB", lambda: posted("/jobs", repeated_json(b"[]", 170_000), _JSON), 8, 5)


def repeated_json(element: bytes, times: int) -> bytes:
    """A JSON array with one element many times."""
    return b"[%b%b]" % ((element + b",") * (times - 1), element)


def poll(url: str, control: Connection) -> None:
    """Ask for `/livez` until told to stop; send the milliseconds of each answer."""
    host = url.removeprefix("http://")
    taken: list[float] = []
    failed = 0
    connection = http.client.HTTPConnection(host, timeout=60)
    control.send("ready")
    ended = False
    while not ended:
        began = time.perf_counter()
        try:
            connection.request("GET", "/livez")
            response = connection.getresponse()
            response.read()
            failed += response.status != 200
        except (OSError, http.client.HTTPException):
            connection.close()
            failed += 1
        taken.append((time.perf_counter() - began) * 1_000)
        ended = control.poll(POLL_S)
    control.send((taken, failed))


@contextlib.contextmanager
def limited(pid: int, size_bytes: int) -> Iterator[Path | None]:
    """Put a process into a control group of its own with this much memory; yield the group, or None if not allowed."""
    for root in _GROUPS:
        group = root / f"tagsmith-attacks-{pid}"
        limit = "memory.limit_in_bytes" if root.name == "memory" else "memory.max"
        try:
            group.mkdir()
            (group / limit).write_text(str(size_bytes))
            (group / "cgroup.procs").write_text(str(pid))
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        try:
            yield group
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()
        return
    yield None


def measured(attack: Attack, server: ProcessServer, group: Path | None) -> dict[str, Any]:
    """Run one attack."""
    # A file of the first version of control groups, which can be reset. The second keeps the peak of the whole run.
    peaks = [] if group is None else [group / "memory.max_usage_in_bytes", group / "memory.peak"]
    peak = next((each for each in peaks if each.exists()), None)
    if peak is not None:
        with contextlib.suppress(OSError):
            peak.write_text("0")
    mine, theirs = multiprocessing.Pipe()
    poller = multiprocessing.get_context("spawn").Process(target=poll, args=(server.url, theirs))
    poller.start()
    send = attack.make()
    assert mine.recv() == "ready"
    began = time.monotonic()
    with ThreadPoolExecutor(attack.connections) as pool:
        sent = [pool.submit(send, server.url) for _ in range(attack.connections * attack.times)]
        outcomes = Counter(each.result() for each in sent)
    seconds = time.monotonic() - began
    mine.send(None)
    taken, failed = mine.recv()
    poller.join()
    alive = server.process.poll() is None
    return {
        "attack": attack.name,
        "seconds": round(seconds, 1),
        "outcomes": dict(sorted(outcomes.items())),
        "livez_ms_median": round(median(taken), 1),
        "livez_ms_worst": round(max(taken), 1),
        "livez_failed": failed,
        "alive": alive,
        "peak_mb": None if peak is None else round(int(peak.read_text()) / 1e6),
    }


def main() -> None:
    """Run all attacks and write the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attack", help="only attacks whose name contains this")
    parser.add_argument("--memory-mb", type=int, default=2048)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        redis = RedisServer(Path(folder) / "redis")
        redis.start()
        try:
            settings = Settings(
                data_dir=Path(folder) / "data", redis_url=redis.url, access="anyone-without-keys"
            )
            settings.data_dir.mkdir()
            migrate.upgrade(settings.database_url)
            server = ProcessServer(settings, Path(folder) / "log")
            with limited(server.process.pid, options.memory_mb * MIB) as group, server:
                model = model_file("v1", Path(folder) / "model")
                assert posted(f"/models/{MODEL}/versions", model)(server.url) == "201"
                for attack in attacks():
                    if options.attack is None or options.attack in attack.name:
                        rows.append(measured(attack, server, group))
                        print(rows[-1], flush=True)
        finally:
            redis.stop()
    if options.attack is None:
        memory_mb = options.memory_mb if group is not None else None
        common.record("attacks", {"memory_mb": memory_mb, "attacks": rows})
    if failed := [row["attack"] for row in rows if not withstood(row)]:
        raise SystemExit(f"Not withstood: {', '.join(failed)}")


def withstood(row: dict[str, Any]) -> bool:
    """Whether the process lived, answered in time, and refused without a 5xx other than 503."""
    errors = [each for each in row["outcomes"] if each.startswith("5") and not each.startswith("503")]
    return bool(
        row["alive"] and not row["livez_failed"] and row["livez_ms_worst"] <= MAX_LIVEZ_MS and not errors
    )


if __name__ == "__main__":
    main()
