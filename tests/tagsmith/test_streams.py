"""Streams of events, as a server may send them."""

from collections.abc import Iterator

import httpx
import pytest

from tagsmith import ApiError, Client
from tagsmith.client import following

EVENT = (
    'id: 1\nevent: pass\ndata: {"seq": 1, "type": "pass", "level": "info",\n'
    'data: "at": "2026-01-31T08:00:00Z", "message": "one", "data": {}}\n\n'
)
END = (
    'id: 2\nevent: state\ndata: {"seq": 2, "type": "state", "level": "info", "at": "2026-01-31T08:00:01Z",\n'
    'data:"message": "", "data": {"state": "succeeded"}}\n\n'
)


class Server:
    """Responds with one body after another, and keeps what it was asked."""

    def __init__(self, *bodies: str | httpx.Response | Exception) -> None:
        self.bodies: Iterator[str | httpx.Response | Exception] = iter(bodies)
        self.last_ids: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.last_ids.append(request.headers["last-event-id"])
        body = next(self.bodies)
        if isinstance(body, Exception):
            raise body
        if isinstance(body, httpx.Response):
            return body
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body.encode())

    def client(self) -> Client:
        client = Client("http://server")
        client._http = httpx.Client(base_url="http://server", transport=httpx.MockTransport(self))
        return client


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "RETRY_S", 0.0)


def test_data_of_several_lines_is_one_event() -> None:
    server = Server("retry: 3000\n\n" + EVENT + ": ping\n\n" + END)
    events = list(server.client().follow("job_x"))
    assert [(event.seq, event.type, event.message) for event in events] == [
        (1, "pass", "one"),
        (2, "state", ""),
    ]


def test_progress_between_events_has_no_number_and_is_not_resumed_from() -> None:
    tick = 'event: progress\ndata: {"fraction": 0.5}\n\n'
    server = Server(EVENT + tick, httpx.ConnectError("away"), tick + END)
    events = list(server.client().follow("job_x"))
    assert [(event.seq, event.type) for event in events] == [
        (1, "pass"), (None, "progress"), (None, "progress"), (2, "state"),
    ]  # fmt: skip
    assert events[1].data == {"fraction": 0.5}
    assert server.last_ids == ["0", "1", "1"]


def test_a_job_that_ended_and_was_seen_has_no_stream() -> None:
    server = Server(httpx.Response(204))
    assert list(server.client().follow("job_x", after=9)) == []
    assert server.last_ids == ["9"]


def test_a_stream_is_resumed_when_a_proxy_or_the_server_is_busy_for_a_while() -> None:
    busy = httpx.Response(503, json={"code": "not_ready"})
    server = Server(EVENT, httpx.Response(502, text="bad gateway"), busy, END)
    assert [event.seq for event in server.client().follow("job_x")] == [1, 2]
    assert server.last_ids == ["0", "1", "1", "1"]


def test_an_error_that_is_no_problem_keeps_what_came_and_prints_the_address() -> None:
    server = Server(httpx.Response(500, text="<html>broken"))
    with pytest.raises(ApiError) as caught:
        list(server.client().follow("job_x"))
    assert (caught.value.status, caught.value.code) == (500, "not_a_problem")
    assert caught.value.problem["body"] == "<html>broken"
    assert "answers (500), but not as Tagsmith does. Correct the address." in str(caught.value)
    assert "html" not in str(caught.value)
