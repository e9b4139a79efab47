"""Two versions side by side: what was measured, what was asked for, what was learned."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi.concurrency import run_in_threadpool

from app import errors
from app.models import service
from app.tagging.serving import Serving
from core.model.difference import WeightDifference, weight_difference
from core.store.engine import Database


@dataclass(frozen=True, slots=True)
class MetricChange:
    """A figure of the two versions; one that a version lacks is None."""

    name: str
    base: float | None
    head: float | None
    change: float | None


@dataclass(frozen=True, slots=True)
class SpecChange:
    """A place of the spec where the versions differ; what a spec lacks is None."""

    pointer: str
    base: Any
    head: Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that differs between two versions of a model."""

    model: str
    base: int
    head: int
    metrics: list[MetricChange]
    spec: list[SpecChange]
    labels_added: list[str]
    labels_removed: list[str]
    weights: WeightDifference


async def compare(
    database: Database, serving: Serving, name: str, numbers: tuple[int, int], top: int
) -> Comparison:
    """Compare two versions."""
    rows = [await run_in_threadpool(service.version, database, name, number) for number in numbers]
    base, head = [await service.opened(database, serving, name, number) for number in numbers]
    return Comparison(
        name,
        *numbers,
        metrics=_metrics(rows[0].metrics, rows[1].metrics),
        spec=_specs(rows[0].spec, rows[1].spec),
        labels_added=[label for label in head.labels if label not in base.labels],
        labels_removed=[label for label in base.labels if label not in head.labels],
        weights=await run_in_threadpool(weight_difference, base, head, top),
    )


def _metrics(base: Mapping[str, Any], head: Mapping[str, Any]) -> list[MetricChange]:
    """Every figure, by its path; lists tell of the course of training and are left out."""
    found = [
        {".".join(path): float(value) for path, value in _leaves(each) if _is_figure(value)}
        for each in (base, head)
    ]
    changes = []
    for key in dict.fromkeys((*found[0], *found[1])):
        one, other = found[0].get(key), found[1].get(key)
        changes.append(MetricChange(key, one, other, None if one is None or other is None else other - one))
    return changes


def _is_figure(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _specs(base: Mapping[str, Any], head: Mapping[str, Any]) -> list[SpecChange]:
    found = [{errors.pointer(path): value for path, value in _leaves(each)} for each in (base, head)]
    return [
        SpecChange(key, found[0].get(key), found[1].get(key))
        for key in dict.fromkeys((*found[0], *found[1]))
        if found[0].get(key) != found[1].get(key)
    ]


def _leaves(value: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values of an object and of the objects in it, each with its path."""
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _leaves(item, (*path, key))
        else:
            yield (*path, key), item
