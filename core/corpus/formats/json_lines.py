"""The base class of readers of JSON lines: one object per line."""

from abc import abstractmethod
from typing import Any

import orjson

from tagsmith.core.base.arrays import Bytes
from tagsmith.core.base.spec import pointer
from tagsmith.core.corpus.formats.lines import (
    FAULTS,
    LINE,
    MAX_FAULTS,
    OWN_FAULTS,
    OWN_STATE,
    LineReader,
    record,
)


class InvalidLine(Exception):
    """A line is invalid. `path` leads to the wrong value."""

    def __init__(self, reason: str, *path: str | int) -> None:
        super().__init__(f"{pointer(path)}: {reason}" if path else reason)


class JsonLineReader(LineReader):
    """Parses each line and passes its object to `_add`."""

    #: The shape of an object, for messages.
    shape: str

    def __init__(self, *, max_line_bytes: int) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=OWN_STATE)
        self._reasons: list[str] = []  # reasons of faults; a fault has the index of its reason

    @abstractmethod
    def _add(self, given: dict[str, Any]) -> None:
        """Check the object of a line and add it to the batch. Raises InvalidLine."""

    @abstractmethod
    def _end_batch(self, lines: bytes, before: int) -> None:
        """Keep the batch, unless there are faults. `before` is the number of lines before it."""

    def _scan(self, buffer: Bytes) -> None:
        lines, before = buffer.tobytes(), int(self._state[LINE])
        for line in lines.split(b"\n")[:-1]:
            self._state[LINE] += 1
            if line.strip():
                try:
                    self._add(self._parse(line))
                except RecursionError:
                    self._fault("nested too deeply")
                except InvalidLine as error:
                    self._fault(str(error))
                    if self._state[FAULTS] == MAX_FAULTS:
                        return
        self._end_batch(lines, before)

    def _fault(self, reason: str) -> None:
        record(self._state, self._faults, OWN_FAULTS, len(self._reasons), 0)
        self._reasons.append(reason)

    def _reason(self, kind: int, a: int, b: int) -> str:
        del kind, b
        return self._reasons[a]

    def _parse(self, line: bytes) -> dict[str, Any]:
        if len(line) > self._max_line_bytes:
            raise InvalidLine(f"longer than {self._max_line_bytes} bytes")
        try:
            given = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InvalidLine(_reason_of(error, line)) from None
        if not isinstance(given, dict):
            raise InvalidLine(f"must be an object {self.shape}")
        return given


def _reason_of(error: orjson.JSONDecodeError, line: bytes) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as wrong:
        return f"not UTF-8: byte 0x{line[wrong.start]:02X} at byte {wrong.start + 1}"
    return f"not JSON: {error.msg} at byte {error.pos + 1}"
