"""Hosts and origins: what a web page of another site can make a browser send is refused."""

import socket

import httpx
import pytest

from tagsmith.core.service.settings import ANYONE, Settings
from tagsmith.core.store.engine import Database
from tests.app.keys import Callers
from tests.app.servers import ThreadServer, assert_problem

FOREIGN_HOSTS = [
    "evil.example", "evil.example:8765", "localhost.evil.example", "127.0.0.1.evil.example", "128.0.0.1",
    "[fd00::1]:8765", "localhost:port", "localhost@evil.example", "a b", "",
]  # fmt: skip
OWN_HOSTS = ["localhost", "LocalHost:8765", "127.0.0.1", "127.8.9.1:80", "[::1]", "[::1]:8765"]


def port_of(http: httpx.Client) -> int:
    assert http.base_url.port is not None
    return http.base_url.port


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/models"), ("POST", "/tag"), ("GET", "/none")]
)
def test_a_foreign_host_is_refused_without_keys(
    http: httpx.Client, host: str, method: str, path: str
) -> None:
    refused = http.request(method, path, headers={"Host": host})
    problem = assert_problem(refused, 403, "host_not_allowed")
    assert "TAGSMITH_ALLOWED_HOSTS" in problem["detail"]


@pytest.mark.parametrize("host", OWN_HOSTS)
def test_every_name_of_loopback_is_accepted(http: httpx.Client, host: str) -> None:
    assert http.get("/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_probes_are_reachable_by_any_name(http: httpx.Client, path: str) -> None:
    assert http.get(path, headers={"Host": "10.1.2.3:8765"}).status_code in (200, 503)
    assert "checks" in http.get("/readyz", headers={"Host": "10.1.2.3"}).json()


@pytest.mark.parametrize(
    "head", ["HTTP/1.0", "HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", "HTTP/1.1\r\nHost:"]
)
def test_a_request_that_does_not_name_one_host_is_refused(http: httpx.Client, head: str) -> None:
    with socket.create_connection(("127.0.0.1", port_of(http)), timeout=30) as connection:
        connection.sendall(f"GET /models {head}\r\n\r\n".encode())
        assert b" 40" in connection.recv(1000).split(b"\r\n")[0]


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "https://localhost"},
    {"Origin": "http://localhost:1"},
    {"Origin": "http://localhost:{port}.evil.example"},
    {"Origin": "null"},
    {"Origin": "chrome-extension://localhost:{port}"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://localhost:{port}", "Sec-Fetch-Site": "cross-site"},
]
OWN = [
    {},
    {"Origin": "http://localhost:{port}"},
    {"Origin": "https://LOCALHOST:{port}", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
]


def own_headers(http: httpx.Client, headers: dict[str, str]) -> dict[str, str]:
    port = port_of(http)
    filled = {name: value.replace("{port}", str(port)) for name, value in headers.items()}
    return {"Host": f"localhost:{port}", **filled}


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/tag"), ("POST", "/corpora"), ("PUT", "/models/m/aliases/a"), ("DELETE", "/corpora/c")],
)
@pytest.mark.usefixtures("unchanged")
def test_a_page_of_another_site_changes_nothing(
    http: httpx.Client, headers: dict[str, str], method: str, path: str
) -> None:
    refused = http.request(method, path, content=b"a X\n", headers=own_headers(http, headers))
    assert_problem(refused, 403, "origin_not_allowed")


@pytest.mark.parametrize("headers", FOREIGN)
def test_reading_depends_on_the_host_only(http: httpx.Client, headers: dict[str, str]) -> None:
    assert http.get("/models", headers=own_headers(http, headers)).status_code == 200


@pytest.mark.parametrize("headers", OWN)
def test_our_own_pages_and_programs_that_are_no_browsers_may_change_things(
    http: httpx.Client, headers: dict[str, str]
) -> None:
    assert http.post("/corpora", content=b"a X\n", headers=own_headers(http, headers)).status_code == 201


def test_hosts_that_the_settings_name_are_accepted(settings: Settings) -> None:
    changed = settings.replace(access=ANYONE, allowed_hosts="Tags.example, other.example:81,[fd00::1]")
    with ThreadServer(changed) as running, httpx.Client(base_url=running.url) as http:
        for host in ("tags.example", "tags.example:99", "other.example:81", "[fd00::1]:8765", "localhost"):
            assert http.get("/models", headers={"Host": host}).status_code == 200
        for host in ("www.tags.example", "other.example", "other.example:82"):
            assert_problem(http.get("/models", headers={"Host": host}), 403, "host_not_allowed")

        def posted(host: str, origin: str) -> httpx.Response:
            return http.post("/corpora", content=b"a X\n", headers={"Host": host, "Origin": origin})

        assert posted("tags.example", "https://tags.example").status_code == 201
        # A proxy may have put its own name for us into Host.
        assert posted("localhost:8765", "https://tags.example").status_code == 201
        assert_problem(posted("localhost:8765", "https://other.example"), 403, "origin_not_allowed")
        assert_problem(posted("tags.example", "https://evil.example"), 403, "origin_not_allowed")


def test_with_keys_hosts_are_restricted_only_by_the_settings_and_origins_always(
    settings: Settings, database: Database
) -> None:
    with ThreadServer(settings.replace(host="0.0.0.0")) as running:
        callers = Callers(database, running.url)
        http = callers.client("admin")
        public = {"Host": "tags.example"}
        assert http.get("/models", headers=public).status_code == 200
        assert http.post("/corpora", content=b"a X\n", headers=public).status_code == 201
        own = http.post("/corpora", content=b"a X\n", headers={**public, "Origin": "https://tags.example"})
        assert own.status_code == 201
        foreign = http.post(
            "/corpora", content=b"a X\n", headers={**public, "Origin": "https://evil.example"}
        )
        assert_problem(foreign, 403, "origin_not_allowed")
        callers.close()
    with ThreadServer(settings.replace(host="0.0.0.0", allowed_hosts="tags.example")) as running:
        callers = Callers(database, running.url)
        http = callers.client("admin")
        assert http.get("/models", headers={"Host": "tags.example"}).status_code == 200
        assert_problem(http.get("/models", headers={"Host": "evil.example"}), 403, "host_not_allowed")
        callers.close()
