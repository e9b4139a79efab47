"""Tables as CSV have the figures of the JSON."""

import csv
import io
from typing import Any

from tagsmith.core.jobs import kinds


def csv_of(kind: str, result: dict[str, Any]) -> str:
    write = kinds.known()[kind].table
    assert write is not None
    return write(result)


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_comparison() -> None:
    row = {
        "name": 'a, "b"', "trainer": "sgd", "passes": 3, "seconds": 0.5, "objective": 1.25, "active_features": 7,
        "score": 90.5, "f1": 90.5, "accuracy": 95.0, "passes_to_near": 2, "stop_reason": "passes",
    }  # fmt: skip
    failed = {"name": "x", "trainer": "sgd", "error": {"code": "diverged", "message": "no, it\nis not"}}
    fine, bad = read(csv_of("compare", {"table": [row, failed]}))
    assert {**fine} == {**{key: str(value) for key, value in row.items()}, "error": ""}
    assert (bad["name"], bad["score"], bad["error"]) == ("x", "", "no, it\nis not")


def test_a_search() -> None:
    base: dict[str, Any] = {"passes": 2.0, "seconds": 0.1, "error": None}
    table = [
        {"candidate": 1, "values": {"trainer.c": 0.5, "features.cutoff": 2}, "mean": 1.5, "deviation": 0.5,
         "scores": [1.0, 2.0], **base},
        {"candidate": 2, "values": {"trainer.c": "auto", "features.cutoff": 2}, "mean": None, "deviation": None,
         "scores": None, **base, "error": {"message": "diverged"}},
    ]  # fmt: skip
    first, second = read(csv_of("tune", {"table": table, "folds": 2}))
    assert list(first) == [
        "candidate", "features.cutoff", "trainer.c", "mean", "deviation", "fold 1", "fold 2", "passes", "seconds",
        "error",
    ]  # fmt: skip
    assert (first["trainer.c"], first["fold 2"], first["mean"]) == ("0.5", "2.0", "1.5")
    assert (second["trainer.c"], second["fold 1"], second["error"]) == ("auto", "", "diverged")


def test_an_evaluation() -> None:
    names = (
        "precision", "recall", "f1", "accuracy", "correct", "gold", "predicted", "tokens", "tokens_correct",
        "sentences", "sentences_correct",
    )  # fmt: skip
    metrics = {name: i for i, name in enumerate(names)}
    (row,) = read(
        csv_of("evaluate", {"models": [{"model": "m", "version": 3, "metrics": {**metrics, "by_type": {}}}]})
    )
    assert row == {"model": "m", "version": "3", **{name: str(i) for i, name in enumerate(names)}}
