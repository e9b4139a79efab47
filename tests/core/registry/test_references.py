from functools import partial

import pytest

from tagsmith.core.base.errors import Conflict, Invalid, NotFound, TagsmithError
from tagsmith.core.jobs import control, jobs
from tagsmith.core.registry import aliases, models, references
from tagsmith.core.store.engine import Database
from tests.core.store.races import Attempt, race
from tests.core.store.samples import add_version


def test_a_reference_stands_for_the_champion_else_the_newest_or_what_it_names(db: Database) -> None:
    for _ in range(3):
        add_version(db, "referred")
    with db.write() as conn:
        assert str(references.resolve(conn, "referred", "/init")) == "referred:3"
        aliases.move(conn, "referred", "champion", 2)
        aliases.move(conn, "referred", "old", 1)
        assert str(references.resolve(conn, "referred", "/init")) == "referred:2"
        assert str(references.resolve(conn, "referred@old", "/init")) == "referred:1"
        assert str(references.resolve(conn, "referred:3", "/init")) == "referred:3"


@pytest.mark.parametrize(
    ("text", "code"),
    [("nobody", "model_not_found"), ("known:9", "version_not_found"), ("known@x", "alias_not_found")],
)
def test_a_reference_to_nothing_is_not_found_and_says_where(db: Database, text: str, code: str) -> None:
    add_version(db, "known")
    with db.read() as conn, pytest.raises(NotFound) as caught:
        references.resolve(conn, text, "/init")
    assert caught.value.code == code
    assert [fault.pointer for fault in caught.value.faults] == ["/init"]


def test_what_is_no_reference_is_invalid() -> None:
    with pytest.raises(Invalid) as caught:
        references.parse("Chunker:0", "/model")
    assert caught.value.code == "invalid_reference"


def test_a_version_cannot_be_deleted_under_a_job_that_starts_from_it_until_that_has_ended(
    db: Database,
) -> None:
    add_version(db, "start")
    with db.write() as conn:
        job = jobs.create(conn, kind="train", spec={}, uses=jobs.Uses(versions=[("start", 1)]), model="start")
    with db.write() as conn, pytest.raises(Conflict, match=job.id) as caught:
        models.delete_version(conn, "start", 1)
    assert caught.value.code == "version_in_use"
    with db.write() as conn:
        control.cancel(conn, job.id)
        models.delete_version(conn, "start", 1)
    with db.write() as conn, pytest.raises(NotFound) as missing:
        jobs.create(conn, kind="train", spec={}, uses=jobs.Uses(versions=[("start", 1)]), model="start")
    assert missing.value.code == "version_not_found"


def test_creating_a_job_and_deleting_the_version_it_starts_from_at_once_never_both_succeed(
    db: Database,
) -> None:
    for _ in range(20):
        number = add_version(db, "contested").version
        used = [("contested", number)]
        created, deleted = race(
            db,
            Attempt(partial(jobs.create, kind="train", spec={}, uses=jobs.Uses(versions=used)), NotFound),
            Attempt(partial(models.delete_version, name="contested", number=number), TagsmithError),
        )
        assert created != deleted
