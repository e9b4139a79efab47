"""The progress of a run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ObjectiveKind = Literal["exact", "estimate"]


@dataclass(frozen=True, slots=True)
class Part:
    """The position of a run in a job of several runs: run `number` of `of`, counted from 1."""

    name: str
    number: int
    of: int
    #: The result of the run, once it has ended.
    outcome: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the `run` object of the HTTP contract."""
        fields = {"name": self.name, "number": self.number, "of": self.of}
        return fields if self.outcome is None else fields | {"outcome": self.outcome}


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run. In a job of several runs, `run` is the current one and `fraction` is for the whole job."""

    phase: Literal["compile", "calibrate", "train", "finish"]
    pass_number: int = 0
    passes: int = 0
    fraction: float = 0.0
    objective: float | None = None
    objective_kind: ObjectiveKind = "estimate"
    active_features: int | None = None
    dev: dict[str, Any] | None = None
    seconds: float = 0.0
    tokens_per_second: float | None = None
    eta_seconds: float | None = None
    pass_done: bool = False
    message: str = ""
    #: At the end of a pass: writes a file from which the job can resume and reach the same result.
    checkpoint: Callable[[Path], None] | None = field(default=None, compare=False, repr=False)
    run: Part | None = None
    run_done: bool = False
    #: Before a run starts: its estimated peak memory, in addition to the current memory of the process.
    needed_bytes: int | None = None

    @property
    def event(self) -> Literal["pass", "run", "message"] | None:
        """The kind of event to record; None if there is nothing to record."""
        if self.run_done:
            return "run"
        return "pass" if self.pass_done else "message" if self.message else None

    def as_dict(self) -> dict[str, Any]:
        """Return the progress with the field names of the HTTP contract."""
        fields = {
            "phase": self.phase,
            "pass": self.pass_number,
            "passes": self.passes,
            "fraction": round(self.fraction, 6),
            "objective": self.objective,
            "objective_kind": self.objective_kind,
            "active_features": self.active_features,
            "dev": self.dev,
            "seconds": round(self.seconds, 4),
            "tokens_per_second": self.tokens_per_second,
            "eta_seconds": self.eta_seconds,
        }
        return fields if self.run is None else fields | {"run": self.run.as_dict()}
