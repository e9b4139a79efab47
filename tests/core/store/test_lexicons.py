import dataclasses
import hashlib
from datetime import UTC, datetime
from functools import partial

import pytest

from tagsmith.core.base.errors import Conflict, NotFound, TagsmithError
from tagsmith.core.features.lexicon.lexicon import id_of
from tagsmith.core.jobs import jobs, leases
from tagsmith.core.store import blobs, lexicons
from tagsmith.core.store.engine import Database
from tagsmith.core.store.lexicons import LexiconRow
from tests.core.store.races import Attempt, race
from tests.core.store.samples import LEASE_S


def lexicon_row(text: bytes, kind: str = "words") -> LexiconRow:
    sha256 = hashlib.sha256(text).hexdigest()
    return LexiconRow(
        id=id_of(kind, sha256),
        name="places",
        kind=kind,
        entries=2,
        classes=0,
        sha256=sha256,
        size_bytes=len(text),
        created_at=datetime.now(UTC),
    )


def add(db: Database, text: bytes) -> LexiconRow:
    with db.write() as conn:
        return lexicons.insert(conn, lexicon_row(text), [text])[0]


def test_a_lexicon_comes_back_as_stored(db: Database) -> None:
    text = "Zürich\n上海\n".encode()
    row = add(db, text)
    with db.read() as conn:
        assert lexicons.get(conn, row.id) == row
        blob_id = lexicons.blob_id(conn, row.id)
        assert row in lexicons.page(conn, 100).data
    assert b"".join(blobs.stream(db, blob_id)) == text


def test_the_same_content_is_stored_once_and_keeps_its_name(db: Database) -> None:
    text = b"once\ntwice\n"
    first = add(db, text)
    with db.write() as conn:
        again = lexicons.insert(conn, dataclasses.replace(lexicon_row(text), name="other"), [text])
    assert again == (first, False)
    assert id_of("typed", first.sha256) != first.id


def test_text_that_is_not_what_its_row_says_is_not_stored(db: Database) -> None:
    row = lexicon_row(b"said\n")
    with pytest.raises(ValueError, match="does not match"), db.write() as conn:
        lexicons.insert(conn, row, [b"sent\n"])
    with db.read() as conn, pytest.raises(NotFound):
        lexicons.get(conn, row.id)


def test_an_unknown_lexicon_is_not_found_anywhere(db: Database) -> None:
    for act in (lexicons.get, lexicons.blob_id, lexicons.delete):
        with db.write() as conn, pytest.raises(NotFound, match="lex_none") as caught:
            act(conn, "lex_none")
        assert caught.value.code == "lexicon_not_found"
    with pytest.raises(NotFound), db.write() as conn:
        jobs.create(conn, kind="train", spec={}, uses=jobs.Uses(lexicons=["lex_none"]))


def test_a_lexicon_cannot_be_deleted_under_a_job_until_that_has_ended(db: Database) -> None:
    row = add(db, b"held\n")
    with db.write() as conn:
        job = jobs.create(conn, kind="train", spec={}, uses=jobs.Uses(lexicons=[row.id, row.id]))
    with pytest.raises(Conflict, match=job.id) as caught, db.write() as conn:
        lexicons.delete(conn, row.id)
    assert caught.value.code == "lexicon_in_use"
    with db.write() as conn:
        leases.claim(conn, job.id, "w1", LEASE_S)
        leases.succeed(conn, job.id, "w1", {})
        lexicons.delete(conn, row.id)
    with db.read() as conn, pytest.raises(NotFound):
        lexicons.get(conn, row.id)


def test_creating_a_job_and_deleting_its_lexicon_at_once_never_both_succeed(db: Database) -> None:
    for number in range(10):
        lexicon_id = add(db, f"raced {number}\n".encode()).id
        created, deleted = race(
            db,
            Attempt(
                partial(jobs.create, kind="train", spec={}, uses=jobs.Uses(lexicons=[lexicon_id])), NotFound
            ),
            Attempt(partial(lexicons.delete, lexicon_id=lexicon_id), TagsmithError),
        )
        assert created != deleted


def test_the_same_content_uploaded_twice_at_once_is_stored_once(db: Database) -> None:
    for number in range(10):
        text = f"both {number}\n".encode()
        row = lexicon_row(text)
        upload = Attempt(partial(lexicons.insert, row=row, chunks=[text]), TagsmithError)
        assert race(db, upload, upload) == [True, True]
        with db.read() as conn:
            blob_id = lexicons.blob_id(conn, row.id)
        assert b"".join(blobs.stream(db, blob_id)) == text
