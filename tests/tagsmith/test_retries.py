"""Which calls are repeated after which failures."""

from collections.abc import Iterator

import anyio
import httpx
import pytest

from tagsmith import ApiError, AsyncClient, Client
from tagsmith.client import retrying

LEXICON = {
    "id": "lex_x", "name": "a", "kind": "words", "entries": 1, "classes": 0, "sha256": "", "size_bytes": 1,
    "created_at": "2026-01-31T08:00:00Z",
}  # fmt: skip
Outcome = httpx.Response | Exception


class Server:
    """Responds with one outcome after another, and keeps the requests."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes: Iterator[Outcome] = iter(outcomes)
        self.requests: list[httpx.Request] = []
        self.bodies: list[bytes] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(request.read())
        return self.respond(request)

    async def asynchronous(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(await request.aread())
        return self.respond(request)

    def respond(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        outcome = next(self.outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def client(self, retries: int = retrying.RETRIES) -> Client:
        client = Client("http://server", retries=retries)
        client._http = httpx.Client(base_url="http://server", transport=httpx.MockTransport(self))
        return client

    @property
    def keys(self) -> set[str | None]:
        return {request.headers.get("idempotency-key") for request in self.requests}


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delays, which are not waited for."""
    delays: list[float] = []
    monkeypatch.setattr("tagsmith.client.sync.time.sleep", delays.append)
    return delays


def busy() -> httpx.Response:
    return httpx.Response(503, json={"code": "not_ready", "detail": "Try again."})


def made() -> httpx.Response:
    return httpx.Response(201, json=LEXICON)


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("Server disconnected without sending a response."),
        httpx.Response(503, json={"code": "not_ready"}),
        httpx.Response(429, json={"code": "too_many_requests"}),
        httpx.Response(502, text="<html>bad gateway"),
        httpx.Response(409, json={"code": retrying.IN_PROGRESS}),
    ],
)
def test_an_upload_is_repeated_whole_with_the_same_key(failure: Outcome) -> None:
    server = Server(failure, failure, made())
    assert server.client().upload_lexicon(b"a X\n" * 600_000).id == "lex_x"
    assert [len(body) for body in server.bodies] == [2_400_000] * 3
    assert len(server.keys) == 1
    assert None not in server.keys


def test_every_call_that_creates_has_a_key_of_its_own_unless_one_is_given() -> None:
    server = Server(made(), made(), made())
    client = server.client()
    client.upload_lexicon(b"a X\n")
    client.upload_lexicon(b"a X\n")
    client.upload_lexicon(b"a X\n", idempotency_key="mine")
    assert len(server.keys) == 3
    assert "mine" in server.keys


def test_delays_grow_and_attempts_end(slept: list[float]) -> None:
    server = Server(*[httpx.ConnectError("refused")] * 9)
    with pytest.raises(httpx.ConnectError):
        server.client().server_version()
    assert len(server.requests) == 1 + retrying.RETRIES
    bounds = [retrying.FIRST_DELAY_S * 2**n for n in range(retrying.RETRIES)]
    assert all(bound / 2 <= delay <= bound for delay, bound in zip(slept, bounds, strict=True))
    assert len(set(slept)) == len(slept)
    server = Server(httpx.ConnectError("refused"))
    with pytest.raises(httpx.ConnectError):
        server.client(retries=0).server_version()


def test_the_delay_that_the_server_requests_is_kept(slept: list[float]) -> None:
    busy = httpx.Response(429, headers={"Retry-After": "7"}, json={"code": "too_many_requests"})
    assert Server(busy, made()).client().upload_lexicon(b"a X\n").id == "lex_x"
    assert 7 < slept[0] < 7.3
    past = {"Retry-After": "Sat, 31 Jan 2026 08:00:00 GMT"}
    Server(httpx.Response(503, headers=past, json={}), made()).client().upload_lexicon(b"a X\n")
    assert slept[1] < 0.3


def test_a_long_delay_is_left_to_the_caller(slept: list[float]) -> None:
    busy = httpx.Response(429, headers={"Retry-After": "3600"}, json={"code": "too_many_requests"})
    with pytest.raises(ApiError) as caught:
        Server(busy).client().upload_lexicon(b"a X\n")
    assert caught.value.retry_after_s == 3600
    assert slept == []


@pytest.mark.parametrize("failure", [httpx.ReadError("reset"), httpx.Response(502, text="bad gateway")])
def test_a_change_that_may_have_been_made_is_not_made_again(failure: Outcome) -> None:
    server = Server(failure)
    with pytest.raises((httpx.ReadError, ApiError)):
        server.client().promote("m", 1)
    server = Server(failure)
    with pytest.raises((httpx.ReadError, ApiError)):
        server.client().create_key("ops", ["read"])  # a second response would have no token
    assert server.keys == {None}


def test_tagging_changes_nothing_and_is_repeated() -> None:
    tagged = httpx.Response(200, json={"model": "m", "version": 1, "tags": [["O"]]})
    assert Server(httpx.ReadError("reset"), tagged).client().tag("m", [["a"]]).tags == [["O"]]
    lines = httpx.Response(200, content=b'{"model":"m","version":1}\n{"line":2,"tags":["O"]}\n')
    assert len(list(Server(httpx.ReadError("reset"), lines).client().tag_lines("m", ["a"]))) == 1


@pytest.mark.parametrize("failure", [httpx.ReadTimeout("slow"), httpx.Response(422, json={"code": "x"})])
def test_other_failures_are_raised_at_once(failure: Outcome, slept: list[float]) -> None:
    with pytest.raises((httpx.ReadTimeout, ApiError)):
        Server(failure).client().upload_lexicon(b"a X\n")
    assert slept == []


def test_whether_a_server_is_ready_is_asked_once(slept: list[float]) -> None:
    assert not Server(busy()).client().ready()
    assert not Server(httpx.ConnectError("refused")).client().ready()
    assert slept == []


def test_the_asynchronous_client_repeats_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "FIRST_DELAY_S", 0.001)
    server = Server(busy(), httpx.ReadError("reset"), made())

    async def main() -> None:
        async with AsyncClient("http://server") as client:
            transport = httpx.MockTransport(server.asynchronous)
            client._http = httpx.AsyncClient(base_url="http://server", transport=transport)
            assert (await client.upload_lexicon(b"a X\n")).id == "lex_x"

    anyio.run(main)
    assert len(server.keys) == 1
    assert server.bodies == [b"a X\n"] * 3
