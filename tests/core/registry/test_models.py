import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.jobs import control, jobs
from tagsmith.core.registry import aliases, generations, models, policies
from tagsmith.core.registry.policies import PolicyRules, RetentionRules
from tagsmith.core.store import blobs
from tagsmith.core.store.engine import Database
from tests.core.store.races import Attempt, race
from tests.core.store.samples import add_job, add_version, new_version


def generation(db: Database) -> int:
    with db.read() as conn:
        return generations.generation(conn)


def test_a_version_comes_back_as_published_with_its_file(db: Database) -> None:
    made = add_version(db, "published", b"flat file" * 1000)
    with db.read() as conn:
        assert models.version(conn, "published", 1) == made
        assert b"".join(models.artifact(conn, "published", 1)) == b"flat file" * 1000
        assert b"".join(blobs.stream(db, models.blob_id(conn, "published", 1))) == b"flat file" * 1000
    assert (made.version, made.size_bytes) == (1, 9000)
    assert made.sha256 == hashlib.sha256(b"flat file" * 1000).hexdigest()
    assert (made.objective, made.metrics, made.trainer["l1"]) == (12.5, {"f1": 93.6}, 0.5)


def test_versions_are_numbered_from_one_and_a_number_never_comes_back(db: Database) -> None:
    assert [add_version(db, "numbered").version for _ in range(3)] == [1, 2, 3]
    with db.write() as conn:
        models.delete_version(conn, "numbered", 3)
    assert add_version(db, "numbered").version == 4
    with db.read() as conn:
        assert [row.version for row in models.versions(conn, "numbered", 10).data] == [4, 2, 1]
        model = models.get(conn, "numbered")
    assert (model.latest, model.versions, model.aliases) == (4, 3, {})


