"""The templates of a version: what its file has of each, and what its metrics say of how they were chosen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.experiments.template_plot import Row, svg_of_templates
from core.model.model import Model
from core.model.templates import TemplateSize, template_sizes


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """What a template has in a version."""

    name: str
    edge: bool
    kept: bool
    norm: float
    active_features: int
    attributes: int
    size_bytes: int
    gain: float | None


@dataclass(frozen=True, slots=True)
class Selection:
    """How a trainer came to the templates that it kept."""

    path: list[dict[str, Any]]
    peak_instantiated: int | None
    instantiated_by_pass: list[int]


@dataclass(frozen=True, slots=True)
class Templates:
    """The templates of a version: those it has in the order of the spec, then those that were dropped."""

    data: list[TemplateRow]
    selection: Selection | None
    next_cursor: str | None = None

    def svg(self) -> str:
        """Draw them."""
        path = [] if self.selection is None else self.selection.path
        rows = [
            Row(
                row.name,
                row.norm,
                row.active_features,
                frozenset(i for i, step in enumerate(path) if row.name in step.get("kept", ())),
            )
            for row in self.data
        ]
        steps = [f"pass {step.get('pass', i)}" for i, step in enumerate(path, start=1)]
        counts = [] if self.selection is None else self.selection.instantiated_by_pass
        return svg_of_templates(rows, steps, counts)


def of_version(model: Model, metrics: Mapping[str, Any]) -> Templates:
    """Put together what is known of the templates of a version."""
    ranked, selection = _templates(metrics, "filter"), metrics.get("selection")
    gains = {(each["name"], each.get("edge", False)): each["gain"] for each in ranked}
    sizes = template_sizes(model)
    rows = [_row(size, True, gains.get((size.name, size.edge))) for size in sizes]
    named = {(size.name, size.edge) for size in sizes}
    for each in (*ranked, *_templates(metrics, "selection"), *metrics.get("dropped_templates", ())):
        key = (str(each["name"]), bool(each.get("edge", False)))
        if key not in named and not each.get("kept", False):
            named.add(key)
            rows.append(_row(TemplateSize(*key, 0, 0, 0.0, 0), False, gains.get(key)))
    return Templates(rows, None if selection is None else _selection(selection))


def _templates(metrics: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return list(metrics.get(kind, {}).get("templates", ()))


def _row(size: TemplateSize, kept: bool, gain: float | None) -> TemplateRow:
    return TemplateRow(
        size.name, size.edge, kept, size.norm, size.active_features, size.attributes, size.size_bytes, gain
    )


def _selection(metrics: Mapping[str, Any]) -> Selection:
    return Selection(
        path=list(metrics.get("path", ())),
        peak_instantiated=metrics.get("peak_instantiated"),
        instantiated_by_pass=list(metrics.get("instantiated_by_pass", ())),
    )
