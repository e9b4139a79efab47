"""Uploads that need more memory than allowed are refused, and the process that serves does not grow."""

import gzip
import io
import zipfile
from collections.abc import Iterator

import httpx
import pytest

from tagsmith.core.service.settings import Settings
from tests.app.servers import ProcessServer, assert_problem

MIB = 1 << 20
#: Buffers of decoders, sockets and batches come to some MiB.
FLAT_BYTES = 48 * MIB
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def running(
    sqlite_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessServer]:
    folder = tmp_path_factory.mktemp("data")
    settings = Settings(
        data_dir=folder,
        database_url=sqlite_url,
        redis_url=redis_url,
        read_memory_bytes=64 * MIB,
        request_memory_bytes=64 * MIB,
    )
    with ProcessServer(settings, folder / "log") as server:
        httpx.post(f"{server.url}/corpora", content=b"word X L\n" * 100_000, timeout=60).raise_for_status()
        yield server


@pytest.fixture
def flat(running: ProcessServer) -> Iterator[ProcessServer]:
    running.forget_peak()
    before = running.peak_bytes()
    yield running
    grown = running.peak_bytes() - before
    assert grown < FLAT_BYTES, f"the server grew by {grown / MIB:.0f} MiB"
    assert len(httpx.get(f"{running.url}/corpora").json()["data"]) == 1
    assert not httpx.get(f"{running.url}/lexicons").json()["data"]


def distinct_words(count: int) -> bytes:
    """Text whose every word is another one, which packs well."""
    return b"".join(b"w%07d X L\n" % i for i in range(count))


def brat(documents: int) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(documents):
            archive.writestr(f"{i}.txt", "a " * (MIB // 2))
            archive.writestr(f"{i}.ann", "")
    return held.getvalue()


UPLOADS = {
    "columns": lambda: ("/corpora", gzip.compress(distinct_words(4_000_000), 1)),
    "blanks": lambda: ("/corpora", gzip.compress(b"a b\n" * (32 * MIB), 1)),
    "brat": lambda: ("/corpora?format=brat", brat(64)),
    "lexicon": lambda: ("/lexicons?kind=words", gzip.compress(distinct_words(2_000_000), 1)),
}


@pytest.mark.parametrize("kind", UPLOADS)
def test_a_small_file_that_takes_much_memory_is_refused(flat: ProcessServer, kind: str) -> None:
    path, body = UPLOADS[kind]()
    response = httpx.post(f"{flat.url}{path}", content=body, timeout=110)
    assert_problem(response, 413, "memory_exceeded")
    assert "TAGSMITH_READ_MEMORY_BYTES" in response.json()["detail"]


@pytest.mark.parametrize("body", [b"[" + b"[]," * (2 * MIB) + b"[]]", b"[" + b"1," * (2 * MIB) + b"1]"])
@pytest.mark.parametrize(("path", "code"), [("/tag", "too_many_values"), ("/jobs", "body_too_large")])
def test_json_with_too_many_values_is_refused_before_it_is_parsed(
    flat: ProcessServer, path: str, code: str, body: bytes
) -> None:
    given = b'{"model": "m", "sentences": ' + body + b"}"
    assert_problem(httpx.post(f"{flat.url}{path}", content=given, headers=JSON, timeout=60), 413, code)
