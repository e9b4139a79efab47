"""The templates of a model as SVG: a bar for each norm and, if training selects templates, the steps that keep each.

The style is that of the learning curves (`plot.py`). A panel below the bars shows the number of instantiated features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tagsmith.core.pipeline.experiments.plot import (
    COLOURS,
    GRID,
    LEFT,
    PANEL_HEIGHT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Box,
    document,
    figure_of,
    panel,
    rule,
    text_at,
)

ROW_HEIGHT = 17
#: Maximum number of rows in a picture; more would not be readable.
MAX_ROWS = 80
#: Space for names and for numbers beside the bars. Longer names are shortened in the middle.
NAME_WIDTH, FIGURE_WIDTH, NAME_LETTERS = 300, 150, 38
#: Maximum width of one cell of the path.
CELL_WIDTH = 16
#: Bottom margin of the panel, which holds the tick labels and the axis title.
BOTTOM = 46


@dataclass(frozen=True, slots=True)
class Row:
    """A template: its norm, its number of features, and the steps of the path at which it was kept."""

    name: str
    norm: float
    features: int
    kept_at: frozenset[int] = frozenset()


def svg_of_templates(rows: Sequence[Row], steps: Sequence[str], instantiated: Sequence[int]) -> str:
    """Draw templates, largest norm first. `steps` names the columns of the path; empty means no path."""
    ordered = sorted(rows, key=lambda row: (-row.norm, -len(row.kept_at)))
    shown, left = ordered[:MAX_ROWS], len(ordered) - MAX_ROWS
    cells = min(CELL_WIDTH, 320 / len(steps)) if steps else 0.0
    bars = WIDTH - RIGHT - NAME_WIDTH - FIGURE_WIDTH - cells * len(steps)
    longest = max((row.norm for row in shown), default=0.0) or 1.0
    parts = [
        text_at(NAME_WIDTH - 8, 18, "template", "end"),
        text_at(NAME_WIDTH, 18, "norm of its weights, and how many they are", "start"),
    ]
    if steps:
        parts.append(text_at(WIDTH - RIGHT, 18, f"kept at {steps[0]} to {steps[-1]}", "end"))
    for number, row in enumerate(shown):
        top = TOP + number * ROW_HEIGHT
        parts += _bar(row, top, bars * row.norm / longest)
        parts += _path(row, len(steps), cells, top)
    height: float = TOP + len(shown) * ROW_HEIGHT + 12
    if left > 0:
        parts.append(text_at(NAME_WIDTH - 8, height + 4, f"and {left} more", "end"))
        height += ROW_HEIGHT
    if instantiated:
        parts.append(_instantiated(instantiated, height))
        height += PANEL_HEIGHT
    return document("Templates: norms of their weights", height, parts)


def _bar(row: Row, top: float, width: float) -> list[str]:
    middle = top + ROW_HEIGHT / 2 + 4
    figures = f"{row.norm:.3g}  ({figure_of(row.features)})" if row.features else "dropped"
    bar = (
        f'<rect x="{NAME_WIDTH}" y="{top + 3:.1f}" width="{width:.1f}" height="{ROW_HEIGHT - 6}" '
        f'fill="{COLOURS[0]}"/>'
    )
    return [
        text_at(NAME_WIDTH - 8, middle, _cut(row.name), "end"),
        bar,
        text_at(NAME_WIDTH + width + 6, middle, figures, "start"),
    ]


def _path(row: Row, steps: int, width: float, top: float) -> list[str]:
    first = WIDTH - RIGHT - steps * width
    return [
        f'<rect x="{first + step * width:.1f}" y="{top + 2:.1f}" width="{max(width - 1, 1):.1f}" '
        f'height="{ROW_HEIGHT - 4}" fill="{COLOURS[2] if step in row.kept_at else GRID}"/>'
        for step in range(steps)
    ]


def _instantiated(counts: Sequence[int], top: float) -> str:
    """Draw the number of features in memory per pass."""
    pairs = [(float(number), float(count)) for number, count in enumerate(counts, start=1)]
    across = Axis.of("passes", [x for x, _ in pairs], from_zero=True)
    up = Axis.of("features instantiated", [y for _, y in pairs], from_zero=True)
    box = Box(LEFT, top + TOP, WIDTH - LEFT - RIGHT, PANEL_HEIGHT - TOP - BOTTOM)
    return rule(0, top + 4, WIDTH, top + 4, GRID) + panel([(0, pairs)], across, up, box, "clip-instantiated")


def _cut(name: str) -> str:
    half = NAME_LETTERS // 2
    return name if len(name) <= NAME_LETTERS else f"{name[:half]}…{name[1 - half :]}"
