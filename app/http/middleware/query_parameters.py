"""Refuses query parameters that a route does not have, so that a misspelt one is never ignored."""

from itertools import islice
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

from tagsmith.app.http import problems
from tagsmith.app.http.policy import RoutePolicies
from tagsmith.core.base.suggest import unknown

#: Pydantic's type of an unknown field.
UNKNOWN = "extra_forbidden"


class QueryParameters:
    """Responds with 422 to requests with unknown query parameters."""

    def __init__(self, app: ASGIApp, *, policies: RoutePolicies) -> None:
        self.app = app
        self.policies = policies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        entries = self._faults(scope) if scope["type"] == "http" and scope["query_string"] else []
        if not entries:
            await self.app(scope, receive, send)
            return
        detail = "The request has query parameters that this route does not have. Correct or remove them."
        response = problems.problem_response(scope, 422, "invalid_request", detail, entries)
        await response(scope, receive, send)

    def _faults(self, scope: Scope) -> list[dict[str, object]]:
        route = self.policies.match(scope["method"], scope["path"])
        if route is None or route.parameters is None:
            return []
        query = scope["query_string"].decode("utf-8", "replace")
        names = dict.fromkeys(name for name, _ in parse_qsl(query, keep_blank_values=True))
        known = sorted(route.parameters)
        wrong = (name for name in names if name not in route.parameters)
        return [
            problems.fault_entry(unknown("parameter", name, known), type=UNKNOWN, parameter=name)
            for name in islice(wrong, problems.MAX_FAULTS)
        ]
