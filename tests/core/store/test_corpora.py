import dataclasses
import hashlib
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tagsmith.core.base.errors import Conflict, Invalid, NotFound, TagsmithError
from tagsmith.core.jobs import jobs, leases
from tagsmith.core.registry import aliases, models
from tagsmith.core.store import blobs, corpora
from tagsmith.core.store.engine import Database
from tests.core.store.races import Attempt, race
from tests.core.store.samples import LEASE_S, add_corpus, add_job, corpus_row, new_version


def test_a_corpus_comes_back_as_stored_with_size_and_digest_of_its_text(db: Database) -> None:
    text = "naïve NN O\n".encode() * 3
    row = dataclasses.replace(
        corpus_row("Zürich \N{SNOWMAN}"), labels=["O", "B-ü"], report={"bio": {"faults": 0}}
    )
    with db.write() as conn:
        stored = corpora.insert(conn, row, [text[:5], text[5:]])
    with db.read() as conn:
        assert corpora.get(conn, row.id) == stored
        assert b"".join(corpora.content(conn, row.id)) == text
        blob_id = corpora.blob_id(conn, row.id)
    assert b"".join(blobs.stream(db, blob_id)) == text
    counted = {"number": 1, "size_bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    assert stored == dataclasses.replace(row, **counted)
    assert stored.created_at.utcoffset() == timedelta(0)


def test_a_failed_upload_stores_nothing(db: Database) -> None:
    row = corpus_row()

    def chunks() -> "list[bytes]":
        raise Invalid("line 3 is ragged")

    with pytest.raises(Invalid), db.write() as conn:
        corpora.insert(conn, row, (piece for _ in "x" for piece in chunks()))
    with db.read() as conn, pytest.raises(NotFound):
        corpora.get(conn, row.id)


def test_an_unknown_corpus_is_not_found_anywhere(db: Database) -> None:
    for act in (corpora.get, corpora.content, corpora.blob_id, corpora.delete):
        with db.write() as conn, pytest.raises(NotFound, match="crp_none") as caught:
            act(conn, "crp_none")
        assert caught.value.code == "corpus_not_found"


def test_deleting_takes_the_text_along(db: Database) -> None:
    row = add_corpus(db)
    with db.read() as conn:
        blob_id = corpora.blob_id(conn, row.id)
    with db.write() as conn:
        corpora.delete(conn, row.id)
    with db.read() as conn:
        with pytest.raises(NotFound):
            corpora.get(conn, row.id)
        with pytest.raises(NotFound):
            blobs.get(conn, blob_id)


def test_a_corpus_cannot_be_deleted_under_a_job_until_that_has_ended(db: Database) -> None:
    row, dev = add_corpus(db), add_corpus(db)
    job = add_job(db, [row.id, dev.id, row.id])
    for corpus_id in (row.id, dev.id):
        with pytest.raises(Conflict, match=job.id) as caught, db.write() as conn:
            corpora.delete(conn, corpus_id)
        assert caught.value.code == "corpus_in_use"
    with db.write() as conn:
        leases.claim(conn, job.id, "w1", LEASE_S)
    with pytest.raises(Conflict), db.write() as conn:
        corpora.delete(conn, row.id)
    with db.write() as conn:
        leases.succeed(conn, job.id, "w1", {})
        corpora.delete(conn, row.id)
    with db.read() as conn:
        assert jobs.get(conn, job.id).ended


def upload(db: Database, name: str, text: bytes) -> corpora.CorpusRow:
    row = dataclasses.replace(corpus_row(name), sha256=hashlib.sha256(text).hexdigest())
    with db.write() as conn:
        return corpora.insert(conn, row, [text])


def test_uploads_under_a_name_are_numbered_and_a_number_is_never_used_twice(db: Database) -> None:
    first, second, other = (upload(db, name, b"x O\n") for name in ("numbered", "numbered", "not numbered"))
    assert (first.number, second.number, other.number) == (1, 2, 1)
    with db.read() as conn:
        found = [corpora.get(conn, each).id for each in ("numbered", "numbered:1", "numbered@2", first.id)]
        assert [row.id for row in corpora.page(conn, 10, name="numbered").data] == [second.id, first.id]
    assert found == [second.id, first.id, second.id, first.id]
    with db.write() as conn:
        assert corpora.delete(conn, "numbered").id == second.id
        assert corpora.get(conn, "numbered").id == first.id
    assert upload(db, "numbered", b"y O\n").number == 3


def test_a_name_that_looks_like_a_number_of_another_does_not_hide_it(db: Database) -> None:
    plain, tricky = upload(db, "hidden", b"x O\n"), upload(db, "hidden:1", b"y O\n")
    alone = upload(db, "alone:7", b"y O\n")
    with db.read() as conn:
        assert corpora.get(conn, "hidden:1").id == plain.id
        assert corpora.get(conn, "hidden:1:1").id == tricky.id
        assert corpora.get(conn, "alone:7").id == alone.id


def test_an_unknown_name_gets_a_suggestion_and_an_unknown_number_the_newest(db: Database) -> None:
    upload(db, "wnut-train", b"x O\n")
    with db.read() as conn:
        with pytest.raises(NotFound, match="did you mean wnut-train"):
            corpora.get(conn, "wnut_trian")
        with pytest.raises(NotFound, match="newest upload of wnut-train is 1"):
            corpora.get(conn, "wnut-train:9")


def test_equal_texts_share_a_blob_until_the_last_of_them_is_deleted(db: Database) -> None:
    text = b"shared O\n" * 100
    rows = [upload(db, name, text) for name in ("twice", "twice", "elsewhere")]
    with db.read() as conn:
        (blob_id,) = {corpora.blob_id(conn, row.id) for row in rows}
    for row in rows:
        with db.read() as conn:
            assert b"".join(corpora.content(conn, row.id)) == text
        with db.write() as conn:
            corpora.delete(conn, row.id)
    with db.read() as conn, pytest.raises(NotFound):
        blobs.get(conn, blob_id)


def test_sharing_a_text_while_its_last_corpus_is_deleted_never_loses_it(db: Database) -> None:
    for turn in range(20):
        text = f"race{turn} O\n".encode()
        row, new = upload(db, "racing", text), corpus_row("racing")
        new = dataclasses.replace(new, sha256=hashlib.sha256(text).hexdigest())
        done = race(
            db,
            Attempt(partial(corpora.insert, row=new, chunks=[text]), TagsmithError),
            Attempt(partial(corpora.delete, reference=row.id), TagsmithError),
        )
        assert done == [True, True]
        with db.read() as conn:
            assert b"".join(corpora.content(conn, new.id)) == text


def test_a_corpus_that_a_served_version_was_trained_on_is_deleted_only_by_force(db: Database) -> None:
    row = upload(db, "basis", b"x O\n")
    with db.write() as conn:
        trained = dataclasses.replace(new_version(), corpus=row.id)
        made = models.publish(conn, "served", trained, [b"model"])
        corpora.get(conn, row.id)
        aliases.move(conn, "served", "champion", made.version)
    said = "Version 1 of model served, which is served as champion, was trained on basis:1"
    with pytest.raises(Conflict, match=said) as caught, db.write() as conn:
        corpora.delete(conn, "basis")
    assert caught.value.code == "corpus_in_use"
    with db.write() as conn:
        corpora.delete(conn, "basis", force=True)
        assert models.version(conn, "served", made.version).corpus == row.id


def test_creating_a_job_and_deleting_its_corpus_at_once_never_both_succeed(db: Database) -> None:
    for _ in range(20):
        corpus_id = add_corpus(db).id
        created, deleted = race(
            db,
            Attempt(partial(jobs.create, kind="train", spec={}, uses=jobs.Uses([corpus_id])), NotFound),
            Attempt(partial(corpora.delete, reference=corpus_id), TagsmithError),
        )
        assert created != deleted


def test_lists_go_newest_first_by_keyset_even_at_equal_times(db: Database) -> None:
    first = corpus_row("same moment")
    rows = [dataclasses.replace(corpus_row("same moment"), created_at=first.created_at) for _ in range(5)]
    with db.write() as conn:
        for row in rows:
            corpora.insert(conn, row, [b"x"])
    seen: list[str] = []
    cursor = None
    while True:
        with db.read() as conn:
            page = corpora.page(conn, 2, cursor)
        seen += [row.id for row in page.data if row.name == "same moment"]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == sorted((row.id for row in rows), reverse=True)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "%%%",
        "é",
        "bnVsbA",
        "W10",
        "WzEsMl0",
        "WyIyMDI2IiwieCJd",
        "WyIyMDI2LTAxLTAxVDAwOjAwOjAwIiwieCJd",
    ],
)
def test_a_broken_cursor_is_refused(db: Database, cursor: str) -> None:
    with db.read() as conn, pytest.raises(Invalid) as caught:
        corpora.page(conn, 10, cursor)
    assert caught.value.code == "invalid_cursor"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "lone \ud800 surrogate"},
        {"report": {"lone": "\ud800"}},
        {"report": {"huge": 2**70}},
        {"tokens": 2**70},
    ],
)
def test_what_cannot_be_stored_is_invalid_not_a_crash(db: Database, change: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught, db.write() as conn:
        corpora.insert(conn, dataclasses.replace(corpus_row(), **change), [b"x"])
    assert caught.value.code == "unstorable_value"


def test_a_mistake_of_ours_is_not_blamed_on_the_user(db: Database) -> None:
    with pytest.raises(TypeError), db.write() as conn:
        corpora.insert(conn, corpus_row(), [None])  # type: ignore[list-item]


def test_a_nul_that_postgresql_cannot_hold_is_invalid_not_a_crash(postgres_url: str) -> None:
    db = Database(postgres_url)
    with pytest.raises(Invalid) as caught, db.write() as conn:
        corpora.insert(conn, corpus_row("a nul \x00 byte"), [b"x"])
    assert caught.value.code == "unstorable_value"
    with pytest.raises(Invalid), db.read() as conn:
        corpora.get(conn, "crp_\x00")
    db.dispose()
