"""The policy of a route: scope, body limit, idempotency, audit. Declared on the route, enforced by middleware.

    @router.post("/jobs", status_code=202)
    @policy(Scope.TRAIN, idempotent=True, audit=True)
    def create_job(...): ...

Middleware runs before routing, so `RoutePolicies` compiles all declarations into one table when the process starts.
The process does not start if a route has no policy.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from typing import TypeVar

from fastapi.routing import RouteContext, iter_route_contexts
from starlette.routing import BaseRoute, Mount
from starlette.types import Scope as ASGIScope

from tagsmith.core.store.keys import Scope

T = TypeVar("T")

#: Methods that change nothing (RFC 9110, section 9.2.1).
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: The attribute that holds the policy, on the endpoint or on the mounted application.
_ATTRIBUTE = "__policy__"


#: Specs have some kilobytes. Parsing and validating a body of this size takes a tenth of a second at most.
MAX_SPEC_BYTES = 512 << 10


class BodyLimit(Enum):
    """The size limit of a request body. The settings define the bytes."""

    #: `MAX_SPEC_BYTES`: the framework validates the body on the event loop.
    JSON = auto()
    #: `max_json_bytes`: sentences or text, which a thread parses.
    TAGGING = auto()
    #: `max_upload_bytes`: the body is streamed.
    UPLOAD = auto()


@dataclass(frozen=True, slots=True)
class RoutePolicy:
    """The rules that middleware applies to the requests of a route."""

    #: The scope that a key needs; None means that no key is needed.
    scope: Scope | None
    _: KW_ONLY
    body: BodyLimit = BodyLimit.JSON
    #: Media type of bodies that the route streams. These have the limit of uploads.
    streamed_type: str | None = None
    #: Whether a request repeated with the same `Idempotency-Key` is executed only once.
    idempotent: bool = False
    #: Response fields that are not stored. A replayed response has null instead.
    secret_fields: tuple[str, ...] = ()
    #: Whether a successful request is recorded in the audit log. A route that is not GET must declare it.
    audit: bool | None = None
    #: Whether JSON responses without an ETag get one computed from their bytes.
    etag: bool = False
    #: Whether requests that accept `text/event-stream` count as open streams.
    event_stream: bool = False
    #: Whether requests are traced. Probes are not.
    traced: bool = True

    def __call__(self, endpoint: T) -> T:
        """Declare the policy on an endpoint or on a mounted application."""
        setattr(endpoint, _ATTRIBUTE, self)
        return endpoint


#: The policy as a decorator: `@policy(Scope.READ, etag=True)`.
policy = RoutePolicy

#: For paths whose first segment matches no route.
_UNKNOWN = RoutePolicy(scope=Scope.ADMIN)


class PolicyError(Exception):
    """A route has no policy, or an invalid one."""


@dataclass(frozen=True, slots=True)
class PolicedRoute:
    """One route and its policy."""

    path: str
    #: None means every method.
    methods: frozenset[str] | None
    pattern: re.Pattern[str]
    policy: RoutePolicy
    #: The names of its query parameters; None if any are accepted, as for pages and their assets.
    parameters: frozenset[str] | None = None


def declared(routes: Iterable[BaseRoute]) -> Iterator[PolicedRoute]:
    """Collect the policies of all routes, in the order in which the framework tries them."""
    for context in iter_route_contexts(list(routes)):
        yield _declared(context)


def _declared(context: RouteContext) -> PolicedRoute:
    mounted = isinstance(context.route, Mount)
    found = getattr(context.app if mounted else context.endpoint, _ATTRIBUTE, None)
    methods = None if mounted or context.methods is None else frozenset(context.methods)
    name = f"{'/'.join(sorted(methods or ['*']))} {context.path}"
    if not isinstance(found, RoutePolicy):
        raise PolicyError(f"{name} has no policy. Add @policy(scope, ...) below its route decorator.")
    unsafe = methods is not None and not methods <= SAFE_METHODS
    if unsafe and found.audit is None:
        raise PolicyError(f"{name} must declare audit=True or audit=False in its policy.")
    if found.idempotent and methods != frozenset({"POST"}):
        raise PolicyError(f"{name} cannot be idempotent: only POST takes an Idempotency-Key.")
    parameters = None if mounted else _query_parameters(context)
    return PolicedRoute(str(context.path), methods, context.path_regex, found, parameters)


def _query_parameters(context: RouteContext) -> frozenset[str] | None:
    """Return the query parameters of a route of the API, as the OpenAPI document lists them."""
    if not getattr(context, "include_in_schema", False) or not hasattr(context, "dependant"):
        return None
    found = {each["name"] for each in (context.openapi_extra or {}).get("parameters", ())}
    pending = [context.dependant]
    while pending:
        dependant = pending.pop()
        found |= {field.alias for field in dependant.query_params}
        pending += dependant.dependencies
    return frozenset(found)


class RoutePolicies:
    """Finds the policy of a request before it is routed.

    It matches as the framework does: the first route, in order, whose pattern and method match. A path without
    parameters needs one dictionary lookup. Any other path is compared with the routes that share its first segment.
    """

    def __init__(self) -> None:
        self._routes: list[PolicedRoute] = []
        self._exact: dict[tuple[str, str], PolicedRoute] = {}
        self._by_segment: dict[str, list[PolicedRoute]] = {}

    def compile(self, routes: Iterable[BaseRoute]) -> None:
        """Build the table. Raises `PolicyError` for a route without a policy."""
        self._routes = list(declared(routes))
        self._by_segment, self._exact = {}, {}
        for segment in {_first_segment(route.path) for route in self._routes}:
            self._by_segment[segment] = [route for route in self._routes if _may_match(route, segment)]
        plain = (route for route in self._routes if "{" not in route.path)
        for path, method in ((route.path, method) for route in plain for method in route.methods or ()):
            # Not always this route: an earlier route with parameters may also match the path.
            found = self._search(self._routes, method, path)
            if found is not None:
                self._exact[method, path] = found

    def find(self, method: str, path: str) -> RoutePolicy:
        """Return the policy of the route that handles a request."""
        route = self.match(method, path)
        if route is not None:
            return route.policy
        return _policy_of_no_route(self._by_segment.get(_first_segment(path), []), method)

    def match(self, method: str, path: str) -> PolicedRoute | None:
        """Return the route that handles a request; None if it gets 404 or 405."""
        found = self._exact.get((method, path))
        if found is not None:
            return found
        neighbours = self._by_segment.get(_first_segment(path), [])
        # The framework may match a route with another first segment, because its patterns allow a final newline.
        return self._search(neighbours, method, path) or self._search(self._routes, method, path)

    @staticmethod
    def _search(routes: Iterable[PolicedRoute], method: str, path: str) -> PolicedRoute | None:
        for route in routes:
            if (route.methods is None or method in route.methods) and route.pattern.match(path):
                return route
        return None


def _policy_of_no_route(neighbours: list[PolicedRoute], method: str) -> RoutePolicy:
    """Return the policy for a request that gets 404 or 405: the scope of the nearest route."""
    safe = method in SAFE_METHODS
    alike = (each for each in neighbours if each.methods is None or safe == (each.methods <= SAFE_METHODS))
    nearest = next(alike, neighbours[0] if neighbours else None)
    return _UNKNOWN if nearest is None else RoutePolicy(nearest.policy.scope)


def _may_match(route: PolicedRoute, segment: str) -> bool:
    """Return whether a route can match a path that begins with `segment`."""
    first = _first_segment(route.path)
    return first == segment or "{" in first or (route.methods is None and first == "")


def _first_segment(path: str) -> str:
    """Return the first segment of a path."""
    return path[1:].partition("/")[0]


def policy_of(scope: ASGIScope) -> RoutePolicy:
    """Return the policy of a request, which `AttachPolicy` has found."""
    found: RoutePolicy = scope["state"]["policy"]
    return found
