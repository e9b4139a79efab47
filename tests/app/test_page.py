"""The page: served from here alone, under a policy that lets no stored text become a script."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import httpx
import pytest

from tagsmith.app.page.routes import FOLDER, POLICY, SAMPLE_SENTENCES
from tagsmith.client import Client
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tests.app.keys import Callers
from tests.app.servers import ThreadServer, assert_problem
from tests.services import wait_until

NAMES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file())
SCRIPTS = [name for name in NAMES if name.endswith(".js")]
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: The name of a vocabulary, which nobody fetches.
NAMESPACE = "http://www.w3.org/2000/svg"
#: Whatever would read text as markup or as a program.
SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment"
    r"|DOMParser|srcdoc|javascript:|setHTML|localStorage|document\.cookie"
)
MOST_LINES = 300


@pytest.fixture(scope="module")
def http(sqlite_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One server: what it serves here is in no database."""
    with (
        ThreadServer(Settings(data_dir=tmp_path_factory.mktemp("data"), database_url=sqlite_url)) as running,
        httpx.Client(base_url=running.url, timeout=30) as client,
    ):
        yield client


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def imports_of(name: str) -> set[str]:
    """The scripts that a script imports, by their paths in the folder."""
    found = re.findall(r'from "(\.[^"]+)"', text_of(name))
    here = FOLDER / PurePosixPath(name).parent
    return {(here / each).resolve().relative_to(FOLDER.resolve()).as_posix() for each in found}


@pytest.mark.parametrize("name", ["", *NAMES])
def test_every_part_has_its_type_and_the_policy(http: httpx.Client, name: str) -> None:
    answer = http.get(f"/page/{name}" if name else "/")
    assert answer.status_code == 200
    assert answer.text == text_of(name or "index.html")
    assert answer.headers["content-type"] == MEDIA_TYPES[Path(name or "index.html").suffix]
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"
    again = http.get(answer.request.url, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_policy_allows_files_of_the_server_and_nothing_else() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert {value for name, value in rules.items() if name.endswith("-src")} == {"'none'", "'self'"}
    assert rules["require-trusted-types-for"] == "'script'"
    assert rules["trusted-types"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_comes_from_elsewhere_and_every_reference_leads_somewhere(
    http: httpx.Client, name: str
) -> None:
    text = text_of(name).replace(NAMESPACE, "")
    assert not re.search(r"https?:|[\"'(]//", text)
    assert "url(" not in text
    for address in re.findall(r'(?:src|href)="(/[^"#]*)"', text):
        assert http.get(address).status_code == 200, (name, address)
    assert imports_of(name) <= set(SCRIPTS)


def test_every_script_is_used() -> None:
    reached, rest = set[str](), {"main.js"}
    while rest:
        name = rest.pop()
        reached.add(name)
        rest |= imports_of(name) - reached
    assert reached == set(SCRIPTS)


def test_the_page_has_no_script_style_or_handler_of_its_own() -> None:
    page = text_of("index.html")
    assert re.findall(r"<script[^>]*>([^<]*)</script>", page) == [""]
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_reads_text_as_markup_or_keeps_a_key_beyond_its_tab(name: str) -> None:
    text = text_of(name)
    assert SINKS.findall(text) == []
    assert len(text.splitlines()) < MOST_LINES
    if name != "api.js":
        assert "sessionStorage" not in text


@pytest.mark.parametrize(
    "name",
    [
        "nothing.js",
        "views",
        "views/nothing.js",
        "..%2Froutes.py",
        "%2e%2e%2froutes.py",
        "views/..%2F..%2Froutes.py",
        "..%2F..%2F..%2Fpyproject.toml",
    ],
)
def test_what_is_no_part_of_the_page_is_not_given(http: httpx.Client, name: str) -> None:
    assert_problem(http.get(f"/page/{name}"), 404, "route_not_found")


def test_the_sample_is_a_corpus_of_words_and_labels(http: httpx.Client) -> None:
    sample = http.get("/page/sample.conll")
    assert sample.headers["content-security-policy"] == POLICY
    with Client(str(http.base_url)) as client:
        corpus = client.upload(sample.content, name="sample")
    assert (corpus.sentences, len(corpus.columns)) == (SAMPLE_SENTENCES, 1)
    assert {"B-AUTHOR", "I-TITLE", "O"} <= set(corpus.labels)


@pytest.fixture
def locked(tmp_path: Path, migrated_sqlite_file: Path) -> Iterator[ThreadServer]:
    """A server where keys are in force."""
    url = f"sqlite:///{shutil.copyfile(migrated_sqlite_file, tmp_path / 'tagsmith.db')}"
    with ThreadServer(Settings(data_dir=tmp_path, database_url=url)) as running:
        database = Database(url)
        Callers(database, running.url).token("admin")
        database.dispose()
        wait_until(lambda: httpx.get(f"{running.url}/models").status_code == 401, "keys to be in force")
        yield running


def test_the_page_needs_no_key_and_shows_nothing_that_does(locked: ThreadServer) -> None:
    for name in ("", *(f"page/{name}" for name in NAMES)):
        assert httpx.get(f"{locked.url}/{name}").status_code == 200
    assert_problem(httpx.post(f"{locked.url}/page/main.js"), 405, "method_not_allowed")
