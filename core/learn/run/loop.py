"""The pass loop for all trainers, with evaluation, early stopping, time budget, checkpoints and progress.

The loop is a generator of `Progress` and yields several times per second. The caller stops it at any yield by closing
it. The input is a compiled corpus; `pipeline.train` covers the whole path from a corpus to a model.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tagsmith.core.evaluate.segmentation import evaluate
from tagsmith.core.evaluate.spans import Metrics
from tagsmith.core.evaluate.trees import TreeMetrics
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.run import checkpoint
from tagsmith.core.learn.run.progress import ObjectiveKind, Progress
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.learn.run.stopping import FlatStop, StopReason, is_flat
from tagsmith.core.learn.trainers.base import Diverged, Report, State, Trainer
from tagsmith.core.learn.weights.rows import census
from tagsmith.core.learn.weights.scoring import Weights

#: A run has diverged if its objective is this many times that of all weights zero. Short runs with a bold learning rate
#: can end above 1; runs that diverge end at thousands.
WORSE_THAN_NOTHING = 10


@dataclass(frozen=True, eq=False)
class Learned:
    """The result of a run."""

    weights: Weights
    objective: float
    active_features: int
    seconds: float
    passes: int
    #: The pass that these weights come from: the last one, or the best one if the stop rule keeps it.
    best_pass: int
    stop_reason: StopReason
    dev: Metrics | TreeMetrics | None
    #: One point per pass: pass, seconds, objective and its kind, active features, dev score.
    curve: list[dict[str, Any]]
    #: Other results of the trainer, for the metrics of the version.
    findings: dict[str, Any]

    @property
    def score(self) -> float | None:
        """The score that runs are compared by."""
        return None if self.dev is None else self.dev.value


@dataclass
class _Run:
    """The state of the loop between passes. A checkpoint contains all of it except the problem."""

    spec: Learning
    trainer: Trainer
    problem: Problem
    dev: Problem | None
    state: State
    carried: Sequence[Mapping[str, Any]] = ()
    seconds: float = 0.0
    passes: int = 0
    objective: float | None = None
    objective_kind: ObjectiveKind = "estimate"
    change: float = np.inf
    active: int | None = None
    metrics: Metrics | TreeMetrics | None = None
    best_score: float = -1.0
    best_pass: int = 0
    best: Weights | None = None
    curve: list[dict[str, Any]] = field(default_factory=list)

    def finish_pass(self, report: Report, weights: Weights) -> Generator[Progress, None, None]:
        """Record a pass: objective, active features, dev score."""
        self.active, norm1, norm2 = census(weights.values)
        penalty = self.trainer.penalty(weights, norm1, norm2)
        kind: ObjectiveKind = "estimate"
        if report.objective is not None:
            objective, kind = report.objective, "exact"
        elif self.spec.objective == "exact":
            objective, kind = penalty, "exact"
            for part in weights.loss(self.problem):
                objective += part
                yield self.progress(Report("train", report.pass_number - 1, 1.0))
        else:
            objective = (report.loss or 0.0) + penalty
        if self.objective:
            self.change = abs(objective - self.objective) / abs(self.objective)
        _refuse_diverged(objective, report.pass_number)
        self.passes, self.objective, self.objective_kind = report.pass_number, objective, kind
        score = self._score(weights)
        self.curve.append(
            {
                "pass": self.passes,
                "seconds": round(self.seconds, 4),
                "objective": objective,
                "objective_kind": kind,
                "active_features": self.active,
                "dev_score": score,
            }
        )

    def _score(self, weights: Weights) -> float | None:
        if self.dev is None:
            return None
        self.metrics = _evaluate(weights, self.dev)
        score = self.metrics.value
        if self.passes > self.spec.trainer.selection_passes and score > self.best_score:
            self.best_score, self.best_pass = score, self.passes
            self.best = weights if self.spec.stop.keeps_best else None
        return score

    def reason_to_stop(self) -> StopReason | None:
        stop, trainer = self.spec.stop, self.spec.trainer
        if self.passes >= trainer.total_passes:
            return "passes"
        # Ignore the selection passes: the run must reach the stage that learns from the selected features.
        curve = self.curve[trainer.selection_passes :]
        if isinstance(stop, FlatStop):
            if is_flat(curve, stop.window, stop.deviation):
                return "flat"
        elif (
            stop.patience and self.dev is not None and curve and self.passes - self.best_pass >= stop.patience
        ):
            return "patience"
        if stop.max_seconds and self.seconds >= stop.max_seconds:
            return "max_seconds"
        if (
            self.objective_kind == "estimate"
            and trainer.tolerance
            and len(curve) > 1
            and self.change < trainer.tolerance
        ):
            return "tolerance"
        return None

    def progress(self, report: Report) -> Progress:
        passes = self.spec.trainer.total_passes
        done = report.pass_number + (0.0 if report.pass_done else report.fraction)
        rate = done / self.seconds if self.seconds > 0 else None
        return Progress(
            phase=report.phase,
            pass_number=report.pass_number,
            passes=passes,
            fraction=min(done / passes, 1.0),
            objective=self.objective,
            objective_kind=self.objective_kind,
            active_features=self.active,
            dev=self.metrics.as_dict() if self.metrics else None,
            seconds=self.seconds,
            tokens_per_second=round(rate * self.problem.words, 1) if rate else None,
            eta_seconds=round((passes - done) / rate, 3) if rate else None,
            pass_done=report.pass_done,
            message=report.message or (f"pass {report.pass_number} of {passes}" if report.pass_done else ""),
            checkpoint=self.save if report.pass_done else None,
        )

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        kept = {name: getattr(self, name) for name in checkpoint.KEPT}
        arrays = {f"state.{name}": array for name, array in self.state.items()}
        if self.best is not None:
            arrays["best"] = self.best.values
        checkpoint.save(path, kept, arrays, self.carried)

    def restore(self, path: Path) -> None:
        """Restore the state from a checkpoint."""
        fixed = {name: array for name, array in self.state.items() if not self.trainer.varies(name)}
        kept, arrays = checkpoint.load(path, {f"state.{name}": array for name, array in fixed.items()})
        for name, value in kept.items():
            setattr(self, name, value)
        for name, array in fixed.items():
            array[...] = arrays[f"state.{name}"]
        for key in arrays:
            name = key.removeprefix("state.")
            if key.startswith("state.") and self.trainer.varies(name):
                self.state[name] = arrays[key].copy()
        if "best" in arrays:
            self.best = Weights(self.problem, arrays["best"].copy())


def learn(
    spec: Learning,
    problem: Problem,
    dev: Problem | None,
    *,
    start: Weights | None = None,
    resume: Path | None = None,
    carried: Sequence[Mapping[str, Any]] = (),
) -> Generator[Progress, None, Learned]:
    """Run a trainer on a compiled corpus. `carried` is written to each checkpoint, for jobs of several runs."""
    problem = problem.by_token()
    trainer = spec.trainer.make(spec.threads)
    run = _Run(spec, trainer, problem, dev, trainer.start(problem, start), carried)
    if resume is not None:
        run.restore(resume)
        passes, message = spec.trainer.total_passes, f"resumed after pass {run.passes}"
        yield Progress("train", run.passes, passes, run.passes / passes, run.objective, message=message)
    reason = yield from _passes(run)
    return (yield from _finished(run, reason))


def _passes(run: _Run) -> Generator[Progress, None, StopReason]:
    """Run the trainer until there is a reason to stop. Only the time spent in the trainer counts as training time."""
    reports = run.trainer.passes(run.problem, run.state, run.spec.seed)
    limit = run.spec.stop.max_seconds
    if run.passes and (reason := run.reason_to_stop()):
        return reason
    while True:
        began = perf_counter()
        report = next(reports, None)
        run.seconds += perf_counter() - began
        if report is None:
            return "converged"
        if report.pass_done:
            yield from run.finish_pass(report, run.trainer.weights(run.problem, run.state))
        yield run.progress(report)
        if report.pass_done and (reason := run.reason_to_stop()):
            return reason
        if limit is not None and run.seconds >= limit and report.phase == "train":
            return "max_seconds"


def _finished(run: _Run, reason: StopReason) -> Generator[Progress, None, Learned]:
    """Compute the exact objective and the final scores."""
    weights = run.best or run.trainer.weights(run.problem, run.state)
    active, norm1, norm2 = census(weights.values)
    objective = run.trainer.penalty(weights, norm1, norm2)
    passes = run.spec.trainer.total_passes
    for part in weights.loss(run.problem):
        objective += part
        yield Progress(
            "finish", run.passes, passes, 1.0, run.objective, active_features=active, seconds=run.seconds
        )
    _refuse_diverged(objective, run.passes)
    if run.spec.trainer.calibrated:
        _refuse_worse_than_nothing(objective, run.problem)
    metrics = None if run.dev is None else _evaluate(weights, run.dev)
    yield Progress("finish", run.passes, passes, 1.0, objective, "exact", active, seconds=run.seconds)
    return Learned(
        weights=weights,
        objective=objective,
        active_features=active,
        seconds=run.seconds,
        passes=run.passes,
        best_pass=run.best_pass if run.best is not None else run.passes,
        stop_reason=reason,
        dev=metrics,
        curve=run.curve,
        findings=run.trainer.findings(weights, run.state),
    )


def _refuse_diverged(objective: float, passes: int) -> None:
    if not math.isfinite(objective):
        raise Diverged(
            f"Training diverged: the objective is no longer a finite number after pass {passes}. Choose a smaller "
            "learning rate, or stronger regularisation."
        )


def _refuse_worse_than_nothing(objective: float, problem: Problem) -> None:
    """Refuse a model that is far worse than all weights zero, which give every labelling the same probability."""
    nothing = problem.log_labellings
    if objective > WORSE_THAN_NOTHING * nothing:
        raise Diverged(
            f"Training diverged: the objective is {objective:,.0f}, and {nothing:,.0f} without any training. Choose a "
            'smaller learning rate: leave `schedule.eta0` at "auto", or lower it.'
        )


def _evaluate(weights: Weights, dev: Problem) -> Metrics | TreeMetrics:
    if dev.gold_trees is not None:
        return dev.gold_trees.score(weights.decode(dev), dev.labels)
    return evaluate(dev.labels, dev.data.gold, weights.decode(dev), dev.data.offsets)
