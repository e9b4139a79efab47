"""Tagging during changes: 200 clients for a minute, an alias moved every second, an API process restarted.

There are two versions, which the labels identify, on PostgreSQL, and two API processes. Every response must be a 200
whose tags all belong to the version that it names. A process that shuts down marks its last response on a connection,
and the client connects again, as any HTTP client does. A connection that ends without this mark counts as lost, and so
does a refused connection.

python -m benchmarks.rollout
"""

import argparse
import asyncio
import json
import os
import signal
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

import httpx

from benchmarks import common
from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.service.settings import Settings
from tests.services import PostgresServer

CLIENTS = 200
MODEL = "rolled"
#: Rows of a request: several sentences, so that a response with mixed versions would be detected.
SENTENCES = 5


@dataclass
class Seen:
    """The observations of the clients."""

    versions: Counter[int] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    mixed: int = 0
    #: Connections that ended after an announcement, that ended instead of a response, and that were refused.
    ended: int = 0
    lost: int = 0
    refused: int = 0


def marked(mark: str) -> bytes:
    """A corpus whose every label ends in `mark`."""
    lines = b"".join(generate("references", 300, 1)).decode().splitlines()
    return "\n".join(f"{line}-{mark}" if line.strip() else "" for line in lines).encode() + b"\n"


def publish(client: Client) -> dict[int, str]:
    """Train the two versions; return the mark of each."""
    marks = {}
    for mark in ("one", "two"):
        spec = {"model": MODEL, "corpus": client.upload(marked(mark)).id, "promote": "champion"}
        job = client.wait(client.train({**spec, "trainer": {"kind": "sgd-l1", "passes": 3}}).id)
        if job.result is None:
            raise SystemExit(f"the job {job.state}: {job.error}")
        marks[int(job.result["version"])] = mark
    return marks


def request_of(host: str) -> bytes:
    """The bytes of a request to tag the first sentences of the corpus."""
    text = b"".join(generate("references", SENTENCES, 1)).decode()
    sentences = [
        [line.split()[:-1] for line in block.splitlines()] for block in text.split("\n\n") if block.strip()
    ]
    body = json.dumps({"model": MODEL, "sentences": sentences}).encode()
    head = f"POST /tag HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """Read one response: status, body, and whether it is the last on this connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    lengths = [line.split(":")[1] for line in head if line.lower().startswith("content-length:")]
    last = any(line.lower() == "connection: close" for line in head)
    return int(head[0].split()[1]), await reader.readexactly(int(lengths[0])), last


async def tag_until(
    end: float, address: tuple[str, int], request: bytes, marks: dict[int, str], seen: Seen
) -> None:
    """Tag in a loop on one connection; open a new one when it is closed."""
    while time.monotonic() < end:
        try:
            reader, writer = await asyncio.open_connection(*address)
        except OSError:
            seen.refused += 1
            await asyncio.sleep(0.05)
            continue
        try:
            last = False
            while time.monotonic() < end and not last:
                began = time.perf_counter()
                writer.write(request)
                status, body, last = await answer_of(reader)
                seen.seconds.append(time.perf_counter() - began)
                note(status, body, marks, seen)
            seen.ended += last
        except (OSError, asyncio.IncompleteReadError):
            seen.lost += 1
        finally:
            writer.close()


def note(status: int, body: bytes, marks: dict[int, str], seen: Seen) -> None:
    """Check one response."""
    seen.statuses[status] += 1
    if status != 200:
        return
    answer = json.loads(body)
    seen.versions[answer["version"]] += 1
    mark = marks[answer["version"]]
    seen.mixed += not all(tag.endswith(mark) for tags in answer["tags"] for tag in tags)


def moves(url: str, seconds: float, versions: list[int]) -> list[float]:
    """Move the alias every second; return the time of each move. In its own process, for exact timing."""
    taken: list[float] = []
    first = time.monotonic()
    with Client(url) as client:
        while time.monotonic() < first + seconds:
            time.sleep(max(0.0, first + len(taken) - time.monotonic()))
            began = time.perf_counter()
            try:
                client.promote(MODEL, versions[len(taken) % len(versions)])
            except httpx.TransportError:
                continue  # its connection was to the process that is restarted
            taken.append(time.perf_counter() - began)
    return taken


async def restart(data_dir: Path, after_s: float) -> bool:
    """Stop an API process; return whether another one replaced it."""
    await asyncio.sleep(after_s)
    path = data_dir / "run" / "api-1.pid"
    first = json.loads(path.read_text())[0]
    os.kill(first, signal.SIGTERM)
    for _ in range(600):
        await asyncio.sleep(0.1)
        if path.exists() and (text := path.read_text()) and json.loads(text)[0] != first:
            return True
    return False


async def load(stack: BackgroundStack, marks: dict[int, str], seconds: float) -> dict[str, Any]:
    """Run the clients."""
    place = urlsplit(stack.url)
    address = (str(place.hostname), int(place.port or 80))
    request, seen, end = request_of(place.netloc), Seen(), time.monotonic() + seconds
    clients = [tag_until(end, address, request, marks, seen) for _ in range(CLIENTS)]
    with ProcessPoolExecutor(1) as mover:
        moving = asyncio.get_running_loop().run_in_executor(mover, moves, stack.url, seconds, list(marks))
        restarted, *_ = await asyncio.gather(restart(stack.settings.data_dir, seconds / 3), *clients)
        moved = await moving
    parts = quantiles(seen.seconds, n=100)
    return {
        "clients": CLIENTS,
        "seconds": seconds,
        "answers": sum(seen.statuses.values()),
        "statuses": {str(status): count for status, count in sorted(seen.statuses.items())},
        "by_version": {str(version): count for version, count in sorted(seen.versions.items())},
        "answers_of_mixed_versions": seen.mixed,
        "alias_moves": len(moved),
        "alias_move_seconds_median": round(median(moved), 3),
        "alias_move_seconds_most": round(max(moved), 3),
        "api_process_restarted": restarted,
        "connections_ended_by_the_restart": seen.ended,
        "connections_lost": seen.lost,
        "connections_refused": seen.refused,
        "seconds_median": round(parts[49], 4),
        "seconds_p99": round(parts[98], 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--data", type=Path, help="not needed: the corpora are made up")
    options = parser.parse_args()
    server = PostgresServer()
    try:
        server.start()
        with tempfile.TemporaryDirectory() as folder:
            given = {"port": 0, "data_dir": Path(folder) / "data", "database_url": server.url}
            stack = BackgroundStack(Settings.from_env({}, {**given, "api_processes": 2, "workers": 2}))
            with stack, Client(stack.url) as client:
                result = asyncio.run(load(stack, publish(client), options.seconds))
    finally:
        server.stop()
    print(common.record("rollout", result).read_text())
    if set(result["statuses"]) != {"200"} or result["answers_of_mixed_versions"]:
        raise SystemExit("an answer was no tagging by one version")
    if result["connections_lost"]:
        raise SystemExit("a request that was accepted got no answer")
    if result["alias_moves"] < 0.9 * options.seconds:
        raise SystemExit(f"the alias moved {result['alias_moves']} times only: a move waits for the clients")


if __name__ == "__main__":
    main()
