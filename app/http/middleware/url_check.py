"""Check of URLs: path and query must be UTF-8 without NUL."""

from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from tagsmith.app.http import problems


class UrlCheck:
    """Refuses bytes that are not UTF-8, which decoding would replace silently, and NUL, which SQL rejects."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            faults = list(_faults(scope.get("raw_path") or b"", scope["query_string"]))
            if faults:
                detail = "The URL has bytes that are not UTF-8 text, or a NUL character."
                await problems.problem_response(scope, 422, "invalid_address", detail, faults)(
                    scope, receive, send
                )
                return
        await self.app(scope, receive, send)


def _faults(path: bytes, query: bytes) -> list[dict[str, object]]:
    found = []
    if b"%" in path and (reason := _fault(path)):
        found.append(problems.fault_entry(f"The path {reason}."))
    if b"%" in query:
        for field in query.split(b"&"):
            name, _, value = field.partition(b"=")
            if reason := _fault(name) or _fault(value):
                shown = unquote_to_bytes(name).decode("utf-8", "replace").replace("\0", "\\0")
                found.append(problems.fault_entry(f"The parameter {reason}.", parameter=shown))
    return found


def _fault(quoted: bytes) -> str | None:
    text = unquote_to_bytes(quoted)
    if b"\0" in text:
        return "has a NUL character"
    try:
        text.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return None
