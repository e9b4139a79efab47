"""The pass loop: one loop for every trainer, with evaluation, early stopping, time budget, checkpoints and progress.

It is a generator of `Progress`, and yields at least every fraction of a second: whoever drives it can stop at any yield
by closing it. What it returns in the end is the model and what is known of it.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np

from core.corpus.corpus import Corpus
from core.evaluate.spans import Metrics, evaluate
from core.learn import checkpoint, memory, warm_start
from core.learn.evaluation import Weights
from core.learn.problem import Compiled, Problem, compile_corpus
from core.learn.registry import trainer_of
from core.learn.rows import census
from core.learn.trainer import Report, State, Trainer
from core.model.build import build_model
from core.model.model import Model
from core.specs import DevFraction, TrainSpec

StopReason = Literal["passes", "patience", "max_seconds", "tolerance", "converged"]
ObjectiveKind = Literal["exact", "estimate"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, as its watchers see it."""

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
    #: At the end of a pass: writes a file from which `train` can go on to the same model.
    checkpoint: Callable[[Path], None] | None = field(default=None, compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The names of the HTTP contract."""
        return {
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


@dataclass(frozen=True, eq=False)
class TrainResult:
    """A finished run."""

    model: Model
    objective: float
    active_features: int
    train_seconds: float
    passes: int
    stop_reason: StopReason
    metrics: dict[str, Any]
    #: One point a pass: pass, seconds, objective and its kind, active features, score on dev.
    curve: list[dict[str, Any]]


@dataclass
class _Run:
    """What the loop keeps between passes. All of it but the problem is in a checkpoint."""

    spec: TrainSpec
    trainer: Trainer
    problem: Problem
    dev: Problem | None
    state: State
    seconds: float = 0.0
    passes: int = 0
    objective: float | None = None
    objective_kind: ObjectiveKind = "estimate"
    change: float = np.inf
    active: int | None = None
    metrics: Metrics | None = None
    best_score: float = -1.0
    best_pass: int = 0
    best: Weights | None = None
    curve: list[dict[str, Any]] = field(default_factory=list)

    def finish_pass(self, report: Report, weights: Weights) -> Generator[Progress, None, None]:
        """Take stock of a pass: objective, active features, dev score."""
        self.active, norm1, norm2 = census(weights.values)
        penalty = self.trainer.l1 * norm1 + 0.5 * self.trainer.l2 * norm2
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
        score = self.metrics.f1 if _has_spans(self.problem.labels) else self.metrics.accuracy
        if score > self.best_score:
            self.best_score, self.best_pass = score, self.passes
            self.best = weights if self.spec.stop.patience else None
        return score

    def reason_to_stop(self) -> StopReason | None:
        stop, trainer = self.spec.stop, self.spec.trainer
        if self.passes >= trainer.passes:
            return "passes"
        if stop.patience and self.dev is not None and self.passes - self.best_pass >= stop.patience:
            return "patience"
        if stop.max_seconds and self.seconds >= stop.max_seconds:
            return "max_seconds"
        if self.objective_kind == "estimate" and trainer.tolerance and self.change < trainer.tolerance:
            return "tolerance"
        return None

    def progress(self, report: Report) -> Progress:
        passes = self.spec.trainer.passes
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
            tokens_per_second=round(rate * self.problem.tokens, 1) if rate else None,
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
        checkpoint.save(path, kept, arrays)

    def restore(self, path: Path) -> None:
        """Go back to a checkpoint."""
        kept, arrays = checkpoint.load(path, {f"state.{name}": array for name, array in self.state.items()})
        for name, value in kept.items():
            setattr(self, name, value)
        for name, array in self.state.items():
            array[...] = arrays[f"state.{name}"]
        if "best" in arrays:
            self.best = Weights(self.problem, arrays["best"].copy())


def train(
    spec: TrainSpec,
    corpus: Corpus,
    dev: Corpus | None,
    *,
    init: Model | None = None,
    resume: Path | None = None,
) -> Generator[Progress, None, TrainResult]:
    """Train a model.

    `dev` is the corpus that the spec names; a fraction is split off here. `init` is a model whose weights to start
    from, `resume` a checkpoint of this same run to go on from.
    """
    passes = spec.trainer.passes
    yield Progress("compile", passes=passes, message="compiling features")
    if isinstance(spec.dev, DevFraction):
        corpus, dev = corpus.split(spec.dev.fraction, spec.seed)
    compiled = compile_corpus(spec.features.resolve(len(corpus.columns)), corpus)
    problem = compiled.problem
    summary = f"{problem.tokens} tokens, {problem.attributes} attributes, {len(problem.labels)} labels"
    needed = memory.peak_bytes(spec, problem) / 2**20
    summary += f"; training takes about {needed:,.0f} MiB"
    yield Progress("compile", passes=passes, message=summary)
    trainer = trainer_of(spec.trainer, spec.threads)
    start = None
    if init is not None and resume is None:
        start = warm_start.weights_of(init, compiled)
        yield Progress(
            "compile", passes=passes, message=f"{census(start.values)[0]} weights carry over from {spec.init}"
        )
    dev_problem = None if dev is None else compiled.problem_of(dev)
    run = _Run(spec, trainer, problem, dev_problem, trainer.start(problem, start))
    if resume is not None:
        run.restore(resume)
        message = f"resumed after pass {run.passes}"
        yield Progress("train", run.passes, passes, run.passes / passes, run.objective, message=message)
    reason = yield from _passes(run)
    return (yield from _finished(run, compiled, reason))


def _passes(run: _Run) -> Generator[Progress, None, StopReason]:
    """Drive the trainer until there is a reason to stop. Only the trainer's own time counts as training."""
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


def _finished(run: _Run, compiled: Compiled, reason: StopReason) -> Generator[Progress, None, TrainResult]:
    """Exact objective, scores and the sparse model."""
    weights = run.best or run.trainer.weights(run.problem, run.state)
    active, norm1, norm2 = census(weights.values)
    objective = run.trainer.l1 * norm1 + 0.5 * run.trainer.l2 * norm2
    passes = run.spec.trainer.passes
    for part in weights.loss(run.problem):
        objective += part
        yield Progress(
            "finish", run.passes, passes, 1.0, run.objective, active_features=active, seconds=run.seconds
        )
    metrics = {} if run.dev is None else {"dev": _evaluate(weights, run.dev).as_dict()}
    yield Progress("finish", run.passes, passes, 1.0, objective, "exact", active, seconds=run.seconds)
    return TrainResult(
        model=build_model(compiled, weights),
        objective=objective,
        active_features=active,
        train_seconds=run.seconds,
        passes=run.passes,
        stop_reason=reason,
        metrics=metrics,
        curve=run.curve,
    )


def _evaluate(weights: Weights, dev: Problem) -> Metrics:
    return evaluate(dev.labels, dev.data.gold, weights.decode(dev), dev.data.offsets)


def _has_spans(labels: tuple[str, ...]) -> bool:
    """Whether the labels code spans: then span F1 is the score, else token accuracy."""
    return any(label[1:2] == "-" and label[0] in "BIESMLU" for label in labels)
