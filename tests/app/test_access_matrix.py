"""Who may call what: every route, with no key, with keys that do not count, and with a key of each scope.

The table below says it a second time, beside the policies on the routes. A new route, or a policy that changes, fails
here until the table is changed too.
"""

import asyncio
import json
import re
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from tagsmith.app.http.policy import PolicedRoute, declared
from tagsmith.app.main import create_app
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import keys, migrate
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope

OPEN = "open"
#: The routes by the scope that a key needs. `*` is every method.
MATRIX: dict[str, tuple[str, ...]] = {
    "tag": ("POST /tag",),
    "train": (
        "POST /corpora",
        "POST /corpora/inspect",
        "DELETE /corpora/{corpus_id}",
        "POST /lexicons",
        "DELETE /lexicons/{lexicon_id}",
        "POST /jobs",
        "POST /jobs/{job_id}/cancel",
        "POST /jobs/{job_id}/pause",
        "POST /jobs/{job_id}/resume",
        "POST /jobs/{job_id}/retry",
        "DELETE /jobs/{job_id}",
    ),
    "read": (
        "GET /corpora",
        "GET /corpora/{corpus_id}",
        "GET /corpora/{corpus_id}/report",
        "GET /corpora/{corpus_id}/sentences",
        "GET /corpora/{corpus_id}/content",
        "GET /lexicons",
        "GET /lexicons/{lexicon_id}",
        "GET /lexicons/{lexicon_id}/content",
        "POST /jobs/validate",
        "GET /jobs",
        "GET /jobs/{job_id}",
        "GET /jobs/{job_id}/events",
        "GET /jobs/{job_id}/table.csv",
        "GET /jobs/{job_id}/plot.svg",
        "GET /jobs/{job_id}/output",
        "GET /models",
        "GET /models/{name}",
        "GET /models/{name}/versions",
        "GET /models/{name}/compare",
        "GET /models/{name}/versions/{number}",
        "GET /models/{name}/versions/{number}/artifact",
        "GET /models/{name}/versions/{number}/templates",
        "GET /models/{name}/versions/{number}/templates.svg",
        "GET /models/{name}/versions/{number}/features",
        "GET /models/{name}/versions/{number}/transitions",
        "GET /models/{name}/versions/{number}/weights",
        "GET /models/{name}/aliases",
        "GET /models/{name}/aliases/{alias}",
        "GET /models/{name}/aliases/{alias}/history",
        "GET /models/{name}/policy",
        "GET /models/{name}/retention",
        "POST /features/preview",
        "GET /trainers",
        "GET /presets",
        "GET /metrics",
    ),
    "promote": (
        "POST /models/{name}/versions",
        "DELETE /models/{name}/versions/{number}",
        "DELETE /models/{name}",
        "PUT /models/{name}/aliases/{alias}",
        "POST /models/{name}/aliases/{alias}/rollback",
        "PUT /models/{name}/policy",
        "DELETE /models/{name}/policy",
    ),
    "admin": (
        "POST /keys",
        "GET /keys",
        "GET /keys/{key_id}",
        "DELETE /keys/{key_id}",
        "GET /audit",
    ),
    "open": (
        "GET /livez",
        "GET /readyz",
        "GET /version",
        "GET /",
        "GET /page/sample.conll",
        "GET /page/{path:path}",
        "* /docs/assets",
        "GET /openapi.json",
        "GET /docs",
    ),
}
SCOPE_OF = {route: scope for scope, routes in MATRIX.items() for route in routes}
#: It answers 503 until the kernels are loaded, to everybody.
MAY_BE_UNREADY = "GET /readyz"
UNKNOWN_TOKEN = f"key_{'0' * 26}_{'A' * 43}"

#: Status, and the code if it is a problem.
Answer = tuple[int, str]


def routes_of(settings: Settings) -> list[PolicedRoute]:
    return list(declared(create_app(settings).routes))


def names_of(route: PolicedRoute) -> list[str]:
    return [f"{method} {route.path}" for method in sorted(route.methods or {"*"})]


