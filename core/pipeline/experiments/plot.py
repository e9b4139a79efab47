"""Learning curves as SVG: score and objective, against passes and against seconds of training.

This module writes the SVG itself, so the service needs no plotting library. The plot has no background and uses medium
greys, so it is readable on white and on black.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard
from xml.sax.saxutils import escape

WIDTH, PANEL_HEIGHT = 960, 300
#: Margins of a panel. The left and the bottom margin hold the tick labels and the axis title.
LEFT, RIGHT, TOP, BOTTOM = 76, 16, 34, 46
LEGEND_LINE = 20
#: Distinct from each other, from black and from white. Further curves reuse the colours with dashed lines.
COLOURS = (
    "#3b82f6", "#ef4444", "#10b981", "#f59e0b", "#8b5cf6", "#ec4899", "#0ea5a4", "#84a314", "#a16207", "#6b7fd7",
)  # fmt: skip
DASHES = ("", "7 3", "2 3", "9 3 2 3")
GREY, GRID = "#808080", "#80808040"
#: An axis whose values span more than this factor is logarithmic.
LOG_FROM = 25.0
#: A curve with at most this many points shows a dot for each.
DOTS = 40
#: The fraction of scores that may fall below the panel. Without it the low scores of first passes compress the rest.
BELOW = 0.08


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """A name and one point per pass, as in `Learned.curve`."""

    name: str
    points: Sequence[Mapping[str, Any]]

    def pairs(self, x: str, y: str) -> list[tuple[float, float]]:
        """Return the points at which both values are known and finite."""
        found = [(point.get(x), point.get(y)) for point in self.points]
        return [(float(a), float(b)) for a, b in found if _is_number(a) and _is_number(b)]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its title, its range, and the mapping of values to positions."""

    title: str
    low: float
    high: float
    log: bool = False

    @classmethod
    def of(
        cls, title: str, values: Sequence[float], *, from_zero: bool = False, may_log: bool = False
    ) -> "Axis":
        """Create an axis that contains all values."""
        low, high = min(values, default=0.0), max(values, default=1.0)
        if may_log and low > 0 and high / low > LOG_FROM:
            return cls(title, low / 1.1, high * 1.1, log=True)
        low = min(low, 0.0) if from_zero else low
        room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return cls(title, low if from_zero else low - room, high + room)

    def place(self, value: float) -> float:
        """Return the position of a value: 0 at the low end, 1 at the high end."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Return round values for the ticks, usually four to eight."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first <= 3 else (1,)
            every = max(1, (last - first) // 8) if steps == (1,) else 1
            found = [m * 10.0**k for k in range(first, last + 1, every) for m in steps]
        else:
            step = _round_step((self.high - self.low) / 5)
            first_tick = math.ceil(self.low / step - 1e-9)
            found = [i * step for i in range(first_tick, math.floor(self.high / step + 1e-9) + 1)]
        return [tick for tick in found if self.low <= tick <= self.high]


@dataclass(frozen=True, slots=True)
class Box:
    """The rectangle of a panel's plot area in the picture."""

    x: float
    y: float
    width: float
    height: float


def svg_of(curves: Sequence[Curve], score: str) -> str:
    """Draw curves in panels with one legend. `score` names the score and where it was measured."""
    width = WIDTH / 2
    legend = _legend(curves)
    top = legend[1] + 8
    rows = [("dev_score", score)] if any(curve.pairs("pass", "dev_score") for curve in curves) else []
    rows.append(("objective", "objective"))
    parts = [legend[0]]
    for row, (y, title) in enumerate(rows):
        for column, (x, unit) in enumerate((("pass", "passes"), ("seconds", "seconds of training"))):
            box = Box(
                column * width + LEFT,
                top + row * PANEL_HEIGHT + TOP,
                width - LEFT - RIGHT,
                PANEL_HEIGHT - TOP - BOTTOM,
            )
            parts.append(_panel(curves, (x, unit), (y, title), box, f"clip-{row}-{column}"))
    return document(f"Learning curves: {score} and objective", top + len(rows) * PANEL_HEIGHT, parts)


