import dataclasses
import hashlib
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tagsmith.core.base.errors import Conflict, Invalid, NotFound, TagsmithError
from tagsmith.core.jobs import jobs
from tagsmith.core.store import blobs, corpora
from tagsmith.core.store.engine import Database
from tests.core.store.races import Attempt, race
from tests.core.store.samples import LEASE_S, add_corpus, add_job, corpus_row


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
    assert stored == dataclasses.replace(row, size_bytes=len(text), sha256=hashlib.sha256(text).hexdigest())
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
        jobs.claim(conn, job.id, "w1", LEASE_S)
    with pytest.raises(Conflict), db.write() as conn:
        corpora.delete(conn, row.id)
    with db.write() as conn:
        jobs.succeed(conn, job.id, "w1", {})
        corpora.delete(conn, row.id)
    with db.read() as conn:
        assert jobs.get(conn, job.id).ended


def test_creating_a_job_and_deleting_its_corpus_at_once_never_both_succeed(db: Database) -> None:
    for _ in range(20):
        corpus_id = add_corpus(db).id
        created, deleted = race(
            db,
            Attempt(partial(jobs.create, kind="train", spec={}, uses=jobs.Uses([corpus_id])), NotFound),
            Attempt(partial(corpora.delete, corpus_id=corpus_id), TagsmithError),
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
