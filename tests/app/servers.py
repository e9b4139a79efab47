"""Real servers for the tests: in a thread for speed, or as processes of their own where that is the point."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from fastapi import FastAPI

from tagsmith.app.cli.api import server_of
from tagsmith.app.main import create_app
from tagsmith.core.service.settings import Settings
from tagsmith.core.service.tracing.otel import Tracing
from tests.services import wait_until

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0


class ThreadServer:
    """The application under uvicorn on a free port, in a thread of this process."""

    def __init__(
        self,
        settings: Settings,
        *,
        prepare: Callable[[FastAPI], None] | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.settings = settings
        self.app = create_app(settings, tracing)
        if prepare is not None:
            prepare(self.app)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.server = server_of(self.app, settings.proxies)
        self._thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(
            lambda: self.server.started or not self._thread.is_alive(), "the server to start", DEADLINE_S
        )
        if not self.server.started:
            self._socket.close()
            raise AssertionError("the server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the server did not stop"

    def ready(self) -> Self:
        """Wait until it says that it is ready."""
        wait_until(
            lambda: httpx.get(f"{self.url}/readyz").status_code == 200, "the server to be ready", DEADLINE_S
        )
        return self


class ProcessServer:
    """The application in a process of its own, as it is run in earnest."""

    def __init__(
        self, settings: Settings, log_path: Path, program: Sequence[str] = ("tagsmith.cli", "api", "--fd")
    ) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        descriptor = self._socket.fileno()
        command = [sys.executable, "-m", *program, str(descriptor)]
        self._log = log_path.open("ab")
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **settings.to_env()},
            pass_fds=[descriptor],
            stderr=self._log,
            stdout=self._log,
        )
        self.log_path = log_path

    def __enter__(self) -> Self:
        try:
            wait_until(self._ready, "the server process to be ready", DEADLINE_S)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._socket.close()
        self._log.close()

    def peak_bytes(self) -> int:
        """Give the most memory the process ever had resident."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """Let the peak start again from what is resident now."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def _status(self, field: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {field}")

    def _ready(self) -> bool:
        assert self.process.poll() is None, f"the server ended at once:\n{self.log_path.read_text()}"
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


def assert_problem(
    response: httpx.Response,
    status: int,
    code: str,
    *,
    reason: str | None = None,
    **where: Any,
) -> Mapping[str, Any]:
    """Check that a response is a whole problem, and that one of its places is `where` and says `reason`."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["code"] == code, problem
    assert problem["status"] == status
    assert problem["type"] == f"urn:tagsmith:problem:{code}"
    assert problem["title"]
    assert problem["detail"]
    assert problem["instance"] == response.request.url.path
    assert problem["request_id"] == response.headers["x-request-id"]
    assert isinstance(problem["errors"], list)
    if code in {"invalid_request", "invalid_spec"}:
        assert all(place["type"] for place in problem["errors"]), problem["errors"]
    if where or reason:
        places = [place for place in problem["errors"] if where.items() <= place.items()]
        assert places, problem["errors"]
        assert any((reason or "") in place["detail"] for place in places), places
    return problem
