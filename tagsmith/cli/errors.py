"""Errors as one sentence, the places that are wrong, and what to do. A traceback is a bug."""

import errno
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tagsmith.core.base.suggest import did_you_mean, missing

if TYPE_CHECKING:
    from tagsmith.client import ApiError

#: Exit codes: what the caller can correct, and what went wrong elsewhere (a failed job, a server that is away).
USER_ERROR = 2
FAILURE = 1
INTERRUPTED = 130

#: Parameters in messages of the API, and what the command line has instead.
_OPTIONS = (
    (re.compile(r"set the option repair=true"), "give --repair"),
    (re.compile(r"the option repair=true"), "--repair"),
    (re.compile(r"\bformat=(\w+)"), r"--format \1"),
    (re.compile(r"with force\b"), "with --force"),
    (re.compile(r'send "force": true with a reason'), "give --force and --reason"),
)
#: The most places that are shown.
MAX_PLACES = 10


class CommandError(Exception):
    """Something that the caller has to know, in a sentence that says what to do."""

    def __init__(self, message: str, places: Sequence[str] = (), *, code: int = USER_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.places = tuple(places)
        self.exit_code = code


@dataclass(frozen=True, slots=True)
class Shown:
    """An error as it is printed."""

    message: str
    places: tuple[str, ...] = ()
    exit_code: int = USER_ERROR


def unknown(what: str, wrong: str, known: Sequence[str], hint: str = "") -> CommandError:
    """The error for a name that does not exist, with the name that was probably meant, else with all names."""
    names = "" if did_you_mean(wrong, known) else f" Known: {', '.join(known)}."
    return CommandError(f"{missing(what, wrong, known)}{names}{hint}")


def shown(error: Exception) -> Shown | None:
    """Return what to print for an error, or None if it is a bug whose traceback is needed."""
    for describe in (_own, _of_typer, _of_core, _of_files, _of_packages, _of_server):
        if (found := describe(error)) is not None:
            return found
    return None


def _own(error: Exception) -> Shown | None:
    if isinstance(error, CommandError):
        return Shown(error.message, error.places, error.exit_code)
    return None


def _of_typer(error: Exception) -> Shown | None:
    """An option that does not exist, a missing argument and the like."""
    if not hasattr(error, "format_message") or not hasattr(error, "exit_code"):
        return None
    message = str(error.format_message()).replace("\n", " ").strip()
    if not message:  # a group without a command: its help has been printed
        return Shown("")
    wrong, known = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    if wrong and known and (meant := did_you_mean(wrong, known)):
        message = f"No such option {wrong}. Did you mean {meant}?"
    context = getattr(error, "ctx", None)
    places = [f"See: {context.command_path} --help"] if context is not None else []
    return Shown(message if message.endswith((".", "?", ")")) else f"{message}.", tuple(places))


def _of_core(error: Exception) -> Shown | None:
    if not hasattr(error, "faults") or not hasattr(error, "message"):
        return None
    places = [
        _place(
            {
                "detail": fault.reason,
                "line": fault.line,
                "pointer": fault.pointer,
                "parameter": fault.parameter,
            }
        )
        for fault in error.faults
    ]
    return Shown(_in_options(_sentence(str(error.message))), _limited(places))


def _of_files(error: Exception) -> Shown | None:
    if isinstance(error, UnicodeDecodeError):
        return Shown(
            f"The input is not UTF-8: byte {error.start} cannot be read. Convert it, for example with iconv."
        )
    if isinstance(error, UnicodeEncodeError):
        return Shown("The input has bytes that are not UTF-8, or half of a surrogate pair. Correct it.")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Shown("The disk is full. Free some space, then try again.", exit_code=FAILURE)
    if isinstance(error, OSError) and error.filename is not None:
        name = error.filename if isinstance(error.filename, str) else str(error.filename)
        return Shown(f"{name}: {error.strerror}.")
    return None


def _of_packages(error: Exception) -> Shown | None:
    """A command of the server, where only the client and the engine are installed."""
    if not isinstance(error, ModuleNotFoundError) or (error.name or "tagsmith").startswith("tagsmith"):
        return None
    return Shown(
        f"This command needs the server, which is not installed ({error.name} is missing). "
        "Run: pip install 'tagsmith[server]'"
    )


def _of_server(error: Exception) -> Shown | None:
    if type(error).__module__.split(".")[0] not in ("httpx", "tagsmith"):
        return None
    import httpx  # noqa: PLC0415

    from tagsmith.client import ApiError  # noqa: PLC0415

    if isinstance(error, httpx.HTTPError):
        return _unreachable(error, away=isinstance(error, httpx.ConnectError))
    return _problem(error) if isinstance(error, ApiError) else None


def _unreachable(error: Any, *, away: bool) -> Shown:
    """A server that does not answer, or no longer."""
    from tagsmith.cli import config  # noqa: PLC0415

    request = getattr(error, "_request", None)
    url = f"{request.url.scheme}://{request.url.netloc.decode()}" if request else config.chosen_url(None)
    message = f"Nothing answers at {url}. Start a server with `tagsmith up`, or use --local."
    if not away:
        message = f"The connection to {url} broke: {str(error) or type(error).__name__}."
    return Shown(message, exit_code=FAILURE)


def _problem(error: "ApiError") -> Shown:
    """What a server refused."""
    from tagsmith.cli import config  # noqa: PLC0415

    if error.status == 401:
        if config.chosen_key():
            return Shown("The server does not know this key. Correct TAGSMITH_KEY or the config file.")
        message = f'The server needs a key. Set TAGSMITH_KEY, or write `key = "..."` to {config.path()}.'
        return Shown(message, (error.detail,))
    places = [_place(each) for each in error.errors]
    internal = error.status >= 500
    if internal and error.request_id:
        places.append(f"request {error.request_id}")
    message = _sentence(error.detail)
    return Shown(_in_options(message), _limited(places), FAILURE if internal else USER_ERROR)


def _place(location: Mapping[str, Any]) -> str:
    """Where a fault is, in words, and what it is."""
    parts = []
    pointer = location.get("pointer")
    if pointer:
        parts.append(".".join(pointer.strip("/").split("/")).replace("~1", "/").replace("~0", "~"))
    if location.get("parameter"):
        parts.append(str(location["parameter"]))
    if location.get("line"):
        parts.append(f"line {location['line']:,}")
    where = ", ".join(parts)
    detail = _in_options(str(location.get("detail", "")))
    return f"{where}: {detail}" if where else detail


def _in_options(text: str) -> str:
    """Return a message of the API with the options of the command line instead of parameters."""
    for parameter, option in _OPTIONS:
        text = parameter.sub(option, text)
    return text


def _limited(places: Sequence[str]) -> tuple[str, ...]:
    rest = len(places) - MAX_PLACES
    return (*places[:MAX_PLACES], *([f"and {rest} more"] if rest > 0 else []))


def _sentence(message: str) -> str:
    return message if message.endswith((".", "?", "!")) else f"{message}."