def test_publishers_at_once_get_each_their_own_number(db: Database) -> None:
    start = threading.Barrier(4)

    def publish(_: int) -> list[int]:
        start.wait()
        return [add_version(db, "contended").version for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        numbers = sorted(number for each in pool.map(publish, range(4)) for number in each)
    assert numbers == list(range(1, 21))


def test_a_failed_publication_uses_up_no_number(db: Database) -> None:
    def fail_after_publishing() -> None:
        with db.write() as conn:
            models.publish(conn, "undone", new_version(), [b"x"])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_after_publishing()
    with db.read() as conn, pytest.raises(NotFound):
        models.get(conn, "undone")
    assert add_version(db, "undone").version == 1


def test_what_is_not_there_is_not_found(db: Database) -> None:
    add_version(db, "known")
    with db.read() as conn:
        for act in (models.version, models.artifact, models.blob_id):
            with pytest.raises(NotFound) as caught:
                act(conn, "unknown", 1)
            assert caught.value.code == "model_not_found"
            for number in (0, -1, 2, 10**40):
                with pytest.raises(NotFound) as caught:
                    act(conn, "known", number)
                assert caught.value.code == "version_not_found"
        with pytest.raises(NotFound):
            models.versions(conn, "unknown", 10)
    with db.write() as conn:
        with pytest.raises(NotFound):
            models.delete_version(conn, "known", 7)
        with pytest.raises(NotFound):
            models.delete_version(conn, "unknown", 1)


def test_a_version_under_an_alias_cannot_be_deleted(db: Database) -> None:
    add_version(db, "served")
    add_version(db, "served")
    with db.write() as conn:
        aliases.move(conn, "served", "champion", 1)
        aliases.move(conn, "served", "canary", 1)
    with pytest.raises(Conflict, match="canary, champion") as caught, db.write() as conn:
        models.delete_version(conn, "served", 1)
    assert caught.value.code == "version_in_use"
    with db.write() as conn:
        aliases.move(conn, "served", "champion", 2)
        aliases.move(conn, "served", "canary", 2)
        blob_id = models.blob_id(conn, "served", 1)
        models.delete_version(conn, "served", 1)
    with db.read() as conn, pytest.raises(NotFound):
        blobs.get(conn, blob_id)


def test_a_move_and_a_deletion_at_once_never_leave_an_alias_on_nothing(db: Database) -> None:
    for round_number in range(10):
        name = f"raced-{round_number}"
        add_version(db, name)
        moved, deleted = race(
            db,
            Attempt(partial(aliases.move, model=name, alias="champion", version=1), NotFound),
            Attempt(partial(models.delete_version, name=name, number=1), Conflict),
        )
        assert moved != deleted


def test_models_and_versions_list_newest_first_by_keyset(db: Database) -> None:
    for name in ("page-a", "page-b", "page-c"):
        for _ in range(3):
            add_version(db, name)
    with db.write() as conn:
        aliases.move(conn, "page-b", "champion", 2)
    names: list[str] = []
    cursor = None
    while True:
        with db.read() as conn:
            page = models.page(conn, 2, cursor)
        names += [row.name for row in page.data if row.name.startswith("page-")]
        assert all(row.aliases == {"champion": 2} for row in page.data if row.name == "page-b")
        cursor = page.next_cursor
        if cursor is None:
            break
    assert names == ["page-c", "page-b", "page-a"]
    with db.read() as conn:
        first = models.versions(conn, "page-a", 2)
        second = models.versions(conn, "page-a", 2, first.next_cursor)
    assert [row.version for row in first.data + second.data] == [3, 2, 1]
    assert second.next_cursor is None


def test_the_snapshot_says_what_every_reference_resolves_to(db: Database) -> None:
    shas = {add_version(db, "snapped", data).version: data for data in (b"one", b"two", b"three")}
    with db.write() as conn:
        aliases.move(conn, "snapped", "champion", 1)
        models.delete_version(conn, "snapped", 3)
        models.publish(conn, "emptied", new_version(), [b"x"])
        models.delete_version(conn, "emptied", 1)
    with db.read() as conn:
        snapshot = generations.snapshot(conn)
    entry = snapshot["snapped"]
    assert (entry.latest, dict(entry.aliases)) == (2, {"champion": 1})
    assert dict(entry.versions) == {n: hashlib.sha256(shas[n]).hexdigest() for n in (1, 2)}
    assert (snapshot["emptied"].latest, dict(snapshot["emptied"].versions)) == (None, {})


def test_every_change_of_what_is_served_raises_the_generation_once(db: Database) -> None:
    before = generation(db)
    add_version(db, "generations")
    assert generation(db) == before + 1
    with db.write() as conn:
        aliases.move(conn, "generations", "champion", 1)
    assert generation(db) == before + 2
    add_version(db, "generations")
    with db.write() as conn:
        aliases.move(conn, "generations", "champion", 2)
    with db.write() as conn:
        aliases.rollback(conn, "generations", "champion")
    assert generation(db) == before + 5
    with db.write() as conn:
        models.delete_version(conn, "generations", 2)
    assert generation(db) == before + 6
    with pytest.raises(Conflict), db.write() as conn:
        models.delete_version(conn, "generations", 1)
    assert generation(db) == before + 6


def test_a_deleted_model_is_gone_and_its_numbers_do_not_come_back(db: Database) -> None:
    for _ in range(2):
        add_version(db, "gone")
    with db.write() as conn:
        blob_id = models.blob_id(conn, "gone", 1)
        aliases.move(conn, "gone", "champion", 1)
        aliases.move(conn, "gone", "champion", 2)
        policies.put(conn, "gone", PolicyRules(retention=RetentionRules(1, 0)))
    with pytest.raises(Conflict, match="served as champion") as caught, db.write() as conn:
        models.delete(conn, "gone")
    assert caught.value.code == "model_in_use"
    with db.write() as conn:
        models.delete(conn, "gone", force=True)
    with db.read() as conn:
        for act in (models.get, policies.get, aliases.list_all, partial(models.versions, limit=5)):
            with pytest.raises(NotFound):
                act(conn, "gone")
        assert "gone" not in generations.snapshot(conn)
        assert "gone" not in {row.name for row in models.page(conn, 1000).data}
        assert policies.retaining(conn) == []
        with pytest.raises(NotFound):
            blobs.get(conn, blob_id)
    for act in (partial(models.delete, name="gone"), partial(models.hold, name="gone", number=1)):
        with db.write() as conn, pytest.raises(NotFound):
            act(conn)
    made = add_version(db, "gone")
    with db.write() as conn:
        assert made.version == 3
        assert aliases.move(conn, "gone", "champion", 3).seq == 3
        assert policies.put(conn, "gone", PolicyRules(retention=RetentionRules(1, 0))).seq == 2
        assert models.get(conn, "gone").versions == 1
        models.delete(conn, "gone", force=True)
    add_version(db, "gone")
    with db.write() as conn:
        assert aliases.move(conn, "gone", "next", 4).seq == 4


def test_a_model_that_an_active_job_trains_or_uses_is_not_deleted_even_by_force(db: Database) -> None:
    add_version(db, "busy")
    training = add_job(db, model="busy")
    with db.write() as conn:
        using = jobs.create(conn, kind="evaluate", spec={}, uses=jobs.Uses(versions=[("busy", 1)]))
    for job in (training, using):
        with pytest.raises(Conflict, match="is in use by job_"), db.write() as conn:
            models.delete(conn, "busy", force=True)
        with db.write() as conn:
            control.cancel(conn, job.id)
    with db.write() as conn:
        models.delete(conn, "busy")
