"""A call of the API as data: what to send, and how to read the response. Nothing here does any input or output."""

import io
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

import anyio.to_thread
import httpx
from pydantic import TypeAdapter, ValidationError

from tagsmith.client.errors import not_tagsmith
from tagsmith.wire import Listing

T = TypeVar("T")

#: What can be uploaded: bytes, or the path of a file.
UploadSource = Path | str | bytes

#: Content encodings by file suffix.
ENCODINGS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd"}
#: Bytes are sent in blocks too: the transport becomes quadratically slower with the size of one block.
BLOCK_BYTES = 1 << 20

IDEMPOTENCY_KEY = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class UploadBody:
    """A request body that is read while it is sent."""

    source: Path | bytes

    def blocks(self) -> Iterator[bytes]:
        """Read the body block by block."""
        with io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                yield block

    async def async_blocks(self) -> AsyncIterator[bytes]:
        """The same without blocking the event loop."""
        blocks = self.blocks()
        while (block := await anyio.to_thread.run_sync(next, blocks, None)) is not None:
            yield block


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, and how to read its response."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    upload: UploadBody | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: The call changes nothing, although its method is not GET.
    safe: bool = False
    #: The call is repeated when the server cannot be reached or is busy.
    patient: bool = True
    #: What to add to the detail of a problem, by its code.
    hints: Mapping[str, str] = field(default_factory=dict)

    @property
    def repeatable(self) -> bool:
        """Whether the call may be made again when nobody knows if the server carried it out."""
        return self.method == "GET" or self.safe or IDEMPOTENCY_KEY in self.headers

    def arguments(self, content: object = None) -> dict[str, Any]:
        """The arguments of httpx's `request`; `content` is the body of an upload."""
        body = {"json": self.json} if self.json is not None else {"content": content} if self.upload else {}
        return {
            "method": self.method,
            "url": self.path,
            "params": self.params,
            "headers": self.headers,
            **body,
        }


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list that the server returns in pages."""

    kind: type[T]
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    #: The parameter that takes `next_cursor`.
    cursor: str = "cursor"

    def page(self, cursor: str | None) -> Call[Listing[T]]:
        """The call that returns the page at `cursor`, or the first one."""
        params = {**self.params, **({} if cursor is None else {self.cursor: cursor})}
        return Call("GET", self.path, as_model(Listing[self.kind]), params)  # type: ignore[name-defined]  # a type at run time


def as_model(kind: type[T]) -> Callable[[httpx.Response], T]:
    """Read a JSON response as `kind`."""
    adapter = TypeAdapter(kind)

    def read(response: httpx.Response) -> T:
        try:
            return adapter.validate_json(response.content)
        except ValidationError as error:
            raise not_tagsmith(response) from error

    return read


def as_bytes(response: httpx.Response) -> bytes:
    """Read a response as bytes."""
    return response.content


def as_text(response: httpx.Response) -> str:
    """Read a response as text."""
    return response.text


def as_nothing(response: httpx.Response) -> None:
    """Ignore the body of a response."""
    del response


def given(**values: Any) -> dict[str, Any]:
    """The values that are not None: parameters to send."""
    return {name: value for name, value in values.items() if value is not None}


def forced(*, force: bool) -> dict[str, Any]:
    """The parameter that deletes something although something else refers to it."""
    return {"force": "true"} if force else {}


def path_of(*parts: str | int) -> str:
    """A path of quoted parts. Dots are quoted where httpx would remove them with the part before."""
    quoted = (quote(str(part), safe="") for part in parts)
    return "".join("/" + (part if part.strip(".") else part.replace(".", "%2E")) for part in quoted)


def idempotency(key: str | None) -> dict[str, str]:
    """The header that lets a request be repeated without being carried out twice; by default a key of its own."""
    return {IDEMPOTENCY_KEY: uuid4().hex if key is None else key}


def if_match(seq: int | str | None) -> dict[str, str]:
    """The header that makes a change conditional on the last `seq`; "*" matches any."""
    return {} if seq is None else {"If-Match": "*" if seq == "*" else f'"{seq}"'}


def upload_call(
    path: str,
    kind: type[T],
    source: UploadSource,
    params: Mapping[str, Any],
    idempotency_key: str | None,
) -> Call[T]:
    """A call that uploads bytes, or a file, which is sent compressed if its suffix says that it is."""
    headers = idempotency(idempotency_key)
    if isinstance(source, bytes):
        return Call("POST", path, as_model(kind), params, upload=UploadBody(source), headers=headers)
    file = Path(source)
    file.stat()  # a missing file is reported before a connection is opened
    if file.suffix in ENCODINGS:
        headers["Content-Encoding"] = ENCODINGS[file.suffix]
    return Call("POST", path, as_model(kind), params, upload=UploadBody(file), headers=headers)
