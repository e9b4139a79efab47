"""How a call of the API is made: requests, uploads, pages, streams of events, and problems as exceptions."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar
from urllib.parse import quote

import httpx

from app.records import Event, make

T = TypeVar("T")

#: Uploads and first requests of a cold model take a while; nothing takes longer than this.
TIMEOUT_S = 60.0
#: The server pings a quiet stream every 15 s, so this much silence means that the connection is gone.
SILENCE_S = 45.0

#: How the ending of a file's name says that it is compressed.
ENCODINGS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd"}


class ApiError(Exception):
    """The server answered with a problem; its parts are here."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code: str = problem.get("code", "unknown")
        self.detail: str = problem.get("detail", "")
        self.request_id: str = problem.get("request_id", "")
        self.errors: list[dict[str, Any]] = list(problem.get("errors", ()))
        super().__init__(f"{status} {self.code}: {self.detail}{''.join(map(_shown, self.errors[:5]))}")


class Connection:
    """Makes calls of one server. Use it as a context manager, or close it."""

    def __init__(self, base_url: str, *, key: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=timeout_s)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _response(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        response = self._http.request(method, path, **arguments)
        _check(response)
        return response

    def _call(self, method: str, path: str, **arguments: Any) -> Any:
        return self._response(method, path, **arguments).json()

    def _upload(
        self, path: str, source: Path | str | bytes, name: str | None, params: Mapping[str, str]
    ) -> Any:
        """Send bytes, or a file under its own name, compressed as its ending says."""
        if isinstance(source, bytes):
            return self._send(path, io.BytesIO(source), name, params, None)
        source = Path(source)
        with source.open("rb") as file:
            return self._send(path, file, name or source.name, params, ENCODINGS.get(source.suffix))

    def _send(
        self, path: str, file: BinaryIO, name: str | None, params: Mapping[str, str], encoding: str | None
    ) -> Any:
        # In blocks also what is in memory: the transport slows down quadratically with what it gets at once.
        return self._call(
            "POST",
            path,
            params={**params, **({} if name is None else {"name": name})},
            content=_blocks(file),
            headers={} if encoding is None else {"Content-Encoding": encoding},
        )

    def _pages(
        self, kind: type[T], path: str, filters: Mapping[str, str | None] | None = None
    ) -> Iterator[T]:
        params = {key: value for key, value in (filters or {}).items() if value is not None}
        while True:
            page = self._call("GET", path, params=params)
            for item in page["data"]:
                yield make(kind, item)
            if page["next_cursor"] is None:
                return
            params["cursor"] = page["next_cursor"]

    def _stream(self, job_id: str, after: int) -> Iterator[Event]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        timeout = httpx.Timeout(TIMEOUT_S, read=SILENCE_S)
        with self._http.stream(
            "GET", f"/jobs/{part(job_id)}/events", headers=headers, timeout=timeout
        ) as response:
            if response.is_error:
                response.read()
            _check(response)
            yield from _events(response.iter_lines())


def _events(lines: Iterable[str]) -> Iterator[Event]:
    """Read a stream of server-sent events."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            data = json.loads(fields["data"])
            # A numbered event carries its whole object; a tick only the progress.
            yield (
                make(Event, data) if "id" in fields else Event(type=fields.get("event", "message"), data=data)
            )
        fields = {}


def _check(response: httpx.Response) -> None:
    if not response.is_error:
        return
    try:
        problem = response.json()
    except ValueError:
        problem = {"code": "not_a_problem", "detail": response.text[:200]}
    raise ApiError(response.status_code, problem)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(1 << 20):
        yield block


def part(text: str) -> str:
    return quote(text, safe="")


def _shown(place: Mapping[str, Any]) -> str:
    where = (
        place.get("pointer") or place.get("parameter") or (f"line {place['line']}" if "line" in place else "")
    )
    return f"\n  {where}: {place.get('detail', '')}"
