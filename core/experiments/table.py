"""Results of jobs as CSV: the same figures as in their JSON, a row a run or a version."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Kinds of jobs that have a table.
TABULATED = frozenset({"compare", "tune", "evaluate"})

_COMPARE = (
    "name", "trainer", "passes", "seconds", "objective", "active_features", "score", "f1", "accuracy",
    "passes_to_near", "stop_reason",
)  # fmt: skip
_EVALUATE = (
    "precision", "recall", "f1", "accuracy", "correct", "gold", "predicted", "tokens", "tokens_correct",
    "sentences", "sentences_correct",
)  # fmt: skip


def csv_of(kind: str, result: Mapping[str, Any]) -> str:
    """The table of the result of a job of one of the kinds that have one."""
    if kind == "compare":
        header = [*_COMPARE, "error"]
        rows = [[*(row.get(name) for name in _COMPARE), _message(row)] for row in result["table"]]
    elif kind == "tune":
        header, rows = _tune(result)
    else:
        header = ["model", "version", *_EVALUATE]
        rows = [
            [row["model"], row["version"], *(row["metrics"][name] for name in _EVALUATE)]
            for row in result["models"]
        ]
    return _written(header, rows)


def _tune(result: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    table, folds = result["table"], int(result["folds"])
    fields = sorted(table[0]["values"])
    header = ["candidate", *fields, "mean", "deviation", *(f"fold {i}" for i in range(1, folds + 1))]
    rows = [
        [
            row["candidate"],
            *(row["values"][field] for field in fields),
            row["mean"],
            row["deviation"],
            *(row["scores"] or [None] * folds),
            row["passes"],
            row["seconds"],
            _message(row),
        ]
        for row in table
    ]
    return [*header, "passes", "seconds", "error"], rows


def _message(row: Mapping[str, Any]) -> str | None:
    error = row.get("error")
    return None if error is None else str(error["message"])


def _written(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
