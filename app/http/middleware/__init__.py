"""Pure ASGI middleware. It runs before routing and enforces the route policies."""
