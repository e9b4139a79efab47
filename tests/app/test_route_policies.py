"""Adding a route is one function: its policy is declared on it, and middleware enforces it."""

import asyncio
import itertools
import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Response
from fastapi.staticfiles import StaticFiles
from starlette.routing import Match, Mount

from tagsmith.app.deps import CallerDep, DatabaseDep
from tagsmith.app.http.bodies import JsonRoute
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.app.http.policy import BodyLimit, PolicyError, RoutePolicies, declared, policy
from tagsmith.app.main import create_app
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope
from tagsmith.wire.base import WireRequest
from tests.app.keys import Callers
from tests.app.servers import ThreadServer, assert_problem
from tests.services import wait_until

MAX_JSON_BYTES = 1_000
JSON, NDJSON = "application/json", "application/x-ndjson"


class Bell(WireRequest):
    name: str


class CastBell(Bell):
    code: str


def toy_routes() -> APIRouter:
    """Each of these functions is all that its route needs."""
    router = APIRouter(prefix="/bells", route_class=JsonRoute)
    made: list[str] = []

    @router.post("", status_code=201, response_model=CastBell)
    @policy(Scope.TRAIN, idempotent=True, secret_fields=("code",), audit=True)
    def create_bell(bell: Bell, database: DatabaseDep, caller: CallerDep) -> Response:
        with database.write() as conn:
            made.append(bell.name)
            cast = CastBell(name=bell.name, code=f"secret {len(made)}")
            answer = caller.respond(conn, ChangeResponse(cast, location=f"/bells/{bell.name}"))
        return answer.response()

    @router.get("/{name}")
    @policy(Scope.READ, etag=True)
    def get_bell(name: str) -> dict[str, str]:
        return {"name": name}

    @router.post("/{name}/ring")
    @policy(Scope.TAG, body=BodyLimit.UPLOAD, audit=False)
    async def ring_bell(name: str) -> dict[str, str]:
        return {"sound": name}

    return router


@pytest.fixture(scope="module")
def settings(sqlite_url: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(
        data_dir=tmp_path_factory.mktemp("data"), database_url=sqlite_url, max_json_bytes=MAX_JSON_BYTES
    )


@pytest.fixture(scope="module")
def server(settings: Settings) -> Iterator[ThreadServer]:
    with ThreadServer(settings, prepare=lambda app: app.include_router(toy_routes())) as running:
        yield running


@pytest.fixture(scope="module")
def callers(server: ThreadServer, settings: Settings) -> Iterator[Callers]:
    database = Database(settings.database_url)
    made = Callers(database, server.url)
    made.token("admin")
    wait_until(lambda: httpx.get(f"{server.url}/keys").status_code == 401, "keys to be in force")
    yield made
    made.close()
    database.dispose()


@pytest.fixture(scope="module")
def trainer(callers: Callers) -> httpx.Client:
    return callers.client("train", name="ringer")


def test_the_scope_is_enforced_and_documented(callers: Callers, server: ThreadServer) -> None:
    assert_problem(httpx.get(f"{server.url}/bells/big"), 401, "key_missing")
    allowed = {"read": (200, 403, 403), "tag": (403, 200, 403), "train": (403, 403, 201)}
    for scope, statuses in allowed.items():
        client = callers.client(scope)
        answers = (
            client.get("/bells/big"),
            client.post("/bells/big/ring"),
            client.post("/bells", json={"name": scope}),
        )
        assert tuple(each.status_code for each in answers) == statuses, scope
    paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    assert paths["/bells"]["post"]["x-scope"] == "train"
    assert paths["/bells/{name}"]["get"]["security"] == [{"key": ["read"]}]


def test_the_body_limit_is_that_of_its_kind(trainer: httpx.Client, callers: Callers) -> None:
    long = "x" * MAX_JSON_BYTES
    assert_problem(trainer.post("/bells", json={"name": long}), 413, "body_too_large")
    tagger = callers.client("tag")
    assert tagger.post("/bells/big/ring", content=long * 2).status_code == 200
    assert_problem(
        tagger.post("/tag", content=long * 2, headers={"Content-Type": JSON}), 413, "body_too_large"
    )
    for media_type in (NDJSON, f"{NDJSON}; charset=utf-8", NDJSON.upper()):
        streamed = tagger.post("/tag", content=long * 2, headers={"Content-Type": media_type})
        assert_problem(streamed, 400, "malformed_json")


def test_a_repeated_request_is_carried_out_once_and_its_secrets_are_not_stored(trainer: httpx.Client) -> None:
    headers = {"Idempotency-Key": "once"}
    first, again = (trainer.post("/bells", json={"name": "once"}, headers=headers) for _ in range(2))
    assert first.json()["code"].startswith("secret")
    assert again.json() == {"name": "once", "code": None}
    other = trainer.post("/bells", json={"name": "other"}).json()["code"]
    assert int(other.split()[1]) == int(first.json()["code"].split()[1]) + 1
    assert again.headers["idempotency-replayed"] == "true"
    document = trainer.get("/openapi.json").json()["paths"]
    assert [each["name"] for each in document["/bells"]["post"]["parameters"]] == ["Idempotency-Key"]
    assert [each["name"] for each in document["/bells/{name}"]["get"]["parameters"]] == ["name"]


def test_a_change_is_audited_and_what_changes_nothing_is_not(trainer: httpx.Client, callers: Callers) -> None:
    assert trainer.post("/bells", json={"name": "heard"}).status_code == 201
    assert callers.client("tag").post("/bells/heard/ring").status_code == 200
    (newest,) = callers.client("admin").get("/audit", params={"limit": 1}).json()["data"]
    assert (newest["path"], newest["location"], newest["status"]) == ("/bells", "/bells/heard", 201)
    assert newest["actor"].startswith("ringer")


def test_an_etag_is_made_where_the_policy_says_so(callers: Callers) -> None:
    reader = callers.client("read")
    tag = reader.get("/bells/big").headers["etag"]
    assert reader.get("/bells/big", headers={"If-None-Match": tag}).status_code == 304
    assert "etag" not in callers.client("admin").get("/audit").headers


def add_route(app: FastAPI) -> None:
    app.add_api_route("/forgotten/{name}", lambda name: name)


def add_mount(app: FastAPI) -> None:
    app.mount("/forgotten", StaticFiles(directory="."))


def add_change_without_audit(app: FastAPI) -> None:
    app.add_api_route("/forgotten", policy(Scope.TRAIN)(lambda: None), methods=["PUT"])


def add_idempotent_get(app: FastAPI) -> None:
    app.add_api_route("/forgotten", policy(Scope.READ, idempotent=True)(lambda: None))


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (add_route, r"GET /forgotten/\{name\} has no policy"),
        (add_mount, r"/forgotten has no policy"),
        (add_change_without_audit, r"PUT /forgotten must declare audit=True or audit=False"),
        (add_idempotent_get, r"GET /forgotten cannot be idempotent"),
    ],
)
def test_start_up_fails_for_a_route_without_a_fitting_policy(
    settings: Settings, add: Callable[[FastAPI], None], message: str
) -> None:
    app = create_app(settings)
    add(app)

    async def start() -> None:
        async with app.router.lifespan_context(app):
            pass

    with pytest.raises(PolicyError, match=message):
        asyncio.run(start())


