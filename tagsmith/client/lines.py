"""Tagging any number of lines, in requests of some lines each, all by the same version."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tagsmith.client.call import Call, UploadBody
from tagsmith.wire import TaggedLine

MEDIA_TYPE = "application/x-ndjson"

#: The server responds while it reads, and the client reads only after it has sent everything. What is sent at once
#: must fit into the buffers of the connection, or both would wait for each other.
BATCH_BYTES = 1 << 16

#: A text, a sentence, or an object with `text` or `tokens` and an `id` that the result repeats.
Line = str | Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TaggedBatch:
    """The response to one request: who tagged, and the lines in order."""

    model: str
    version: int
    lines: list[TaggedLine]


class LineStream:
    """The requests for one stream of lines. The first response fixes the version for all that follow."""

    def __init__(self, model: str, options: Mapping[str, Any]) -> None:
        self._reference = model
        self._options = options
        self._sent = 0
        self._pending: list[bytes] = []
        self._size = 0

    def add(self, line: Line) -> Call[TaggedBatch] | None:
        """Add a line. Returns a call to make, whose result to `take`, once there are lines enough for one."""
        written = _dump(_object_of(line))
        full = self._size + len(written) > BATCH_BYTES
        call = self.rest() if full else None
        self._pending.append(written)
        self._size += len(written)
        return call

    def rest(self) -> Call[TaggedBatch] | None:
        """The call for the lines that no call was made for; None if there are none."""
        lines, self._pending, self._size = self._pending, [], 0
        return self._call(lines) if lines else None

    def take(self, batch: TaggedBatch) -> list[TaggedLine]:
        """The lines of a response, numbered from 1 as they were added."""
        self._reference = f"{batch.model}:{batch.version}"
        # For the server, the options are the first line.
        lines = [line.model_copy(update={"line": line.line - 1 + self._sent}) for line in batch.lines]
        self._sent += len(lines)
        return lines

    def _call(self, lines: Sequence[bytes]) -> Call[TaggedBatch]:
        body = b"".join((_dump({"model": self._reference, **self._options}), *lines))
        headers = {"Content-Type": MEDIA_TYPE}
        return Call("POST", "/tag", _read, upload=UploadBody(body), headers=headers, safe=True)


def _read(response: httpx.Response) -> TaggedBatch:
    head, *rest = (line for line in response.content.split(b"\n") if line)
    about = json.loads(head)
    return TaggedBatch(
        about["model"], about["version"], [TaggedLine.model_validate_json(line) for line in rest]
    )


def _object_of(line: Line) -> Mapping[str, Any]:
    if isinstance(line, str):
        return {"text": line}
    if isinstance(line, Mapping):
        return line
    try:
        return {"tokens": list(line)}
    except TypeError:
        kind = type(line).__name__
        raise TypeError(f"A line is a text, a list of tokens or an object, not {kind}.") from None


def _dump(value: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half a character, which the server refuses in the result of the line
        return json.dumps(value).encode() + b"\n"
