"""What becomes of a trained version that its model's policy does not let through."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tagsmith.core.base.errors import NotFound
from tagsmith.core.jobs.kinds.train import NewModel
from tagsmith.core.registry import aliases, models, policies
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.registry.policies import PolicyRules, PromotionRules
from tagsmith.core.registry.registry import Registry
from tagsmith.core.store.engine import Database


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.dispose()


def outcome(path: Path, f1: float) -> NewModel:
    path.write_bytes(b"a model")
    new = NewVersion(
        objective=1.0, active_features=1, train_seconds=0.1, metrics={"dev": {"f1": f1, "by_type": {}}},
        trainer={}, spec={"dev": {"fraction": 0.1}}, corpus="crp_x", seed=1, code_version="1", job_id="job_x",
    )  # fmt: skip
    return NewModel(path, "guarded", new, 1, "passes", [], None, "champion", "req-1", Registry(None))


def test_it_is_published_and_not_promoted_and_the_result_says_why(db: Database, tmp_path: Path) -> None:
    with db.write() as conn:
        models.publish(conn, "guarded", outcome(tmp_path / "model", 0.0).new, [b"the first"])
        policies.put(conn, "guarded", PolicyRules(PromotionRules(["champion"], "f1", None, minimum=90.0)))
    with db.write() as conn:
        result = outcome(tmp_path / "model", 89.0).store(conn)
    assert (result["version"], result["promoted"]) == (2, None)
    assert "f1 of guarded:2 on its dev set is 89, and the minimum is 90" in result["not_promoted"]
    with db.read() as conn:
        assert models.version(conn, "guarded", 2).job_id == "job_x"
        with pytest.raises(NotFound):
            aliases.get(conn, "guarded", "champion")
    with db.write() as conn:
        result = outcome(tmp_path / "model", 90.0).store(conn)
    assert (result["version"], result["promoted"], result["not_promoted"]) == (3, "champion", None)
    with db.read() as conn:
        assert aliases.get(conn, "guarded", "champion").version == 3
