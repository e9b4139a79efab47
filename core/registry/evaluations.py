"""Stored scores of versions: from `evaluate` jobs, and from the dev set of training."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.registry.models import VersionRow
from tagsmith.core.store import tables
from tagsmith.core.store.states import State


def metrics(conn: Connection, version: VersionRow, corpus: str | None) -> Mapping[str, Any] | None:
    """Return the newest metrics of a version on a corpus; None if there are none.

    Without a corpus, return the metrics on the dev set of its training.
    """
    if corpus is None:
        return _of_training(version)
    job, uses = tables.job, tables.job_version
    query = (
        sa.select(job.c.result)
        .join(uses, uses.c.job_id == job.c.id)
        .where(
            uses.c.model == version.model,
            uses.c.version == version.version,
            job.c.kind == "evaluate",
            job.c.state == State.SUCCEEDED.value,
            job.c.spec["corpus"].as_string() == corpus,
        )
        .order_by(job.c.finished_at.desc(), job.c.id.desc())
    )
    result = conn.execute(query.limit(1)).scalar_one_or_none()
    if result is not None:
        return _of_result(result, version)
    return _of_training(version) if (version.spec.get("dev") or {}).get("corpus") == corpus else None


def _of_result(result: Mapping[str, Any], version: VersionRow) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(
        each["metrics"]
        for each in result["models"]
        if (each["model"], each["version"]) == (version.model, version.version)
    )
    return found


def _of_training(version: VersionRow) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = version.metrics.get("dev")
    return found
