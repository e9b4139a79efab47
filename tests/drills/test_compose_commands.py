"""The exact commands of the compose file, on a real PostgreSQL and a real Redis."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from tagsmith.app import server
from tagsmith.client import Client
from tagsmith.core.service.settings import Settings
from tagsmith.worker import main as worker_main
from tests import services
from tests.drills import actions

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "docker-compose.yml").read_text(encoding="utf-8"))
#: What the image's HEALTHCHECK runs.
HEALTH = ["health"]


def command(service: str) -> list[str]:
    return [str(Path(sys.executable).parent / "tagsmith"), *COMPOSE["services"][service]["command"]]


def environment(service: str, settings: Settings) -> dict[str, str]:
    """What the service sets itself, on top of the addresses of this test."""
    own = {"TAGSMITH_API_PROCESSES": "2"} if service == "api" else {}
    given = COMPOSE["services"][service]["environment"]
    own |= {
        name: str(given[name]) for name in ("TAGSMITH_WORKERS", "TAGSMITH_WORKER_QUEUES") if name in given
    }
    return settings.child_environment() | own


@contextlib.contextmanager
def running(service: str, settings: Settings, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(service), env=environment(service, settings), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_migrate_api_and_worker_make_a_service_and_stop_within_their_grace(
    postgres_databases: services.Databases, own_redis: services.RedisServer, tmp_path: Path
) -> None:
    database_url = postgres_databases.create()
    settings = Settings.from_env(
        {},
        {
            "port": services.free_port(),
            "data_dir": tmp_path / "data",
            "database_url": database_url,
            "redis_url": own_redis.url,
        },
    )
    # The worker comes first and waits for the schema, as it would with an orchestrator that keeps no order.
    with running("worker", settings, tmp_path / "worker.log") as worker:
        subprocess.run(command("migrate"), env=settings.child_environment(), check=True)
        with running("api", settings, tmp_path / "api.log") as api:
            url = f"http://127.0.0.1:{settings.port}"
            with Client(url, retries=0) as client:
                services.wait_until(client.ready, "the API to be ready", 60)
                health = [*command("api")[:1], *HEALTH]
                assert subprocess.run(health, env=settings.child_environment(), check=False).returncode == 0
                assert actions.train(client).attempt == 1
                actions.tag(client)
            for process in (api, worker):
                process.send_signal(signal.SIGTERM)
                assert process.wait(100) == 0
    for service, own_s in (("api", server.LAST_S), ("worker", worker_main.SHUTDOWN_S)):
        # They end by themselves, without the alarm that ends one that hangs; and that would come within the grace.
        assert "killing it" not in (tmp_path / f"{service}.log").read_text()
        assert own_s < float(COMPOSE["services"][service]["stop_grace_period"].removesuffix("s"))
    postgres_databases.drop(database_url)
