"""Console output: log lines of child processes and, on a terminal, a progress bar."""

import contextlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from tagsmith.core.service.lines import LineWriter

#: ANSI colours for the names of children; readable on dark and light backgrounds.
COLOURS = (36, 35, 34, 33, 32, 31)
NAME_WIDTH = 9
#: A log file of this size is renamed, and a new one begins. Two of them are kept.
LOG_BYTES = 32 << 20


class LogFile:
    """A file for the output of children, so that a terminal stays readable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = path.stat().st_size if path.exists() else 0

    def write(self, text: str) -> None:
        """Append text."""
        # Without room on the disk the stack goes on, without logs.
        with contextlib.suppress(OSError):
            if self._size > LOG_BYTES:
                self.path.replace(self.path.with_name(self.path.name + ".1"))
                self._size = 0
            with self.path.open("a", encoding="utf-8") as file:
                self._size += file.write(text)

    def tail(self, lines: int) -> list[str]:
        """The last lines."""
        if not self.path.exists():
            return []
        return self.path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]


class Console:
    """Writes whole lines to a stream. If it is closed or nobody reads it, output is dropped: it never stops the stack.

    With `logs`, the output of children goes to that file.
    """

    def __init__(self, stream: TextIO | None = None, logs: LogFile | None = None) -> None:
        self._stream = stream or sys.stdout
        self._writer = LineWriter(self._stream, _notice)
        self.logs = logs
        self.is_terminal = self._stream.isatty()
        self._bar_shown = False

    def line(self, text: str = "") -> None:
        self.clear_bar()
        self._write(text + "\n")

    def child_lines(self, name: str, texts: Sequence[str]) -> None:
        """Write lines of a child's output, each with its name in front.

        All lines are written at once, since an API process can log thousands of lines per second.
        """
        label = f"{name:<{NAME_WIDTH}}|"
        if self.logs is not None:
            self.logs.write("".join(f"{label} {text}\n" for text in texts))
            return
        if self.is_terminal:
            # Not hash(): its value differs between runs.
            colour = COLOURS[sum(name.encode()) % len(COLOURS)]
            label = f"\x1b[{colour}m{label}\x1b[0m"
        self.line("\n".join(f"{label} {text}" for text in texts))

    def heading(self, text: str) -> None:
        self.line()
        self.line(f"\x1b[1m{text}\x1b[0m" if self.is_terminal else text)

    def bar(self, fraction: float, text: str) -> None:
        """Draw a progress bar in place of the previous one. Does nothing without a terminal."""
        if not self.is_terminal:
            return
        columns = shutil.get_terminal_size().columns
        width = 24
        full = round(max(0.0, min(1.0, fraction)) * width)
        drawn = f"  [{'#' * full}{'.' * (width - full)}] {text}"[: columns - 1]
        self._write(f"\r\x1b[K{drawn}")
        self._bar_shown = True

    def clear_bar(self) -> None:
        if self._bar_shown:
            self._bar_shown = False
            self._write("\r\x1b[K")

    def flush(self) -> None:
        """Wait until everything is written, but not for long."""
        self._writer.flush()

    def _write(self, text: str) -> None:
        self._writer.write(text)


def _notice(count: int) -> str:
    return f"... {count} lines were dropped: nobody read them\n"
