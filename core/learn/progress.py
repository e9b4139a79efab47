"""How far a run is, as its watchers see it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ObjectiveKind = Literal["exact", "estimate"]


@dataclass(frozen=True, slots=True)
class Part:
    """Which of the runs of a job that makes several: number `number`, from 1, of `of`."""

    name: str
    number: int
    of: int
    #: What the run came to, once it has ended.
    outcome: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The `run` of the HTTP contract."""
        told = {"name": self.name, "number": self.number, "of": self.of}
        return told if self.outcome is None else told | {"outcome": self.outcome}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; of a job of several runs, `run` is the present one and `fraction` is that of the job."""

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
    #: At the end of a pass: writes a file from which the job can go on to the same result.
    checkpoint: Callable[[Path], None] | None = field(default=None, compare=False, repr=False)
    run: Part | None = None
    run_done: bool = False
    #: Before a run starts: the most memory that it will take at one time, on top of what is taken now.
    needed_bytes: int | None = None

    @property
    def event(self) -> Literal["pass", "run", "message"] | None:
        """What to record, for good, that this was; None when it is only a sign of life."""
        if self.run_done:
            return "run"
        return "pass" if self.pass_done else "message" if self.message else None

    def as_dict(self) -> dict[str, Any]:
        """The names of the HTTP contract."""
        told = {
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
        return told if self.run is None else told | {"run": self.run.as_dict()}
