import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from tagsmith.core.base.errors import Invalid
from tagsmith.core.jobs import checkpoints, control, jobs
from tagsmith.core.registry import generations, models
from tagsmith.core.store import blobs, corpora, migrate, tables
from tagsmith.core.store.engine import Database, normal_url
from tagsmith.core.store.states import State
from tagsmith.core.store.tables import metadata
from tests.core.store import filled


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


def test_rows_of_every_table_of_the_first_schema_survive_the_way_up_and_back(
    empty_database_url: str,
) -> None:
    revisions = migrate.known()
    migrate.upgrade(empty_database_url, revisions[-1])
    db = Database(empty_database_url)
    with db.write() as conn:
        first = filled.fill(conn)
    for revision in reversed(revisions[:-1]):
        migrate.upgrade(empty_database_url, revision)
        with db.read() as conn:
            assert filled.lost(first, filled.stored(conn)) == []
    with db.read() as conn:
        newest = filled.stored(conn)
    migrate.downgrade(empty_database_url, revisions[-1])
    with db.read() as conn:
        oldest = filled.stored(conn)
        assert filled.lost(first, oldest) == []
    migrate.upgrade(empty_database_url)
    with db.read() as conn:
        again = filled.stored(conn)
    assert filled.lost({name: newest[name] for name in oldest}, again) == []
    assert migrate.at_head(db)
    db.dispose()


def test_rows_of_every_table_of_the_newest_schema_survive_the_way_down(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url)
    db = Database(empty_database_url)
    with db.write() as conn:
        made = filled.fill(conn)
    for revision in migrate.known()[1:]:
        migrate.downgrade(empty_database_url, revision)
        with db.read() as conn:
            assert filled.lost(made, filled.stored(conn)) == []
    migrate.upgrade(empty_database_url)
    with db.read() as conn:
        assert len(filled.stored(conn)["job"]) == filled.ROWS
    db.dispose()


def test_numbers_and_evaluations_are_made_from_what_is_stored_and_go_back(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url, "0010")
    db = Database(empty_database_url)
    at = datetime.now(UTC)
    corpus = {"format": "conll", "sentences": 2, "tokens": 3, "columns": ["0"], "labels": ["B-NP", "O"]}
    corpus |= {"sha256": "a", "size_bytes": 4, "report": {}, "created_at": at}
    scores = {"sentences": 2, "f1": 70.0, "accuracy": 80.0, "by_type": {}}
    newer = {**scores, "f1": 90.0}
    job = {"kind": "evaluate", "state": "succeeded", "attempt": 1, "losses": 0, "last_seq": 1}
    job |= {"cancel_requested": False, "created_at": at, "queued_at": at, "finished_at": at}
    job |= {
        "spec": {"corpus": "crp_2"},
        "result": {"models": [{"model": "m", "version": 1, "metrics": newer}]},
    }
    version = {"sha256": "a", "size_bytes": 1, "active_features": 1, "train_seconds": 1.0, "trainer": {}}
    version |= {
        "seed": 1,
        "code_version": "0",
        "created_at": at,
        "corpus": "crp_1",
        "metrics": {"dev": scores},
    }
    with db.write() as conn:
        for name in ("blb_1", "blb_2", "blb_3", "blb_m"):
            blobs.write(conn, name, [name.encode()])
        for name in ("1", "2", "3"):
            own = {"id": f"crp_{name}", "name": "other" if name == "3" else "same", "blob_id": f"blb_{name}"}
            conn.execute(tables.corpus.insert().values(**corpus, **own))
        conn.execute(tables.model.insert().values(name="m", last_version=1, created_at=at))
        spec = {"dev": {"corpus": "crp_2"}}
        conn.execute(
            tables.model_version.insert().values(model="m", version=1, spec=spec, blob_id="blb_m", **version)
        )
        conn.execute(tables.job.insert().values(id="job_01hzy3m5v8q2", **job))
        conn.execute(tables.job_corpus.insert().values(job_id="job_01hzy3m5v8q2", corpus_id="crp_2"))
        conn.execute(tables.model_policy.insert().values(model="m", seq=1, corpus="crp_2", updated_at=at))
    migrate.upgrade(empty_database_url)
    with db.write() as conn:
        assert [str(corpora.get(conn, f"crp_{name}")) for name in "123"] == ["same:1", "same:2", "other:1"]
        assert corpora.get(conn, "same").id == "crp_2"
        assert control.resolve(conn, "m5v8q2") == "job_01hzy3m5v8q2"
        found = models.version(conn, "m", 1)
        assert (found.corpus_name, found.corpus_number) == ("same", 1)
        (only,) = found.evaluations
        assert (only.corpus, only.corpus_name, only.score, only.metric) == ("crp_2", "same", 90.0, "f1")
        assert only.job_id == "job_01hzy3m5v8q2"
        # A rebuilt table keeps the rows that refer to it.
        assert conn.execute(sa.select(tables.job_corpus.c.corpus_id)).scalar_one() == "crp_2"
        assert policies_of(conn) == ["crp_2"]
        conn.execute(tables.corpus.update().where(tables.corpus.c.id == "crp_3").values(blob_id="blb_1"))
    migrate.downgrade(empty_database_url, "0010")
    with db.read() as conn:
        ids = list(conn.scalars(sa.select(tables.corpus.c.blob_id).order_by(tables.corpus.c.id)))
        assert len(set(ids)) == 3
        assert b"".join(blobs.read(conn, ids[2])) == b"blb_1"
        assert conn.execute(sa.select(tables.job_corpus.c.corpus_id)).scalar_one() == "crp_2"
        assert policies_of(conn) == ["crp_2"]
    db.dispose()


def policies_of(conn: sa.Connection) -> list[str]:
    return list(conn.scalars(sa.select(tables.model_policy.c.corpus)))
