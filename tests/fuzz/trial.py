"""One input, tried under limits of time and memory."""

import contextlib
import re
import resource
import signal
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tagsmith.core.base.errors import TagsmithError, Unavailable
from tests.fuzz.targets import Target

#: An input of some kilobytes takes milliseconds. The margin is for a busy machine.
MAX_SECONDS = 5.0
#: Beyond what the process has when all is loaded.
MAX_MEMORY_BYTES = 1 << 30
_DIGITS = re.compile(r"\d+|'[^']*'|\"[^\"]*\"")


class TooSlow(BaseException):
    """The input took too long. Not an Exception, so that nothing catches it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an input."""

    #: The same for inputs that took the same way, as far as the answer shows it.
    signature: str
    #: Why it is a failure; empty if it is none.
    failure: str = ""


def limit_memory() -> None:
    """Let this process take no more than `MAX_MEMORY_BYTES` from now on."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_MEMORY_BYTES,) * 2)


@contextlib.contextmanager
def _limited_time() -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pieces_of(data: bytes) -> tuple[list[bytes], int]:
    """The first byte of an input chooses the options, and the second how the rest is cut."""
    choice, size = (data[0], data[1] + 1) if len(data) > 1 else (0, 1)
    text = data[2:]
    return [text[begin : begin + size] for begin in range(0, len(text), size)], choice


def tried(target: Target, data: bytes) -> Outcome:
    """Try one input."""
    pieces, choice = pieces_of(data)
    try:
        with _limited_time():
            found = target.read(pieces, choice)
    except TooSlow:
        return _failed(f"It took more than {MAX_SECONDS:g} s.", "slow")
    except TagsmithError as error:
        return _refused(target, error)
    except Exception as error:  # noqa: BLE001  # this is what is looked for
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} {Path(frame.filename).name}:{frame.lineno}"
        return _failed("".join(traceback.format_exception(error))[-3000:], where)
    return Outcome(f"read {len(str(found)).bit_length()}")


def _refused(target: Target, error: TagsmithError) -> Outcome:
    """An error of the project: a code, a sentence, and a place if the target has places."""
    place = next(iter(error.faults), None)
    texts = [error.code, error.message, str(place.type or place.reason) if place else ""]
    signature = " ".join(_DIGITS.sub("#", text)[:80] for text in texts)
    if isinstance(error, Unavailable):
        return _failed(f"The error is not the fault of a user: {error.message}", signature)
    if not (
        error.code and not error.message[:1].islower() and error.message.rstrip().endswith((".", "FILE", ")"))
    ):
        return _failed(f"The error is not a sentence: {error.message!r}", signature)
    if target.placed and place is None and error.code != "corpus_too_large":
        return _failed(f"The error names no place: {error.code}: {error.message}", signature)
    return Outcome(signature)


def _failed(reason: str, signature: str) -> Outcome:
    return Outcome(f"failed {signature}", reason)
