"""Signatures are read from model files: a failure to read one is not remembered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tagsmith.app.models import signatures
from tagsmith.core.base.errors import Unavailable
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.store.engine import Database
from tests.app import samples

NEW = NewVersion(
    objective=None,
    active_features=1,
    train_seconds=0.0,
    metrics={},
    trainer={},
    spec={},
    corpus=None,
    seed=1,
    code_version="test",
    job_id=None,
)


def test_a_signature_is_read_when_the_database_is_back(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.write() as conn:
        row = models.publish(conn, "signed", NEW, [samples.model_file("x", tmp_path / "model")])

    def away(*_: object) -> Iterator[bytes]:
        raise Unavailable("The database cannot be reached. Try again later.")

    with monkeypatch.context() as patched:
        patched.setattr(signatures.blobs, "stream", away)
        with pytest.raises(Unavailable):
            signatures.signed(database, row)
    found = signatures.signed(database, row).signature
    assert found is not None
    assert set(found.labels) == {"name-x", "act-x"}
