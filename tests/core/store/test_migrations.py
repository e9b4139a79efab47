import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from tagsmith.core.base.errors import Invalid
from tagsmith.core.jobs import checkpoints, jobs
from tagsmith.core.registry import generations
from tagsmith.core.store import blobs, migrate, tables
from tagsmith.core.store.engine import Database, normal_url
from tagsmith.core.store.states import State
from tagsmith.core.store.tables import metadata


def test_migrated_schema_equals_the_metadata(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url)
    db = Database(empty_database_url)
    with db.read() as conn:
        context = MigrationContext.configure(
            conn, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []
        assert generations.generation(conn) == 0
    db.dispose()


def test_upgrade_is_at_head_only_afterwards_and_harmless_twice(empty_database_url: str) -> None:
    db = Database(empty_database_url)
    assert not migrate.at_head(db)
    migrate.upgrade(empty_database_url)
    migrate.upgrade(empty_database_url)
    assert migrate.at_head(db)
    db.dispose()


def test_four_processes_may_migrate_at_once(empty_database_url: str) -> None:
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(migrate.upgrade, [empty_database_url] * 4))
    db = Database(empty_database_url)
    assert migrate.at_head(db)
    with db.read() as conn:
        assert conn.execute(sa.text("SELECT count(*) FROM registry")).scalar_one() == 1
    db.dispose()


def test_chunks_are_not_compressed_twice_on_postgresql(postgres_url: str) -> None:
    db = Database(postgres_url)
    table, column = "blob_chunk", "data"
    query = "SELECT attstorage::text FROM pg_attribute WHERE attrelid = CAST(:t AS regclass) AND attname = :c"
    with db.read() as conn:
        assert conn.execute(sa.text(query), {"t": table, "c": column}).scalar_one() == "e"
    db.dispose()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://h/d", "no address"])
def test_addresses_that_cannot_serve_are_refused(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        normal_url(url)
    assert caught.value.code == "invalid_setting"


@pytest.mark.parametrize("url", ["postgres://h/d", "postgresql://h/d", "postgresql+psycopg2://h/d"])
def test_every_spelling_of_postgresql_gets_the_driver_we_ship(url: str) -> None:
    assert normal_url(url).drivername == "postgresql+psycopg"


def test_a_database_of_the_first_revision_is_brought_up_with_its_rows_and_back(
    empty_database_url: str,
) -> None:
    migrate.upgrade(empty_database_url, "0001")
    db = Database(empty_database_url)
    values = {"kind": "train", "state": "queued", "spec": {}, "attempt": 0, "losses": 0, "last_seq": 1}
    times = dict.fromkeys(("created_at", "queued_at"), datetime.now(UTC))
    with db.write() as conn:
        conn.execute(tables.job.insert().values(id="job_old", cancel_requested=False, **values, **times))
    assert not migrate.at_head(db)
    migrate.upgrade(empty_database_url)
    assert migrate.at_head(db)
    with db.write() as conn:
        assert jobs.get(conn, "job_old").state is State.QUEUED
        before = conn.execute(sa.select(sa.func.count()).select_from(tables.blob)).scalar_one()
        blob = blobs.write(conn, "blb_checkpoint", [b"state"])
        checkpoints.replace(conn, "job_old", 3, blob.id)
    migrate.downgrade(empty_database_url, "0001")
    with db.read() as conn:
        assert not sa.inspect(conn).has_table("job_checkpoint")
        assert conn.execute(sa.select(tables.job.c.id)).scalar_one() == "job_old"
        assert conn.execute(sa.select(sa.func.count()).select_from(tables.blob)).scalar_one() == before
    db.dispose()
