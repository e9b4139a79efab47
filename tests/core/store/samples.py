"""Rows that tests need again and again."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from tagsmith.core.jobs import jobs, leases
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion, VersionRow
from tagsmith.core.store import corpora
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import new_id

#: Far enough for any lease of a test to have run out.
LATER = timedelta(hours=1)
LEASE_S = 30.0


def corpus_row(name: str = "sample") -> CorpusRow:
    return CorpusRow(
        id=new_id("crp"),
        name=name,
        format="conll",
        sentences=2,
        tokens=3,
        columns=["0", "1"],
        labels=["B", "O"],
        sha256="",
        size_bytes=0,
        report={"duplicates": 0},
        created_at=datetime.now(UTC),
    )


def add_corpus(db: Database, text: bytes = b"a A B\nb B O\n\nc C O\n") -> CorpusRow:
    with db.write() as conn:
        return corpora.insert(conn, corpus_row(), [text])


def add_job(db: Database, corpora_used: Iterable[str] = (), model: str = "chunker") -> JobRow:
    with db.write() as conn:
        return jobs.create(
            conn,
            kind="train",
            spec={"kind": "train", "model": model},
            uses=jobs.Uses(list(corpora_used)),
            model=model,
            origin=jobs.Origin("req-1"),
        )


def add_running(db: Database, owner: str = "w1", lease_s: float = LEASE_S) -> JobRow:
    job = add_job(db)
    with db.write() as conn:
        claimed = leases.claim(conn, job.id, owner, lease_s)
    assert claimed is not None
    return claimed


def new_version(job_id: str | None = None, seed: int = 1) -> NewVersion:
    return NewVersion(
        objective=12.5,
        active_features=345,
        train_seconds=1.25,
        metrics={"f1": 93.6},
        trainer={"kind": "sgd-l1", "l1": 0.5},
        spec={"kind": "train"},
        corpus="crp_x",
        seed=seed,
        code_version="0.1.0",
        job_id=job_id,
    )


def add_version(db: Database, name: str, data: bytes = b"model file") -> VersionRow:
    with db.write() as conn:
        return models.publish(conn, name, new_version(), [data])