def test_every_route_gets_its_own_policy(settings: Settings) -> None:
    app = create_app(settings)
    policies = RoutePolicies()
    policies.compile(app.routes)
    routes = list(declared(app.routes))
    assert len(routes) > 50
    for route in routes:
        for method in route.methods or {"GET"}:
            path = re.sub(r"\{\w+\}", "x1", route.path) + ("/x" if route.methods is None else "")
            assert policies.find(method, path) is route.policy, (method, path)


@pytest.mark.parametrize("order", list(itertools.permutations(("/a/{name}", "/a/b", "/{name}/c", "/d"))))
def test_routes_are_matched_as_the_framework_matches_them(order: tuple[str, ...]) -> None:
    """In whichever order they come; a pattern also fits a path with a final newline."""
    app = FastAPI(openapi_url=None)
    for path, scope in zip(order, Scope, strict=False):
        app.add_api_route(path, policy(scope)(lambda name="": name))
    app.mount("/d", policy(Scope.ADMIN)(StaticFiles(directory=".")))
    policies = RoutePolicies()
    policies.compile(app.routes)
    for path in ("/a/x", "/a/b", "/x/c", "/a/c", "/a/x\n", "/a/b\n", "/d", "/d\n", "/d/c", "/d/e/f"):
        request = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
        found = next(route for route in app.routes if route.matches(request)[0] is Match.FULL)
        answering = found.app if isinstance(found, Mount) else found.endpoint  # type: ignore[attr-defined]
        assert policies.find("GET", path) is answering.__policy__, (order, path)


def test_what_no_route_answers_needs_the_scope_of_its_neighbours(settings: Settings) -> None:
    app = create_app(settings)
    policies = RoutePolicies()
    policies.compile(app.routes)
    expected = {
        ("GET", "/jobs/a/b/c"): Scope.READ,
        ("DELETE", "/jobs"): Scope.TRAIN,
        ("HEAD", "/livez"): None,
        ("DELETE", "/tag"): Scope.TAG,
        ("GET", "/tag"): Scope.TAG,
        ("GET", "/nowhere"): Scope.ADMIN,
    }
    found = {call: policies.find(*call) for call in expected}
    assert {call: each.scope for call, each in found.items()} == expected
    assert not any(each.audit or each.idempotent for each in found.values())
