"""Problem responses (RFC 9457) for all errors, and the HTTP status of each error class."""

import http
import json
import logging
import math
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Scope

from tagsmith.app.http.policy import declared
from tagsmith.core.base import disk, errors
from tagsmith.core.base.spec import pointer, reason_of
from tagsmith.core.store.idempotency import InProgress
from tagsmith.wire.problems import MAX_LOCATIONS

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

#: Limits the response to a body with very many faults.
MAX_FAULTS = MAX_LOCATIONS

#: Limits the places that are repeated from a request.
MAX_POINTER = 1_000

#: The `Retry-After` of a 503, and of a request whose Idempotency-Key is in use, in seconds.
RETRY_AFTER_S = 1


class Malformed(errors.TagsmithError):
    """The body does not match its media type."""

    default_code = "malformed"


class Unauthenticated(errors.TagsmithError):
    """The request has no valid key."""

    default_code = "key_missing"


class Forbidden(errors.TagsmithError):
    """The key does not allow this."""

    default_code = "scope_missing"


class TooSlow(errors.TagsmithError):
    """The body does not arrive in time."""

    default_code = "body_timeout"


class TooMany(errors.TagsmithError):
    """The caller exceeds a limit."""

    default_code = "too_many_requests"

    def __init__(self, message: str, retry_after_s: float, *, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after_s = retry_after_s


class NotModified(Exception):
    """The caller already has this representation."""

    def __init__(self, etag: str) -> None:
        super().__init__(etag)
        self.etag = etag


STATUS: Mapping[type[errors.TagsmithError], int] = {
    Malformed: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    errors.NotFound: 404,
    TooSlow: 408,
    errors.Conflict: 409,
    errors.Stale: 412,
    errors.TooLarge: 413,
    errors.Unsupported: 415,
    errors.Invalid: 422,
    TooMany: 429,
    errors.Unavailable: 503,
}

#: Codes of errors that the framework raises without a code.
FRAMEWORK_CODES: Mapping[int, str] = {404: "route_not_found", 405: "method_not_allowed"}

#: Parameters that only `core` can check, by error code.
PARAMETERS: Mapping[str, str] = {"invalid_cursor": "cursor", "unknown_format": "format"}


def status_of(error: errors.TagsmithError) -> int:
    """Return the HTTP status of an error's class, or of the nearest base class that has one."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def fault_entry(detail: str, **where: object) -> dict[str, object]:
    """Build one entry of `errors`. Values that are None are omitted."""
    return {"detail": detail, **{key: value for key, value in where.items() if value is not None}}


def problem_response(
    scope: Scope,
    status: int,
    code: str,
    detail: str,
    faults: Iterable[Mapping[str, object]] = (),
    *,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, object] | None = None,
) -> Response:
    """Build the response for a problem. It needs only the ASGI scope, so middleware can use it."""
    body: dict[str, Any] = {
        "type": f"urn:tagsmith:problem:{code}",
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "detail": detail,
        "instance": scope.get("path", "/"),
        "code": code,
        "request_id": request_id(scope),
        "errors": list(faults)[:MAX_FAULTS],
        **(extra or {}),
    }
    if status == 503:
        headers = {"Retry-After": str(RETRY_AFTER_S), **(headers or {})}
    return Response(_dump(body), status, dict(headers or {}), MEDIA_TYPE)


def from_error(scope: Scope, error: errors.TagsmithError) -> Response:
    """Build the response for an error that a user can cause."""
    release(error)
    parameter = PARAMETERS.get(error.code)
    faults = error.faults[:MAX_FAULTS] or ((errors.Fault(error.message),) if parameter else ())
    entries = [
        fault_entry(
            each.reason,
            type=each.type,
            pointer=each.pointer and each.pointer[:MAX_POINTER],
            line=each.line,
            parameter=each.parameter or parameter,
        )
        for each in faults
    ]
    return problem_response(
        scope, status_of(error), error.code, error.message, entries, headers=_headers(error)
    )


def release(error: BaseException) -> None:
    """Free the local variables of the calls that raised an error.

    The future of a thread refers to the error, and the error to the future by its frames. Without this, the body of a
    refused request stays in memory until the garbage collector finds the cycle.
    """
    found: BaseException | None = error
    while found is not None:
        traceback.clear_frames(found.__traceback__)
        found = found.__context__


def lacks(scope: str) -> Forbidden:
    """Build the error for a key that lacks a scope."""
    return Forbidden(f"The key does not have the scope `{scope}`. Use a key that has it.")


def _headers(error: errors.TagsmithError) -> Mapping[str, str]:
    """Return the headers that the status of an error requires."""
    if isinstance(error, Unauthenticated):
        detail = ', error="invalid_token"' if error.code == "key_not_valid" else ""
        return {"WWW-Authenticate": f'Bearer realm="tagsmith"{detail}'}
    if isinstance(error, Forbidden):
        return {"WWW-Authenticate": 'Bearer realm="tagsmith", error="insufficient_scope"'}
    if isinstance(error, InProgress):
        return {"Retry-After": str(RETRY_AFTER_S)}
    if isinstance(error, TooMany):
        return {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
    return {}


def internal(scope: Scope) -> Response:
    """Build the response for an unexpected exception. It contains only the request id, to find the log entry."""
    detail = "The service failed unexpectedly. Its log has the details under the request id."
    return problem_response(scope, 500, "internal_error", detail)


def request_id(scope: Scope) -> str:
    """Return the id that the request log assigned to this request."""
    return str(scope.get("state", {}).get("request_id", ""))


def fault_entries(items: Sequence[Mapping[str, Any]], body: Any = None) -> list[dict[str, object]]:
    """Convert pydantic's errors to entries of `errors`. `body` is the type of the request's body."""
    entries = []
    for item in items[:MAX_FAULTS]:
        origin, *path = item["loc"] or ("body",)
        if origin == "body":
            reason = reason_of({**item, "loc": tuple(path)}, body)
            entries.append(fault_entry(reason, type=item["type"], pointer=pointer(path)))
        else:
            entries.append(
                fault_entry(reason_of(item), type=item["type"], parameter=".".join(map(str, path)))
            )
    return entries


def allowed_methods(app: FastAPI, path: str) -> list[str]:
    """List the methods of a path. The framework lists only those of the first route that matches.

    As in the OpenAPI document, a path without parameters hides those with parameters.
    """
    matching = [route for route in declared(app.routes) if route.pattern.match(path)]
    routes = [route for route in matching if route.path == path] or matching
    return [
        method
        for method in ("GET", "POST", "PUT", "DELETE")
        if any(route.methods is None or method in route.methods for route in routes)
    ]


def install(app: FastAPI) -> None:
    """Add the exception handlers to an application."""

    async def on_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, errors.TagsmithError)
        return from_error(request.scope, error)

    async def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        release(error)
        field = getattr(request.scope.get("route"), "body_field", None)
        faults = fault_entries(error.errors(), field and field.field_info.annotation)
        detail = f"The request has {len(error.errors())} fault{'s' if len(error.errors()) > 1 else ''}."
        return problem_response(request.scope, 422, "invalid_request", detail, faults)

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        phrase = http.HTTPStatus(error.status_code).phrase
        code = FRAMEWORK_CODES.get(error.status_code, phrase.lower().replace(" ", "_"))
        path, headers = request.scope["path"], dict(error.headers or {})
        detail = str(error.detail)
        if error.status_code == 404:
            detail = f"No route has the path {path}. See /docs."
        elif error.status_code == 405:
            headers["Allow"] = ", ".join(allowed_methods(app, path))
            detail = f"{path} does not support {request.method}. It supports {headers['Allow']}."
        return problem_response(request.scope, error.status_code, code, detail, headers=headers)

    async def on_not_modified(_: Request, error: Exception) -> Response:
        assert isinstance(error, NotModified)
        return Response(status_code=304, headers={"ETag": error.etag})

    async def on_os_error(request: Request, error: Exception) -> Response:
        if not disk.is_full(error):
            raise error
        return from_error(request.scope, disk.full("the service"))

    async def on_disconnect(_: Request, __: Exception) -> Response:
        # The client has disconnected; this status is for the request log.
        return Response(status_code=499)

    app.add_exception_handler(errors.TagsmithError, on_error)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(NotModified, on_not_modified)
    app.add_exception_handler(ClientDisconnect, on_disconnect)
    app.add_exception_handler(OSError, on_os_error)


def _dump(body: Mapping[str, object]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:
        # UTF-8 cannot encode a lone surrogate, so escape it instead of failing again.
        return json.dumps(body, default=str).encode()
