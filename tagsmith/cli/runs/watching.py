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

    def update(self, progress: Mapping[str, Any], *, pass_done: bool = False, restart: bool = False) -> None:
        """Take the progress of a run. Live progress is ahead of recorded passes, so the bar never moves back.

        With `restart` it begins again, for the next part of the work.
        """
        if restart:
            self._printed = 0.0
        before = 0.0 if restart else self._state.get("fraction") or 0.0
        news = {key: value for key, value in progress.items() if value is not None}
        if (news.get("fraction") or 0.0) >= before:
            self._state |= news
        if pass_done and (score := output.score_of(progress.get("dev"))) is not None:
            self._score_name = score[0]
            self._scores.append(score[1])
        fraction = self._state.get("fraction") or 0.0
        # Recorded passes can arrive after the last live progress: the line of the end is printed once.
        if self._live is None and pass_done and fraction >= min(self._printed + STEP, 1.0) > self._printed:
            self._printed = fraction
            self._console.print(
                "   ".join([f"  {self._head()}", *self._facts()]), soft_wrap=True, markup=False
            )

    def _head(self) -> str:
        state = self._state
        parts = []
        if run := state.get("run"):
            parts.append(f"{run['name']} ({run['number']}/{run['of']})")
        if passes := state.get("passes"):
            parts.append(f"pass {state.get('pass') or 0:>{len(str(passes))}}/{passes}")
        return "  ".join(parts) or self._told

    def _facts(self) -> list[str]:
        """What is known of the run, in the order of the line."""
        state = self._state
        facts = []
        if state.get("objective") is not None:
            facts.append(f"objective {state['objective']:,.0f}")
        if (score := output.score_of(state.get("dev"))) is not None:
            facts.append(f"dev {score[0]} {score[1]:.1f}")
        if state.get("tokens_per_second"):
            facts.append(output.rate(state["tokens_per_second"]))
        if (left := state.get("eta_seconds")) is not None and self._live is not None:
            facts.append(f"{output.duration(left)} left")
        return facts

    def _drawn(self) -> "RenderableType":
        from rich.spinner import Spinner  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        fraction = self._state.get("fraction") or 0.0
        if not fraction and not self._state.get("objective"):
            return Spinner("dots", text=f" {self._told or 'waiting for a worker'}", style="cyan")
        head, facts, spark = self._head(), self._facts(), output.sparkline(self._scores)
        fixed = len(f"  {head}") + 2 + BAR_WIDTH + (2 + len(spark) if spark else 0)
        # A narrow terminal shows fewer facts; the score is the last to go.
        for dispensable in ("tokens/s", "objective", "left"):
            if fixed + sum(len(each) + 3 for each in facts) < self._console.width:
                break
            facts = [each for each in facts if dispensable not in each]
        full = round(fraction * BAR_WIDTH)
        line = Text(f"  {head}  ", no_wrap=True, overflow="crop")
        line.append("━" * full, "green" if fraction >= 1 else "cyan")
        line.append("━" * (BAR_WIDTH - full), "bright_black")
        for each in facts:
            line.append(f"   {each}", "bold" if each.startswith("dev") else "")
        return line.append(f"  {spark}", "cyan") if spark else line
