"""Finds the policy of each request, once, for the middleware that enforces it."""

from starlette.types import ASGIApp, Receive, Scope, Send

from tagsmith.app.http.policy import RoutePolicies


class AttachPolicy:
    """Stores the policy of the matching route in the state of the request."""

    def __init__(self, app: ASGIApp, *, policies: RoutePolicies) -> None:
        self.app = app
        self.policies = policies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["state"]["policy"] = self.policies.find(scope["method"], scope["path"])
        await self.app(scope, receive, send)
