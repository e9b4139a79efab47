"""What people read: tables, colours, ages, short ids, sparklines. Programs get JSON."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tagsmith.cli.errors import Shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

BARS = "▁▂▃▄▅▆▇█"
#: Points of a sparkline: few enough for a line of 80 characters.
SPARK_POINTS = 12
SHORT_ID = 6
#: Wide enough that nothing is cut when output goes to a file.
FILE_WIDTH = 10_000
_SCORE_NAMES = {"f1": "F1", "uas": "UAS"}

STATE_STYLES = {
    "succeeded": "green",
    "failed": "red",
    "cancelled": "yellow",
    "running": "cyan",
    "queued": "dim",
    "paused": "yellow",
    "pausing": "yellow",
    "cancelling": "yellow",
}


def console(*, stderr: bool = False) -> "Console":
    """Return a console. Without a terminal, or with NO_COLOR, it writes no colours and cuts nothing."""
    from rich.console import Console  # noqa: PLC0415

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else FILE_WIDTH
    return Console(
        stderr=stderr,
        width=width,
        highlight=False,
        markup=True,
        emoji=False,
        soft_wrap=False,
        no_color=bool(os.environ.get("NO_COLOR")) or None,
    )


def say(text: str = "", *, stderr: bool = False) -> None:
    """Print a line with rich markup; long lines are not wrapped by us."""
    console(stderr=stderr).print(text, soft_wrap=True)


def escaped(text: object) -> str:
    """Return text that contains no markup."""
    from rich.markup import escape  # noqa: PLC0415

    return escape(str(text))


def print_error(error: Shown) -> None:
    """Print an error: a red sentence, and the places below it."""
    say(f"[red]{escaped(error.message)}[/]", stderr=True)
    for place in error.places:
        say(f"  {escaped(place)}", stderr=True)


def print_json(value: Any) -> None:
    """Print JSON as the API writes it. Models of the wire are written with the fields that the server sent."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def plain(value: Any) -> Any:
    """Return a value as plain data."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = (), empty: str = ""
) -> None:
    """Print aligned columns. `right` names the columns of numbers; `empty` is printed if there are no rows."""
    from rich.table import Table  # noqa: PLC0415

    rows = list(rows)
    if not rows:
        say(f"[dim]{empty}[/]")
        return
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="dim",
        show_header=any(map(str.strip, headers)),
    )
    last = headers[-1]
    for header in headers:
        justify: Any = "right" if header in right else "left"
        # The last column takes what is left and is folded; the others are never cut.
        table.add_column(header, justify=justify, no_wrap=header != last, overflow="fold")
    for row in rows:
        table.add_row(*row)
    target = console()
    with target.capture() as capture:
        target.print(table)
    # Cells are padded to the width of their column, also the last one of a line.
    for line in capture.get().splitlines():
        sys.stdout.write(f"{line.rstrip()}\n")


def short_id(identifier: str) -> str:
    """Return the part of an id that is shown and accepted."""
    return identifier[-SHORT_ID:]


def when(time: datetime | str | None, *, dates: bool = False) -> str:
    """Return how long ago something was, or its date."""
    if time is None:
        return ""
    at = datetime.fromisoformat(time) if isinstance(time, str) else time
    if dates:
        return at.astimezone().strftime("%Y-%m-%d %H:%M")
    seconds = (datetime.now(UTC) - at.astimezone(UTC)).total_seconds()
    for limit, unit, name in (
        (60, 1, "s"),
        (3600, 60, "min"),
        (86_400, 3600, "h"),
        (86_400 * 60, 86_400, "d"),
    ):
        if seconds < limit:
            return "just now" if seconds < 1 else f"{int(seconds // unit)} {name} ago"
    return at.astimezone().strftime("%Y-%m-%d")


def duration(seconds: float | None) -> str:
    """Return a time span for people."""
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02} min"


def size(count: int) -> str:
    """Return a number of bytes for people."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def counted(count: int, noun: str) -> str:
    """Write a number and what it counts: `1 column`, `2,000 sentences`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def columns(count: int) -> str:
    """Return what a token has: `2 columns`, or named attributes."""
    return counted(count, "column") if count else "named attributes"


def rate(per_second: float) -> str:
    """Return a rate of tokens for people."""
    if per_second >= 1e6:
        return f"{per_second / 1e6:.1f} M tokens/s"
    return f"{per_second / 1e3:.0f} k tokens/s" if per_second >= 1e4 else f"{per_second:,.0f} tokens/s"


def sparkline(values: Sequence[float]) -> str:
    """Draw values as small bars, from the lowest to the highest of them."""
    if len(values) < 2:
        return ""
    if len(values) > SPARK_POINTS:
        step = (len(values) - 1) / (SPARK_POINTS - 1)
        values = [values[round(i * step)] for i in range(SPARK_POINTS)]
    low, high = min(values), max(values)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in values)


def small_bar(fraction: float, width: int = 5) -> str:
    """Draw a fraction as a short bar."""
    full = round(max(0.0, min(1.0, fraction)) * width)
    return "█" * full + "░" * (width - full)


def state(name: str) -> str:
    """Return the state of a job in its colour."""
    style = STATE_STYLES.get(name, "")
    return f"[{style}]{name}[/]" if style else name


def score_of(metrics: dict[str, Any] | None) -> tuple[str, float] | None:
    """Return the name and the value of the score that runs are compared by: F1 of spans, accuracy of tokens, or UAS."""
    name = (metrics or {}).get("score", "f1")
    value = (metrics or {}).get(name)
    return None if value is None else (score_name(name), float(value))


def score_name(name: str) -> str:
    """Return the name of a score as people write it."""
    return _SCORE_NAMES.get(name, name)


def types_of(metrics: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the scores of each type, most frequent first."""
    found = (metrics or {}).get("by_type") or (metrics or {}).get("types") or {}
    return dict(
        sorted(found.items(), key=lambda item: -int(item[1].get("gold") or item[1].get("support") or 0))
    )


def styled(text: str, style: str) -> "Text":
    """Return text in a style, with no markup in it."""
    from rich.text import Text  # noqa: PLC0415

    return Text(text, style=style)
