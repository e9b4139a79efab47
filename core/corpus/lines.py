"""Cut a stream of bytes into batches of whole lines, with a bound on what is kept of a line not yet ended."""

from collections.abc import Iterator
from dataclasses import dataclass

#: Lines go to readers in batches of about this size: large against the cost of a call, small against L2.
BATCH_BYTES = 64 * 1024

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole lines, each with its newline, and whether the line behind them is too long to be kept."""

    lines: bytes
    then_long: bool = False


class Lines:
    """Feed it chunks cut anywhere; it gives their lines. A byte-order mark at the start is taken off."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._pending = bytearray()
        self._line_start = 0  # where in `pending` the line not yet ended begins
        self._skipping = False  # inside a line already reported as too long
        self._at_start = True

    def feed(self, chunk: bytes) -> Iterator[Batch]:
        """Take the next bytes."""
        for begin in range(0, len(chunk), BATCH_BYTES):
            yield from self._take(chunk[begin : begin + BATCH_BYTES])

    def finish(self) -> Batch:
        """What is left, its last line ended."""
        if self._pending and not self._pending.endswith(b"\n"):
            self._pending += b"\n"
        self._line_start = len(self._pending)
        return Batch(self._whole())

    def _take(self, piece: bytes) -> Iterator[Batch]:
        if self._skipping:
            newline = piece.find(b"\n")
            if newline < 0:
                return
            piece = piece[newline + 1 :]
            self._skipping = False
        newline = piece.rfind(b"\n")
        if newline >= 0:
            self._line_start = len(self._pending) + newline + 1
        self._pending += piece
        too_long = len(self._pending) - self._line_start > self._max_line_bytes + 1
        if not too_long and self._line_start < BATCH_BYTES:
            return
        lines = self._whole()
        if too_long:
            self._pending.clear()
            self._skipping = True
        yield Batch(lines, too_long)

    def _whole(self) -> bytes:
        lines = bytes(memoryview(self._pending)[: self._line_start])
        del self._pending[: self._line_start]
        self._line_start = 0
        if self._at_start and lines:
            self._at_start = False
            lines = lines.removeprefix(BYTE_ORDER_MARK)
        return lines
