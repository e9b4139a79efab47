"""Pure ASGI middleware: what happens to every request whatever its route."""
