"""Large wrong inputs leave the memory of the server process as it was."""

import gzip
from collections.abc import Iterator

import httpx
import pytest

from tagsmith.core.service.settings import Settings
from tests.app import samples
from tests.app.servers import ProcessServer, assert_problem

MIB = 1 << 20
#: Buffers of decoders, sockets and batches come to some MiB; what is sent here is a hundred times that and more.
FLAT_BYTES = 48 * MIB


@pytest.fixture(scope="module")
def running(
    sqlite_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessServer]:
    folder = tmp_path_factory.mktemp("data")
    settings = Settings(data_dir=folder, database_url=sqlite_url, redis_url=redis_url)
    with ProcessServer(settings, folder / "log") as server:
        # Everything that is loaded at its first use is loaded now.
        httpx.post(f"{server.url}/corpora", content=samples.TEXT * 10_000, timeout=60).raise_for_status()
        packed = gzip.compress(samples.TEXT)
        httpx.post(
            f"{server.url}/corpora", content=packed, headers={"Content-Encoding": "gzip"}
        ).raise_for_status()
        yield server


@pytest.fixture
def flat(running: ProcessServer) -> Iterator[ProcessServer]:
    running.forget_peak()
    before = running.peak_bytes()
    yield running
    grown = running.peak_bytes() - before
    assert grown < FLAT_BYTES, f"the server grew by {grown / MIB:.0f} MiB"
    assert len(httpx.get(f"{running.url}/corpora").json()["data"]) == 2


def gzip_of(byte: bytes, size: int) -> bytes:
    """A byte repeated, as many small gzip members, which is one valid gzip file and takes no time to make."""
    return gzip.compress(byte * (16 * MIB)) * (size // (16 * MIB))


def test_a_line_of_100_mb(flat: ProcessServer) -> None:
    lines = (b"x" * MIB for _ in range(100))
    response = httpx.post(f"{flat.url}/corpora", content=lines, timeout=60)
    assert_problem(response, 422, "invalid_corpus", line=1, reason="longer than 1048576 bytes")


@pytest.mark.parametrize(
    ("byte", "status", "code"), [(b"\n", 413, "corpus_too_large"), (b"\0", 422, "not_a_corpus")]
)
def test_a_gzip_bomb_of_2_gb(flat: ProcessServer, byte: bytes, status: int, code: str) -> None:
    body = gzip_of(byte, 2048 * MIB)
    assert len(body) < 3 * MIB
    response = httpx.post(
        f"{flat.url}/corpora", content=body, headers={"Content-Encoding": "gzip"}, timeout=110
    )
    assert_problem(response, status, code)


def test_json_nested_100_000_deep(flat: ProcessServer) -> None:
    headers = {"Content-Type": "application/json"}
    for path in ("/jobs", "/tag"):
        for opening in (b"[", b'{"a":'):
            response = httpx.post(f"{flat.url}{path}", content=opening * 100_000, headers=headers)
            assert_problem(response, 400, "json_too_deep", line=1, reason="recursion limit")


def test_an_endless_body_of_unknown_length(flat: ProcessServer) -> None:
    block = b"word X L\n" * 100_000

    def endless() -> Iterator[bytes]:
        for _ in range(400):
            yield block

    response = httpx.post(
        f"{flat.url}/tag", content=endless(), headers={"Content-Type": "application/json"}, timeout=60
    )
    assert_problem(response, 413, "body_too_large")


def test_a_million_faulty_lines(flat: ProcessServer) -> None:
    body = b"word X L\n" + b"ragged\n" * 1_000_000
    problem = assert_problem(
        httpx.post(f"{flat.url}/corpora", content=body, timeout=60), 422, "invalid_corpus"
    )
    assert len(problem["errors"]) == 100


def test_a_good_corpus_of_100_mb_costs_its_integer_columns_and_no_copy_of_the_text(
    running: ProcessServer,
) -> None:
    line = b"".join(b"word%d TAG%d LABEL%d\n" % (i, i % 40, i % 20) for i in range(2_000)) + b"\n"
    repeats = 100 * MIB // len(line)
    running.forget_peak()
    before = running.peak_bytes()
    response = httpx.post(f"{running.url}/corpora", content=(line for _ in range(repeats)), timeout=110)
    assert response.status_code == 201, response.text
    tokens = response.json()["tokens"]
    assert tokens == 2_000 * repeats
    grown = running.peak_bytes() - before
    # Three int32 columns, once as blocks and once joined, and the report's own arrays over tokens.
    assert grown < tokens * 60 + FLAT_BYTES, f"the server grew by {grown / MIB:.0f} MiB for {tokens} tokens"
    httpx.delete(f"{running.url}/corpora/{response.json()['id']}").raise_for_status()
