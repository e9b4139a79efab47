"""A process that stops: requests on open connections are answered, and each answer says that it is the last."""

import http.client
import signal
import subprocess
import sys
import threading

import httpx
import pytest

from tagsmith.app import server as app_server
from tagsmith.core.service.settings import Settings
from tests.app.servers import ROOT, ThreadServer, assert_problem
from tests.services import wait_until

#: A server that has an application which never comes to its end.
ENDLESS = """
import asyncio
from tagsmith.app import server

never = asyncio.Event()  # a name of the module: otherwise the collector removes the task that waits for it

async def endless(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    print("started", flush=True)
    await never.wait()

server.LAST_S = 1
server.Server(server.uvicorn.Config(endless, lifespan="on", port=0, log_config=None)).run()
"""


def connected(server: ThreadServer) -> http.client.HTTPConnection:
    made = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    made.request("GET", "/livez")
    answer = made.getresponse()
    answer.read()
    assert answer.status == 200
    assert answer.headers["connection"] is None
    return made


def test_a_connection_ends_after_an_answer_and_not_before_one(settings: Settings) -> None:
    server = ThreadServer(settings)
    with server:
        busy, idle = connected(server), connected(server)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        runtime = server.app.state.runtime
        wait_until(runtime.draining.is_set, "the server to drain")
        busy.request("GET", "/livez")
        answer = busy.getresponse()
        assert answer.status == 200
        assert answer.headers["connection"] == "close"
        answer.read()
        with pytest.raises(ConnectionRefusedError):
            connected(server)
        stopping.join()
        assert idle.sock is not None
        assert idle.sock.recv(1) == b""  # closed, in order, with nothing said
        idle.close()
        busy.close()


def test_proxies_have_time_to_notice_before_a_process_stops(settings: Settings) -> None:
    patient = ThreadServer(settings.model_copy(update={"drain_seconds": 3000.0}))
    with patient as server:
        early = connected(server)
        server.ready()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        wait_until(lambda: httpx.get(f"{server.url}/readyz").status_code == 503, "it to say that it stops")
        problem = assert_problem(httpx.get(f"{server.url}/readyz"), 503, "not_ready", parameter="process")
        assert problem["reasons"] == ["the process is stopping"]
        early.request("GET", "/livez")
        answer = early.getresponse()
        answer.read()
        assert (answer.status, answer.headers["connection"]) == (200, None)
        connected(server).close()  # also new connections
        early.close()
        server.server.force_exit = True  # as a second signal does
        stopping.join()


def test_a_process_without_connections_stops_without_the_time_to_drain(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_server, "DRAIN_S", 3600.0)
    with ThreadServer(settings) as server:
        connected(server).close()
        server.stop()


def test_a_process_that_cannot_stop_is_ended_though_nobody_is_there_to_kill_it() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        process.terminate()
        assert process.wait(60) == -signal.SIGALRM
