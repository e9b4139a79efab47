"""The live line of a training run: a bar, the objective, the score on dev and its curve.

Jobs of a server and local runs report progress in the same form. Without a terminal, a few lines are printed instead.
"""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tagsmith.cli import output

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

#: How often the line is drawn, per second.
REFRESH = 10
BAR_WIDTH = 24
#: Without a terminal: the fraction between two printed lines.
STEP = 0.2


class ProgressLine:
    """Shows the progress of a run while it is used as a context manager."""

    def __init__(self, *, live: bool, stderr: bool) -> None:
        self._console: Console = output.console(stderr=stderr)
        self._live: Live | None = None
        self._wanted = live and self._console.is_terminal
        self._state: dict[str, Any] = {}
        self._scores: list[float] = []
        self._score_name = "F1"
        self._printed = 0.0
        self._told = ""
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self._wanted:
            from rich.live import Live  # noqa: PLC0415

            self._live = Live(
                get_renderable=self._drawn, console=self._console, refresh_per_second=REFRESH, transient=True
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the line was made."""
        return time.monotonic() - self._began

    def message(self, text: str, *, warning: bool = False) -> None:
        """Show what the run says: warnings stay, other messages are replaced by the next."""
        if warning:
            self._console.print(f"  [yellow]![/] {output.escaped(text)}", soft_wrap=True)
        self._told = text

    def update(self, progress: Mapping[str, Any], *, pass_done: bool = False) -> None:
        """Take the progress of a run. Live progress is ahead of recorded passes, so the bar never moves back."""
        before = self._state.get("fraction") or 0.0
        news = {key: value for key, value in progress.items() if value is not None}
        if (news.get("fraction") or 0.0) >= before:
            self._state |= news
        if pass_done and (score := output.score_of(progress.get("dev"))) is not None:
            self._score_name = score[0]
            self._scores.append(score[1])
        fraction = self._state.get("fraction") or 0.0
        if self._live is None and pass_done and (fraction >= self._printed + STEP or fraction >= 1.0):
            self._printed = fraction
            self._console.print("  " + "   ".join(self._parts()), soft_wrap=True)

    def _parts(self) -> list[str]:
        state = self._state
        parts = []
        if run := state.get("run"):
            parts.append(f"{output.escaped(run['name'])} ({run['number']}/{run['of']})")
        if state.get("passes"):
            passes = state["passes"]
            parts.append(f"pass {state.get('pass') or 0:>{len(str(passes))}}/{passes}")
        if state.get("objective") is not None:
            parts.append(f"objective {state['objective']:,.0f}")
        if (score := output.score_of(state.get("dev"))) is not None:
            parts.append(f"dev {score[0]} [bold]{score[1]:.1f}[/]")
        if state.get("tokens_per_second"):
            parts.append(output.rate(state["tokens_per_second"]))
        return parts

    def _drawn(self) -> "RenderableType":
        from rich.progress_bar import ProgressBar  # noqa: PLC0415
        from rich.spinner import Spinner  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415

        if not self._state.get("fraction") and not self._state.get("objective"):
            return Spinner("dots", text=f" {self._told or 'waiting for a worker'}", style="cyan")
        parts = self._parts()
        if (left := self._state.get("eta_seconds")) is not None:
            parts.append(f"{output.duration(left)} left")
        if spark := output.sparkline(self._scores):
            parts.append(f"[cyan]{spark}[/]")
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(no_wrap=True)
        line.add_column(no_wrap=True)
        line.add_column(no_wrap=True, overflow="crop")
        head, *rest = parts or [""]
        bar = ProgressBar(total=1.0, completed=self._state.get("fraction") or 0.0, width=BAR_WIDTH)
        line.add_row(f"  {head}", bar, "   ".join(rest))
        return line
