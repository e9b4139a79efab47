"""`doctor`: what is installed, what is wrong, what to do."""

import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import typer

from tagsmith.cli import config, output
from tagsmith.cli.commands.serve import DataOptions, settings_of
from tagsmith.cli.connection import connected
from tagsmith.cli.errors import FAILURE, CommandError, shown
from tagsmith.cli.options import ServerOptions, command

Verdict = Literal["ok", "warning", "error"]
MARKS: dict[Verdict, str] = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "error": "[red]✗[/]"}

#: The oldest Python that works.
PYTHON = (3, 11)
#: Less free space than this fills up with one large corpus.
LEAST_FREE_BYTES = 1 << 30
TIMEOUT_S = 3.0
ENGINE = ("numba", "numpy", "pydantic", "httpx", "typer", "rich")
SERVER = ("fastapi", "uvicorn", "celery", "redis", "sqlalchemy", "alembic")


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(DataOptions, ServerOptions):
    """Options of `doctor`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked: what was found and, if it is wrong, what to do."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


def doctor(options: DoctorOptions) -> int:
    """Check this installation and the server: what is there, what is wrong, what to do."""
    findings = list(_findings(options))
    if options.as_json:
        output.print_json([asdict(each) for each in findings])
    else:
        for each in findings:
            output.say(f"{MARKS[each.verdict]} {each.name:<10} {output.escaped(each.found)}")
            if each.remedy:
                output.say(f"  {'':<10} [bold]{output.escaped(each.remedy)}[/]")
        output.say()
        output.say(_summary([each.verdict for each in findings]))
    return FAILURE if any(each.verdict == "error" for each in findings) else 0


def _summary(verdicts: list[Verdict]) -> str:
    errors, warnings = verdicts.count("error"), verdicts.count("warning")
    if errors:
        return f"{errors} problem{'s' * (errors > 1)} to solve."
    return f"No problem, {warnings} warning{'s' * (warnings > 1)}." if warnings else "Everything is fine."


def _findings(options: DoctorOptions) -> Iterator[Finding]:
    yield _python()
    yield _packages("engine", ENGINE, "pip install tagsmith", needed=True)
    yield _packages("server", SERVER, "To run a server here: pip install 'tagsmith[server]'", needed=False)
    yield _kernels()
    yield _tried("data", lambda: _data_dir(options))
    yield _tried("disk", lambda: _disk(options))
    if all(find_spec(name) for name in SERVER):
        yield _tried("database", lambda: _database(options))
        yield _tried("redis", lambda: _redis(options))
    yield _tried("config", lambda: _config(options))
    yield from _server(options)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON:
        return Finding("python", "error", found, "Install Python 3.11 or newer.")
    return Finding("python", "ok", f"{found} at {sys.executable}")


def _packages(name: str, wanted: tuple[str, ...], remedy: str, *, needed: bool) -> Finding:
    missing = [package for package in wanted if find_spec(package) is None]
    if missing:
        return Finding(name, "error" if needed else "warning", f"not installed: {', '.join(missing)}", remedy)
    return Finding(name, "ok", ", ".join(f"{each} {importlib.metadata.version(each)}" for each in wanted))


def _kernels() -> Finding:
    """Whether kernels were compiled. Looking does not import numba."""
    spec = find_spec("tagsmith.core")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    own = Path(next(iter(spec.submodule_search_locations))) / "__pycache__"
    base = Path(os.environ.get("NUMBA_CACHE_DIR") or own)
    compiled = sum(1 for _ in base.glob("kernels-*/**/*.nbc"))
    if compiled:
        return Finding("kernels", "ok", f"{compiled} compiled in {base}")
    writable = os.access(base if base.exists() else base.parent, os.W_OK)
    remedy = (
        "Compile them now: tagsmith warm"
        if writable
        else "Set NUMBA_CACHE_DIR to a folder that you may write."
    )
    return Finding("kernels", "warning", "not compiled yet; the first run takes a minute or two", remedy)


def _data_dir(options: DoctorOptions) -> Finding:
    path = _data(options)
    if not path.exists():
        return Finding("data", "ok", f"{path.absolute()} does not exist yet; `tagsmith up` creates it")
    if not path.is_dir():
        return Finding("data", "error", f"{path.absolute()} is not a folder", "Choose another --data-dir.")
    try:
        with tempfile.NamedTemporaryFile(dir=path):
            pass
    except OSError as error:
        return Finding(
            "data", "error", f"{path.absolute()}: {error.strerror}", "Make it writable, or choose --data-dir."
        )
    return Finding("data", "ok", str(path.absolute()))


def _disk(options: DoctorOptions) -> Finding:
    path = _data(options).absolute()
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    if free < LEAST_FREE_BYTES:
        return Finding("disk", "error", f"{output.size(free)} free at {path}", "Free some space.")
    return Finding("disk", "ok", f"{output.size(free)} free at {path}")


def _data(options: DoctorOptions) -> Path:
    if find_spec("pydantic_settings") is None:
        return options.data_dir or Path(".tagsmith")
    return settings_of(options).data_dir


def _database(options: DoctorOptions) -> Finding:
    from tagsmith.core.store.engine import Database  # noqa: PLC0415

    settings = settings_of(options)
    url = settings.database_url
    if url.startswith("sqlite") and not (settings.data_dir / "tagsmith.db").exists():
        return Finding("database", "ok", "SQLite, created at the first start")
    database = Database(url)
    try:
        with database.read():
            pass
    except Exception as error:  # noqa: BLE001  # whatever the driver raises is the finding
        reason = str(error).splitlines()[0]
        return Finding("database", "error", reason, "Start it, or correct TAGSMITH_DATABASE_URL.")
    finally:
        database.dispose()
    return Finding("database", "ok", url.split("@")[-1] if "@" in url else url)


def _redis(options: DoctorOptions) -> Finding:
    settings = settings_of(options)
    import redis  # noqa: PLC0415

    from tagsmith.app.cli import private_redis  # noqa: PLC0415

    if settings.redis_url is None:
        server = private_redis.find_binary()
        version = ".".join(map(str, server.version))
        return Finding("redis", "ok", f"{server.product} {version}, embedded; `tagsmith up` starts it")
    where = settings.redis_url.split("@")[-1]
    try:
        with redis.Redis.from_url(settings.redis_url, socket_connect_timeout=TIMEOUT_S) as client:
            version = str(client.info("server")["redis_version"])
    except redis.RedisError as error:
        return Finding("redis", "error", f"{where}: {error}", "Start it, or correct TAGSMITH_REDIS_URL.")
    # Valkey also reports the version of Redis that it is compatible with, which is 7.2 or later.
    if private_redis.version_of(version) < private_redis.OLDEST:
        oldest = ".".join(map(str, private_redis.OLDEST[:2]))
        remedy = f"It gets no security fixes. Use {oldest} or newer."
        return Finding("redis", "warning", f"{where}: version {version}", remedy)
    return Finding("redis", "ok", where)


def _config(options: DoctorOptions) -> Finding:
    url, key = config.chosen_url(options.url), config.chosen_key()
    where = f"{config.path()}" if config.path().is_file() else "no config file"
    return Finding("config", "ok", f"{where}; server {url}; {'a key is set' if key else 'no key'}")


def _server(options: DoctorOptions) -> Iterator[Finding]:
    import httpx  # noqa: PLC0415

    from tagsmith.client import ApiError  # noqa: PLC0415

    url = config.chosen_url(options.url)
    try:
        with connected(options.url, timeout_s=TIMEOUT_S) as client:
            version = client.server_version()
            yield Finding("answers", "ok", f"{url} runs {version.code_version}")
            yield _ready(client.readiness().reasons)
            next(iter(client.models()), None)
            yield Finding("key", "ok", "accepted" if config.chosen_key() else "not needed")
    except httpx.HTTPError:
        yield Finding(
            "answers",
            # Nobody said that there should be a server at the default address.
            "error" if options.url or config.named_url() else "warning",
            f"nothing answers at {url}",
            "Start a server with `tagsmith up`, or use --local.",
        )
    except ApiError as error:
        if error.status == 403:
            yield Finding("key", "ok", "accepted; it may not list models")
        elif error.status == 401:
            yield Finding("key", "error", error.detail, f"Set TAGSMITH_KEY, or write it to {config.path()}.")
        else:
            yield Finding("ready", "error", error.detail, "See the log of the server.")
    except CommandError as error:
        yield Finding("config", "error", error.message)


def _ready(reasons: list[str]) -> Finding:
    if reasons:
        return Finding("ready", "error", "; ".join(reasons), "See the log of the server.")
    return Finding("ready", "ok", "all parts of the server work")


def _tried(name: str, check: Callable[[], Finding]) -> Finding:
    """Make a finding of an error that a check raises."""
    try:
        return check()
    except Exception as error:
        found = shown(error)
        if found is None:
            raise
        return Finding(name, "error", found.message, "; ".join(found.places))


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "doctor", panel="Run a server")(doctor)
