"""Showing the progress of a job: a live line in a terminal or a notebook, else one line per pass."""

import shutil
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TextIO

from tagsmith.wire import Job, JobEvent, JobProgress

BAR_CELLS = 24


class ProgressDisplay:
    """Shows the events of one job. Use it as a context manager, so that the live line is left when showing ends."""

    def __init__(self, job: Job, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._live = self._out.isatty() or "ipykernel" in type(self._out).__module__
        self._name = job.kind if job.model is None else f"{job.kind} {job.model}"
        self._drawn = 0
        self._fraction = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._write("\n")
            self._drawn = 0

    def show(self, event: JobEvent | JobProgress) -> None:
        """Show an event."""
        if isinstance(event, JobProgress) or event.type in ("pass", "run"):
            if self._live:
                self._draw(event.data)
            elif isinstance(event, JobEvent):
                self._print(f"{self._name}  {progress_text(event.data)}")
        elif event.level != "info":
            self._print(f"{self._name}  ! {event.message}")
        elif event.type == "state" and not self._live:
            self._print(f"{self._name}  {event.data.get('state', event.message)}")

    def end(self, job: Job) -> None:
        """Show how the job ended."""
        if job.state == "succeeded":
            self._print(f"{self._name}  done in {job.worked_seconds:.1f} s{_outcome(job.result or {})}")
        elif self._live:
            self._print(f"{self._name}  {job.state}")

    def _draw(self, progress: Mapping[str, Any]) -> None:
        # Progress runs ahead of the recorded passes, which arrive in small batches. The bar never moves back.
        fraction = progress.get("fraction") or 0.0
        if fraction < self._fraction:
            return
        self._fraction = fraction
        filled = round(fraction * BAR_CELLS)
        line = f"{self._name}  {'━' * filled}{'─' * (BAR_CELLS - filled)} {fraction:4.0%}  {progress_text(progress)}"
        line = line[: shutil.get_terminal_size().columns - 1]
        self._write(f"\r{line}{' ' * (self._drawn - len(line))}")
        self._drawn = len(line)

    def _print(self, line: str) -> None:
        """Print a line in place of the live one."""
        self._write(f"\r{line}{' ' * (self._drawn - len(line))}\n" if self._drawn else f"{line}\n")
        self._drawn = 0

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def progress_text(progress: Mapping[str, Any]) -> str:
    """The progress of a run in words: passes, objective, score, speed and time left, as far as they are known."""
    parts = []
    if run := progress.get("run"):
        parts.append(f"{run['name']} ({run['number']}/{run['of']})")
    if progress.get("pass"):
        parts.append(f"pass {progress['pass']}/{progress.get('passes')}")
    elif progress.get("phase"):
        parts.append(progress["phase"])
    if progress.get("objective") is not None:
        parts.append(f"objective {progress['objective']:,.1f}")
    if progress.get("dev"):
        parts.append(score_text(progress["dev"]))
    if progress.get("tokens_per_second"):
        parts.append(f"{progress['tokens_per_second'] / 1e6:.2f} M tokens/s")
    if progress.get("eta_seconds") is not None:
        minutes, seconds = divmod(round(progress["eta_seconds"]), 60)
        parts.append(f"{minutes}:{seconds:02} left")
    return "  ".join(parts)


def score_text(metrics: Mapping[str, Any]) -> str:
    """The score on a dev set: UAS of trees, F1 of spans where there are spans, else accuracy."""
    if metrics.get("uas") is not None:
        las = metrics.get("las")
        return f"dev UAS {metrics['uas']:.2f}" + ("" if las is None else f" LAS {las:.2f}")
    name, score = ("F1", metrics.get("f1")) if metrics.get("gold") else ("accuracy", metrics.get("accuracy"))
    return f"dev {name} {score:.2f}" if score is not None else ""


def _outcome(result: Mapping[str, Any]) -> str:
    parts = []
    if {"model", "version"} <= result.keys():
        parts.append(f": {result['model']}:{result['version']}")
    dev = (result.get("metrics") or {}).get("dev")
    if dev:
        # Relations are too many for a line.
        by_type = {} if dev.get("uas") is not None else dev.get("by_type") or {}
        types = ", ".join(f"{name} {score['f1']:.1f}" for name, score in by_type.items())
        parts.append(f"{score_text(dev)}{f' ({types})' if types else ''}")
    if result.get("active_features") is not None:
        parts.append(f"{result['active_features']:,} features")
    if result.get("size_bytes"):
        parts.append(f"{result['size_bytes'] / 1e6:.1f} MB")
    return "  ".join(parts)