def document(title: str, height: float, parts: Sequence[str]) -> str:
    """Return the complete SVG document. All documents have the same width."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
        f'height="{height:g}" font-family="system-ui, sans-serif" font-size="12" fill="{GREY}" role="img">\n'
        f"<title>{escape(title)}</title>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(curves: Sequence[Curve], x: tuple[str, str], y: tuple[str, str], box: Box, clip: str) -> str:
    drawn = [(number, curve.pairs(x[0], y[0])) for number, curve in enumerate(curves)]
    xs = [a for _, pairs in drawn for a, _ in pairs]
    ys = [b for _, pairs in drawn for _, b in pairs]
    ends = [pairs[-1][0] for _, pairs in drawn if pairs]
    # Seconds are logarithmic when the slowest run took far longer than the fastest, which else would shrink to a dot.
    spread = x[0] == "seconds" and min(ends, default=0) > 0 and max(ends) / min(ends) > LOG_FROM
    across = (
        Axis.of(x[1], [a for a in xs if a > 0], may_log=True) if spread else Axis.of(x[1], xs, from_zero=True)
    )
    up = Axis.of(y[1], _upper(ys) if y[0] == "dev_score" else ys, may_log=y[0] == "objective")
    return panel(drawn, across, up, box, clip)


def panel(
    drawn: Sequence[tuple[int, Sequence[tuple[float, float]]]], across: Axis, up: Axis, box: Box, clip: str
) -> str:
    """Draw the axes and the numbered lines of a panel. `clip` must be a unique id in the picture."""
    lines = [_line(number, _placed(pairs, across, up, box), clip) for number, pairs in drawn if pairs]
    frame = f'<clipPath id="{clip}"><rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"/>'
    return "\n".join([f"{frame}</clipPath>", *_across(across, box), *_up(up, box), *lines])


def _upper(scores: Sequence[float]) -> list[float]:
    """Return the scores without the lowest few."""
    return sorted(scores)[int(BELOW * len(scores)) :]


def _placed(
    pairs: Sequence[tuple[float, float]], across: Axis, up: Axis, box: Box
) -> list[tuple[float, float]]:
    kept = [(a, b) for a, b in pairs if not across.log or a > 0]
    return [(box.x + across.place(a) * box.width, box.y + (1 - up.place(b)) * box.height) for a, b in kept]


def _line(number: int, places: Sequence[tuple[float, float]], clip: str) -> str:
    colour = COLOURS[number % len(COLOURS)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    line = f'<polyline points="{points}" fill="none" {_stroke(number)} stroke-linejoin="round"/>'
    dots = ""
    if len(places) <= DOTS:
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" fill="{colour}"/>' for x, y in places)
    return f'<g clip-path="url(#{clip})">{line}{dots}</g>'


def _stroke(number: int) -> str:
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="1.8"{dashed}'


def _across(axis: Axis, box: Box) -> list[str]:
    bottom = box.y + box.height
    parts = [rule(box.x, bottom, box.x + box.width, bottom, GREY)]
    for tick in axis.ticks():
        x = box.x + axis.place(tick) * box.width
        parts += [rule(x, bottom, x, bottom + 4, GREY), text_at(x, bottom + 17, figure_of(tick), "middle")]
    return [*parts, text_at(box.x + box.width / 2, bottom + 36, axis.title, "middle")]


def _up(axis: Axis, box: Box) -> list[str]:
    parts = [rule(box.x, box.y, box.x, box.y + box.height, GREY)]
    for tick in axis.ticks():
        y = box.y + (1 - axis.place(tick)) * box.height
        parts += [
            rule(box.x, y, box.x + box.width, y, GRID),
            text_at(box.x - 7, y + 4, figure_of(tick), "end"),
        ]
    return [*parts, text_at(box.x - 7, box.y - 12, axis.title, "start")]


def rule(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def text_at(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _legend(curves: Sequence[Curve]) -> tuple[str, float]:
    """Return the legend and its height. All columns are as wide as the longest name."""
    longest = max((len(curve.name) for curve in curves), default=0)
    width = 44 + 7.2 * longest
    columns = max(1, int((WIDTH - LEFT) / width))
    parts = []
    for number, curve in enumerate(curves):
        x, y = LEFT + number % columns * width, 16 + number // columns * LEGEND_LINE
        parts.append(f'<line x1="{x:.1f}" y1="{y}" x2="{x + 24:.1f}" y2="{y}" {_stroke(number)}/>')
        parts.append(text_at(x + 30, y + 4, curve.name, "start"))
    return "\n".join(parts), 8 + LEGEND_LINE * math.ceil(len(curves) / columns)


def figure_of(value: float) -> str:
    """Format the value of a tick for people."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6 or abs(value) < 1e-3:
        return f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return f"{value:,.10g}"


def _round_step(least: float) -> float:
    """Return the smallest value not below `least` that is 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= least * 0.999)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)
