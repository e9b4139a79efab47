"""A database that a newer version has migrated: every command refuses it with a sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tagsmith.core.base.errors import Conflict
from tagsmith.core.store import migrate
from tagsmith.core.store.engine import Database

SENTENCE = "The database has schema 9999, which is newer than this version of Tagsmith"


def make_newer(url: str) -> None:
    migrate.upgrade(url)
    database = Database(url)
    with database.write() as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.dispose()


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "tagsmith.cli", "migrate"],
        ["-m", "tagsmith.cli", "keys", "list"],
        ["-m", "tagsmith.cli", "api", "--port", "0"],
        ["-m", "tagsmith.cli", "up", "--port", "0"],
        ["-m", "tagsmith.worker"],
    ],
    ids=lambda arguments: " ".join(arguments[2:]) or "worker",
)
def test_every_process_refuses_a_newer_schema_with_a_sentence(arguments: list[str], tmp_path: Path) -> None:
    make_newer(f"sqlite:///{tmp_path}/tagsmith.db")
    environment = {key: text for key, text in os.environ.items() if not key.startswith("TAGSMITH_")}
    environment["TAGSMITH_DATA_DIR"] = str(tmp_path)
    if "tagsmith.worker" in arguments:
        environment["TAGSMITH_REDIS_URL"] = "redis://127.0.0.1:1/0"
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert SENTENCE in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_newer_schema_is_neither_raised_nor_lowered(empty_database_url: str) -> None:
    make_newer(empty_database_url)
    database = Database(empty_database_url)
    for refused in (
        lambda: migrate.upgrade(empty_database_url),
        lambda: migrate.downgrade(empty_database_url, "0001"),
        lambda: migrate.at_head(database),
    ):
        with pytest.raises(Conflict, match="schema 9999") as raised:
            refused()
        assert raised.value.code == "schema_too_new"
    with database.read() as conn:
        assert migrate.present(conn) == "9999"
    database.dispose()