async def answers(settings: Settings, tokens: dict[str, str | None]) -> dict[str, dict[str, Answer]]:
    """Call every route once with each token; return status and code by route and token."""
    app, found = create_app(settings), {}
    async with app.router.lifespan_context(app):
        for number, (name, token) in enumerate(tokens.items()):
            # An address of its own for each, because wrong keys of one address are soon not looked at any more.
            for place, route in enumerate(SCOPE_OF):
                transport = httpx.ASGITransport(app, client=(f"127.{number}.{place}.1", 1))
                found.setdefault(route, {})[name] = await _ask(transport, route, token)
    return found


async def _ask(transport: httpx.ASGITransport, route: str, token: str | None) -> Answer:
    """Call a route with names that do not exist and no body, which changes nothing."""
    method, path = route.split()
    path = re.sub(r"\{[^}]*\}", "1", path) + ("/x" if method == "*" else "")
    headers = {} if token is None else {"Authorization": token}
    request = httpx.Request(
        "GET" if method == "*" else method, f"http://127.0.0.1{path}", headers=headers, content=b""
    )
    response = await transport.handle_async_request(request)
    body = await response.aread()
    is_problem = response.headers.get("content-type") == "application/problem+json"
    return response.status_code, json.loads(body)["code"] if is_problem else ""


def tokens_of(database: Database) -> dict[str, str | None]:
    """A token of each kind, by name; the last are those that count."""

    def made(*scopes: Scope, expires_in: timedelta | None = None) -> str:
        with database.write() as conn:
            return keys.create(conn, "matrix", scopes, expires_in=expires_in)[1]

    revoked = made(Scope.ADMIN)
    with database.write() as conn:
        keys.revoke(conn, revoked[:30])
    return {
        "none": None,
        "other kind": f"Basic {made(Scope.ADMIN)}",
        "malformed": "Bearer key_1",
        "unknown": f"Bearer {UNKNOWN_TOKEN}",
        "expired": f"Bearer {made(Scope.ADMIN, expires_in=timedelta(seconds=-1))}",
        "revoked": f"Bearer {revoked}",
        **{scope: f"Bearer {made(scope)}" for scope in Scope},
        "all but admin": f"Bearer {made(*(each for each in Scope if each is not Scope.ADMIN))}",
    }


@pytest.fixture(scope="module")
def settings(sqlite_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data_dir=tmp_path_factory.mktemp("data"), database_url=sqlite_url, redis_url=redis_url)


def test_the_table_has_every_route_and_its_scope(settings: Settings) -> None:
    found = {
        name: str(route.policy.scope or OPEN) for route in routes_of(settings) for name in names_of(route)
    }
    assert found == SCOPE_OF


def test_every_operation_of_the_document_is_in_the_table(settings: Settings) -> None:
    paths = create_app(settings).openapi()["paths"]
    operations = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert operations <= set(SCOPE_OF)


def is_let_in(route: str, answer: Answer) -> bool:
    return answer[0] not in (401, 403) and (answer[0] < 500 or route == MAY_BE_UNREADY)


def expected(route: str, token: str) -> set[Answer]:
    """The refusals that a caller must get; empty if the request must be let in."""
    needed = SCOPE_OF[route]
    allowed = {token, *(each for each in Scope if token == "all but admin" and each is not Scope.ADMIN)}
    if needed == OPEN or needed in allowed or token == Scope.ADMIN:
        return set()
    if token in ("none", "other kind"):
        return {(401, "key_missing")}
    if token in ("malformed", "unknown", "expired", "revoked"):
        return {(401, "key_not_valid")}
    return {(403, "scope_missing")}


def test_a_route_lets_in_its_scope_and_nobody_else(settings: Settings) -> None:
    database = Database(settings.database_url)
    try:
        found = asyncio.run(answers(settings, tokens_of(database)))
    finally:
        database.dispose()
    wrong = []
    for route, by_token in found.items():
        for token, answer in by_token.items():
            refusals = expected(route, token)
            if not (answer in refusals if refusals else is_let_in(route, answer)):
                wrong.append(f"{route} with {token}: {answer}, not {refusals or 'let in'}")
    assert wrong == []


def test_on_loopback_without_keys_everything_is_let_in(redis_url: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, redis_url=redis_url)
    migrate.upgrade(settings.database_url)
    found = asyncio.run(answers(settings, {"none": None, "unknown": f"Bearer {UNKNOWN_TOKEN}"}))
    refused = {
        (route, token): answer
        for route, by_token in found.items()
        for token, answer in by_token.items()
        if not is_let_in(route, answer)
    }
    assert refused == {}
