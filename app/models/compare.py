"""Comparison of two versions: metrics, specs and weights."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi.concurrency import run_in_threadpool

from tagsmith.app.models import service
from tagsmith.app.tagging.serving import Serving
from tagsmith.core.base.spec import pointer as pointer_of
from tagsmith.core.model.difference import weight_difference
from tagsmith.core.store.engine import Database
from tagsmith.wire import MetricChange, SpecChange, VersionComparison, WeightComparison


async def compare(
    database: Database, serving: Serving, name: str, numbers: tuple[int, int], top: int
) -> VersionComparison:
    """Compare two versions."""
    rows = [await run_in_threadpool(service.version, database, name, number) for number in numbers]
    base, head = [await service.opened(database, serving, name, number) for number in numbers]
    weights = await run_in_threadpool(weight_difference, base, head, top)
    return VersionComparison(
        model=name,
        base=numbers[0],
        head=numbers[1],
        metrics=_metrics(rows[0].metrics, rows[1].metrics),
        spec=_specs(rows[0].spec, rows[1].spec),
        labels_added=[label for label in head.labels if label not in base.labels],
        labels_removed=[label for label in base.labels if label not in head.labels],
        weights=WeightComparison.model_validate(weights),
    )


def _metrics(base: Mapping[str, Any], head: Mapping[str, Any]) -> list[MetricChange]:
    """Return the change of every numeric metric, by its path. Lists, such as training curves, are omitted."""
    found = [
        {".".join(path): float(value) for path, value in _leaves(each) if _is_figure(value)}
        for each in (base, head)
    ]
    changes = []
    for key in dict.fromkeys((*found[0], *found[1])):
        one, other = found[0].get(key), found[1].get(key)
        change = None if one is None or other is None else other - one
        changes.append(MetricChange(name=key, base=one, head=other, change=change))
    return changes


def _is_figure(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _specs(base: Mapping[str, Any], head: Mapping[str, Any]) -> list[SpecChange]:
    found = [{pointer_of(path): value for path, value in _leaves(each)} for each in (base, head)]
    return [
        SpecChange(pointer=key, base=found[0].get(key), head=found[1].get(key))
        for key in dict.fromkeys((*found[0], *found[1]))
        if found[0].get(key) != found[1].get(key)
    ]


def _leaves(value: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values of an object and of its nested objects, each with its path."""
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _leaves(item, (*path, key))
        else:
            yield (*path, key), item
