"""Stored scores of versions, from the dev set of training and from `evaluate` jobs: the newest on each corpus.

They stay with the version when the job or the corpus is deleted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.store import clock, tables
from tagsmith.core.store.engine import upsert
from tagsmith.core.store.ids import new_id

_evaluation = tables.evaluation
_UNSEEN = frozenset({"id", "model", "version", "metrics"})
_COLUMNS = [column for column in _evaluation.c if column.name not in _UNSEEN]
#: The part of the metrics that `EvaluationRow.types` holds.
_BY_TYPE = "by_type"


@dataclass(frozen=True, slots=True)
class NewEvaluation:
    """Scores of a version on a corpus, or on the fraction `held_out` of its training corpus."""

    corpus: str | None
    held_out: float | None
    #: The metric that versions are compared by.
    metric: str
    #: All metrics, with those of each span type in `by_type`.
    metrics: Mapping[str, Any]
    job_id: str | None


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """Stored scores of a version."""

    corpus: str | None
    corpus_name: str | None
    corpus_number: int | None
    held_out: float | None
    sentences: int
    metric: str
    score: float
    metrics: Mapping[str, Any]
    types: Mapping[str, Mapping[str, Any]]
    at: datetime
    job_id: str | None


def types_of(metrics: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the scores of each span type; `support` is its number of gold spans."""
    return {
        name: {**{key: score[key] for key in ("precision", "recall", "f1")}, "support": score["gold"]}
        for name, score in metrics[_BY_TYPE].items()
    }


def record(conn: Connection, model: str, version: int, new: NewEvaluation) -> None:
    """Store the scores of a version. They replace earlier ones on the same corpus."""
    values = {
        "id": new_id("evl"),
        "model": model,
        "version": version,
        "corpus": new.corpus,
        "held_out": new.held_out,
        "sentences": new.metrics["sentences"],
        "metric": new.metric,
        "score": new.metrics[new.metric],
        "metrics": dict(new.metrics),
        "at": clock.now(conn),
        "job_id": new.job_id,
        **corpus_names(conn, new.corpus),
    }
    upsert(conn, _evaluation, values, key=("model", "version", "corpus"))


def corpus_names(conn: Connection, corpus_id: str | None) -> dict[str, Any]:
    """Return the name and number of a corpus, for a record that outlives it."""
    corpus = tables.corpus.c
    row = conn.execute(sa.select(corpus.name, corpus.number).where(corpus.id == corpus_id)).one_or_none()
    name, number = (None, None) if row is None else row
    return {"corpus_name": name, "corpus_number": number}


def of_versions(
    conn: Connection, model: str, versions: Sequence[int]
) -> dict[int, tuple[EvaluationRow, ...]]:
    """Return the scores of each version, newest first."""
    found: dict[int, tuple[EvaluationRow, ...]] = dict.fromkeys(versions, ())
    query = sa.select(_evaluation.c.version, _evaluation.c.metrics, *_COLUMNS).where(
        _evaluation.c.model == model, _evaluation.c.version.in_(versions)
    )
    for row in conn.execute(query.order_by(_evaluation.c.at.desc(), _evaluation.c.id.desc())):
        values = row._asdict()
        version, metrics = values.pop("version"), values.pop("metrics")
        plain = {key: value for key, value in metrics.items() if key != _BY_TYPE}
        found[version] += (EvaluationRow(**values, metrics=plain, types=types_of(metrics)),)
    return found


def metrics_on(conn: Connection, model: str, version: int, corpus: str) -> Mapping[str, Any] | None:
    """Return all metrics of a version on a corpus; None if there are none."""
    query = sa.select(_evaluation.c.metrics).where(
        _evaluation.c.model == model, _evaluation.c.version == version, _evaluation.c.corpus == corpus
    )
    found: Mapping[str, Any] | None = conn.execute(query).scalar_one_or_none()
    return found
