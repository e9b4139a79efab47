"""What every request gets, whatever its route: ids, problems, log lines."""

import errno
import json
import logging

import httpx
import pytest
from fastapi import FastAPI

from tagsmith.app.http import problems
from tagsmith.app.http.policy import policy
from tagsmith.core.service import logs
from tagsmith.core.service.settings import Settings
from tests.app.servers import ThreadServer, assert_problem
from tests.services import wait_until

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def sqlite_settings(sqlite_url: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data_dir=tmp_path_factory.mktemp("data"), database_url=sqlite_url)


@pytest.fixture(scope="module")
def broken(sqlite_settings: Settings):  # type: ignore[no-untyped-def]
    def prepare(app: FastAPI) -> None:
        @app.get("/broken")
        @policy(scope=None)
        def fail() -> None:
            raise RuntimeError("the secret is 1234")

        @app.get("/full")
        @policy(scope=None)
        def fill() -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        @app.get("/lost")
        @policy(scope=None)
        def lose() -> None:
            raise FileNotFoundError("the secret is 1234")

    with ThreadServer(sqlite_settings, prepare=prepare) as server:
        yield server


@pytest.fixture(scope="module")
def http(broken: ThreadServer):  # type: ignore[no-untyped-def]
    with httpx.Client(base_url=broken.url) as client:
        yield client


@pytest.mark.parametrize("path", ["/nowhere", "/corpora/a/b/c", "/jobs/", "/redoc"])
def test_an_unknown_route_is_a_problem(http: httpx.Client, path: str) -> None:
    problem = assert_problem(http.get(path), 404, "route_not_found")
    assert path in problem["detail"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/tag", "POST"),
        ("PATCH", "/corpora", "GET, POST"),
        ("POST", "/livez", "GET"),
        ("OPTIONS", "/models/a/versions/1", "GET, DELETE"),
        ("POST", "/models/a/aliases/b", "GET, PUT"),
    ],
)
def test_an_unknown_method_is_a_problem_that_says_what_is_allowed(
    http: httpx.Client, method: str, path: str, allowed: str
) -> None:
    response = http.request(method, path)
    assert_problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == allowed


def test_a_fault_of_ours_tells_nothing_of_the_inside(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "app.errors"):
        response = http.get("/broken", headers={"X-Request-Id": "find-me"})
    assert_problem(response, 500, "internal_error")
    assert "1234" not in response.text
    assert "RuntimeError" not in response.text
    record = next(record for record in caplog.records if record.name == "app.errors")
    assert record.request_id == "find-me"  # type: ignore[attr-defined]
    assert "the secret is 1234" in logs.JsonLines().format(record)


def test_a_problem_about_text_that_utf_8_cannot_encode_is_sent_escaped() -> None:
    response = problems.problem_response({"path": "/"}, 422, "invalid", "No label '\ud800'.")
    assert json.loads(bytes(response.body))["detail"] == "No label '\ud800'."
    assert b"\\ud800" in bytes(response.body)


def test_a_request_id_is_taken_over_and_given_back(http: httpx.Client) -> None:
    response = http.get("/nowhere", headers={"X-Request-Id": "abc-123"})
    assert response.headers["x-request-id"] == "abc-123"
    assert response.json()["request_id"] == "abc-123"


@pytest.mark.parametrize("given", ["", "with blank", "x" * 129, "umläut", "a\tb"])
def test_a_request_id_that_is_not_plain_is_replaced(http: httpx.Client, given: str) -> None:
    response = http.get("/livez", headers={"X-Request-Id": given.encode("latin-1")})
    assert len(response.headers["x-request-id"]) == 16


def test_each_request_is_one_json_line(http: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    def lines() -> list[logging.LogRecord]:
        return [record for record in caplog.records if getattr(record, "request_id", "") == "line-1"]

    with caplog.at_level(logging.INFO, "app.access"):
        http.get("/nowhere?name=secret", headers={"X-Request-Id": "line-1"})
        wait_until(lambda: bool(lines()), "the line, written once the answer is sent")
    records = lines()
    assert len(records) == 1
    line = json.loads(logs.JsonLines().format(records[0]))
    assert line["duration_ms"] > 0
    assert line["sent_bytes"] > 100
    assert line["at"].endswith("Z")
    wanted = {"level": "info", "logger": "app.access", "event": "request", "method": "GET", "status": 404}
    assert wanted.items() <= line.items()
    assert line["path"] == "/nowhere"


def test_a_full_disk_is_an_outage_and_other_errors_of_files_are_not(http: httpx.Client) -> None:
    response = http.get("/full")
    assert_problem(response, 503, "disk_full")
    assert response.json()["detail"] == "The disk of the service is full. Free some space, then try again."
    assert "Retry-After" in response.headers
    assert_problem(http.get("/lost"), 500, "internal_error")
