"""The templates of a version: their sizes, from its file, and how they were selected, from its metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.templates import TemplateSize, template_sizes
from tagsmith.core.pipeline.experiments.template_plot import Row, svg_of_templates


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """One template of a version."""

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
    """How a trainer selected the templates that it kept."""

    path: list[dict[str, Any]]
    peak_instantiated: int | None
    instantiated_by_pass: list[int]


@dataclass(frozen=True, slots=True)
class TemplateReport:
    """The templates of a version: first those that it has, in spec order, then those that were dropped."""

    data: list[TemplateRow]
    selection: Selection | None
    next_cursor: str | None = None

    def svg(self) -> str:
        """Draw the templates as SVG."""
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


def of_version(model: SparseModel, metrics: Mapping[str, Any]) -> TemplateReport:
    """Build the report from the model and the metrics of a version."""
    ranked, selection = metrics.get("filter", {}).get("templates", []), metrics.get("selection")
    gains = {(each["name"], each["edge"]): each["gain"] for each in ranked}
    sizes = template_sizes(model)
    rows = [_row(size, gains.get((size.name, size.edge))) for size in sizes]
    named = {(size.name, size.edge) for size in sizes}
    for each in (*ranked, *metrics.get("dropped_templates", ())):
        key = (str(each["name"]), bool(each["edge"]))
        if key not in named:
            named.add(key)
            rows.append(_row(TemplateSize(*key, 0, 0, 0.0, 0), gains.get(key)))
    return TemplateReport(rows, None if selection is None else _selection(selection))


def _row(size: TemplateSize, gain: float | None) -> TemplateRow:
    return TemplateRow(
        name=size.name,
        edge=size.edge,
        # A model always contains the template of the label pair alone if its spec has it, even with all weights zero.
        kept=size.active_features > 0,
        norm=size.norm,
        active_features=size.active_features,
        attributes=size.attributes,
        size_bytes=size.size_bytes,
        gain=gain,
    )


def _selection(metrics: Mapping[str, Any]) -> Selection:
    return Selection(
        path=list(metrics.get("path", ())),
        peak_instantiated=metrics.get("peak_instantiated"),
        instantiated_by_pass=list(metrics.get("instantiated_by_pass", ())),
    )
