"""Two hosts with a network of their own each, which reach PostgreSQL and Redis over a link that can be cut."""

import socket
from urllib.parse import unquote, urlsplit

import psutil
import sqlalchemy

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tests.drills.framework.namespaces import Network, link
from tests.drills.framework.relay import Relay
from tests.drills.framework.scene import PostgresScene, environment

HOSTS = ("host-1", "host-2")
DATABASE_PORT, REDIS_PORT = 5432, 6379


class HostsScene(PostgresScene):
    """`tagsmith up` with an API process and a worker on each of two hosts. Clients call the first."""

    def start(self) -> None:
        self._start_services()
        self.database = Database(self._database_url())
        # The servers themselves listen on Unix sockets. In the middle network, relays stand for them.
        self.middle = Network()
        self._relays = [
            Relay(self.middle.listening(("0.0.0.0", DATABASE_PORT)), self._connect_database),
            Relay(self.middle.listening(("0.0.0.0", REDIS_PORT)), self._connect_redis),
        ]
        self._networks: list[Network] = []
        self._stacks: list[BackgroundStack] = []
        for number, name in enumerate(HOSTS, 1):
            self._start_host(number, name)
        self.stack = self._stacks[0]
        first = self._networks[0]
        self._relays.append(
            Relay(
                socket.create_server(("127.0.0.1", 0), backlog=64),
                lambda: first.connected(("127.0.0.1", self._port)),
            )
        )
        self._url = f"http://127.0.0.1:{self._relays[-1].port}"

    def stop(self) -> None:
        for network, stack in zip(self._networks, self._stacks, strict=True):
            network.run(stack.stop)
        for relay in self._relays:
            relay.close()
        for network in (*self._networks, self.middle):
            network.close()
        self.database.dispose()
        self._stop_services()

    @property
    def url(self) -> str:
        return self._url

    @property
    def names(self) -> list[str]:
        # Of the first host; the second has the same.
        return ["worker-1", "api-1"]

    def host_of(self, pid: int) -> str:
        """Return the host that a process runs on."""
        supervisors = [each.pid for each in psutil.Process(pid).parents()]
        (found,) = [name for name, stack in zip(HOSTS, self._stacks, strict=True) if stack.pid in supervisors]
        return found

    def cut(self, host: str) -> None:
        """Take the cable of a host out."""
        self.middle.command("ip", "link", "set", "dev", host, "down")

    def heal(self) -> None:
        """Put all cables in."""
        for host in HOSTS:
            self.middle.command("ip", "link", "set", "dev", host, "up")

    def settle(self) -> None:
        self.heal()
        self.await_quiet()

    def restore(self) -> None:
        pass

    def _start_host(self, number: int, name: str) -> None:
        network = Network()
        near, far = f"10.77.{number}.1", f"10.77.{number}.2"
        link(self.middle, network, name, (near, far))
        database = sqlalchemy.make_url(self._database_url()).database
        given = {
            **self.times,
            "workers": 1,
            "port": self._port,
            "data_dir": self.data_dir if number == 1 else self.folder / name,
            "database_url": f"postgresql+psycopg://postgres@{near}:{DATABASE_PORT}/{database}?sslmode=disable",
            "redis_url": f"redis://{near}:{REDIS_PORT}/0",
        }
        stack = BackgroundStack(Settings.from_env({}, given))
        self._networks.append(network)
        self._stacks.append(stack)
        with environment(**self.inside.environment):
            network.run(stack.start)

    def _connect_redis(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(unquote(urlsplit(self.redis.url).path))
        except OSError:
            server.close()
            raise
        return server
