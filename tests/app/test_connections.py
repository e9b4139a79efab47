"""Connections before their first request: what is too large or too slow is refused, whoever sends it."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tagsmith.app.http import connection
from tagsmith.app.http.problems import TooMany
from tagsmith.app.keys import failures
from tagsmith.app.keys.failures import FailedKeys
from tagsmith.core.service.settings import Settings
from tests.app.servers import ProcessServer, ThreadServer

BEGIN = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n"


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    parts = httpx.URL(url)
    with socket.create_connection((parts.host, parts.port or 80), timeout=30) as opened:
        yield opened


def answer_of(opened: socket.socket) -> bytes:
    """All that the server sends until it closes. What we still sent may reset the connection after that."""
    parts = []
    try:
        while part := opened.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_a_head_that_is_too_large_is_refused(server: ThreadServer) -> None:
    with connected(server.url) as opened:
        opened.sendall(
            b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * connection.MAX_HEAD_BYTES + b"\r\n\r\n"
        )
        assert answer_of(opened).startswith(b"HTTP/1.1 431 ")
    at_the_limit = httpx.get(f"{server.url}/livez", headers={"x": "a" * (connection.MAX_HEAD_BYTES - 1000)})
    assert at_the_limit.status_code == 200


@pytest.mark.parametrize("begin", [BEGIN + b"x: ", b"GET /"])
def test_a_header_without_end_is_cut_short(server: ThreadServer, begin: bytes) -> None:
    sent = 0
    with connected(server.url) as opened:
        opened.sendall(begin)
        try:
            while sent < 64 << 20:
                sent += opened.send(b"a" * 65536)
        except (BrokenPipeError, ConnectionResetError):
            pass
    # The buffers of the two sockets hold a few MiB.
    assert sent < 16 << 20


def test_many_small_headers_count_together(server: ThreadServer) -> None:
    with connected(server.url) as opened:
        opened.sendall(BEGIN)
        opened.sendall(b"".join(b"x-%d: %s\r\n" % (i, b"v" * 100) for i in range(1000)) + b"\r\n")
        assert answer_of(opened).startswith(b"HTTP/1.1 431 ")


def test_a_client_that_does_not_finish_the_head_of_a_request_is_cut_off(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.3)
    with ThreadServer(settings) as server:
        for begin in (b"", b"GET /livez HTTP/1.1\r\nhost: local"):
            with connected(server.url) as opened:
                opened.sendall(begin)
                assert answer_of(opened).startswith(b"HTTP/1.1 408 ")
        # The next request of a connection has the same time.
        with connected(server.url) as opened:
            opened.sendall(BEGIN + b"\r\n")
            assert opened.recv(65536).startswith(b"HTTP/1.1 200 ")
            opened.sendall(b"GET /livez HTTP/1.1\r\nhost: ")
            assert b"HTTP/1.1 408 " in answer_of(opened)


def test_a_process_may_open_as_many_files_as_the_system_lets_it(settings: Settings, tmp_path: Path) -> None:
    with ProcessServer(settings, tmp_path / "log") as server:
        soft, hard = psutil.Process(server.process.pid).rlimit(psutil.RLIMIT_NOFILE)
        assert soft == hard


def test_only_configured_proxies_state_the_address_of_a_caller(settings: Settings) -> None:
    stated = {"x-forwarded-for": "203.0.113.7"}
    limited = settings.replace(max_requests_per_second=1)
    for proxies, refused in (("", False), ("127.0.0.1", True)):
        with ThreadServer(limited.replace(trusted_proxies=proxies)) as server, httpx.Client() as client:
            # This machine has no limit of requests; the address behind a proxy has.
            statuses = {client.get(f"{server.url}/models", headers=stated).status_code for _ in range(60)}
            assert (429 in statuses) == refused


def test_an_address_that_guesses_keys_waits_and_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(failures.time, "monotonic", lambda: now)
    failed = FailedKeys()

    async def play() -> None:
        nonlocal now
        for _ in range(failures.BURST):
            failed.check("guesser")
            failed.count("guesser")
        with pytest.raises(TooMany) as refused:
            failed.check("guesser")
        assert 0 < refused.value.retry_after_s <= failures.SECONDS_EACH
        failed.check("another")
        now += failures.SECONDS_EACH + 0.01
        failed.check("guesser")
        failed.count("guesser")
        with pytest.raises(TooMany):
            failed.check("guesser")

    asyncio.run(play())
    for i in range(failures.MAX_ADDRESSES + 10):
        failed.count(str(i))
    failed.check("guesser")  # forgotten
