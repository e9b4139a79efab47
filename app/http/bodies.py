"""Strict parsing of JSON bodies: no NaN, lone surrogates or NUL, no name twice, no nesting that exhausts the stack."""

import json
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import anyio.to_thread
import pydantic_core
from fastapi import Request, Response
from fastapi.routing import APIRoute

from tagsmith.app.http import problems
from tagsmith.app.http.memory import COUNTED_BYTES
from tagsmith.core.base.errors import Fault, FaultType, Invalid, Unsupported
from tagsmith.core.base.spec import pointer as pointer_of
from tagsmith.core.corpus.attributes import DuplicateNameError, object_of
from tagsmith.core.corpus.formats.ndjson import members_of

#: Line and column in an error message of the parser.
_PLACE = re.compile(r" at line (\d+) column (\d+)$")


class JsonRequest(Request):
    """A request whose JSON body is already parsed strictly."""

    def __init__(self, request: Request, raw: bytes, parsed: Any) -> None:
        super().__init__(request.scope, request.receive)
        self.raw = raw
        self.parsed = parsed

    async def body(self) -> bytes:
        """Return the raw body."""
        return self.raw

    async def json(self) -> Any:
        """Return the parsed body."""
        return self.parsed


class JsonRoute(APIRoute):
    """A route that parses its JSON body strictly. Faults become a problem response."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the framework's handler."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle
        required = self.body_field.field_info.is_required()

        async def strict(request: Request) -> Response:
            require_json(request, when_absent=required)
            raw = await request.body()
            async with request.app.state.runtime.memory.held(raw):
                parsed = await _parsed(raw) if raw or required else None
                return await handle(JsonRequest(request, raw, parsed))

        return strict


async def _parsed(raw: bytes) -> Any:
    """Parse a body; a large one in a thread, so that other requests pass."""
    if len(raw) <= COUNTED_BYTES:
        return parse_json(raw)
    return await anyio.to_thread.run_sync(parse_json, raw)


def require_json(request: Request, *, when_absent: bool = True) -> None:
    """Refuse a body that is not declared as JSON. Refuse a missing media type only if `when_absent`."""
    declared = media_type(request)
    if declared != "application/json" and (declared or when_absent):
        found = f"The request declares {declared}." if declared else "The request declares none."
        raise Unsupported(f"The media type must be application/json. {found}", code="unsupported_media_type")
    require_plain(request)


def media_type(request: Request) -> str:
    """Return the media type of a request; empty if it has none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def require_plain(request: Request) -> None:
    """Refuse a body with a Content-Encoding."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise Unsupported(f"JSON is not read from {encoding} encoding here.", code="unsupported_encoding")


def parse_json(body: bytes) -> Any:
    """Parse a JSON text. Raises Malformed with the position of the fault."""
    try:
        value = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise malformed(str(error)) from None
    if rb"\u0000" in body:
        refuse_nul(value)
    if body.count(b":") > members_of(value):  # in most bodies, every colon belongs to a member
        refuse_repeated_names(body)
    return whole(value) if b".0" in body or b"e" in body.lower() else value


def refuse_repeated_names(body: bytes, pointer: str | None = None) -> None:
    """Raise Invalid if an object has a name twice. JSON parsers silently keep only the last value."""
    try:
        json.loads(body, object_pairs_hook=object_of)
    except RecursionError:
        raise malformed("recursion limit exceeded") from None
    except DuplicateNameError as error:
        fault = Fault(f"{error}. Remove one of them.", pointer=pointer, type=FaultType.DUPLICATE_NAME)
        raise Invalid("An object has a name twice.", [fault], code="invalid_request") from None


def whole(value: Any) -> Any:
    """Convert floats such as 2.0 to integers: JSON Schema and some languages treat them as the same number."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list) else value


def malformed(message: str, *, lines: int = 0, columns: int = 0) -> problems.Malformed:
    """Convert an error message of the parser to an error with a line number.

    `lines` and `columns` are what comes before the text that was parsed: whole lines, and a part of its first line.
    """
    found = _PLACE.search(message)
    reason = message[: found.start()] if found else message
    line = int(found[1]) if found else 1
    column = f" in column {int(found[2]) + (columns if line == 1 else 0)}" if found else ""
    line += lines
    code = "json_too_deep" if "recursion" in reason else "malformed_json"
    return problems.Malformed(
        f"The body is not valid JSON: {reason}.",
        [Fault(f"JSON error: {reason}{column}.", line=line)],
        code=code,
    )


def refuse_nul(value: Any) -> None:
    """Refuse NUL characters: no field needs one, and PostgreSQL cannot store them."""
    faults = [
        Fault("The text has a NUL character. Remove it.", pointer=pointer)
        for pointer in _nul_pointers(value, "")
    ]
    if faults:
        raise Invalid("The body has NUL characters.", faults, code="nul_character")


def _nul_pointers(value: Any, pointer: str) -> Iterator[str]:
    if isinstance(value, str):
        if "\0" in value:
            yield pointer
    elif isinstance(value, dict):
        for key, item in value.items():
            if "\0" in key:
                yield pointer + pointer_of([key.replace("\0", "\\u0000")])
            yield from _nul_pointers(item, pointer + pointer_of([key]))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nul_pointers(item, f"{pointer}/{index}")
