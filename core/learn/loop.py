"""The pass loop: one loop for every trainer, with evaluation, early stopping, time budget and progress.

It is a generator of `Progress`, and yields at least every fraction of a second: whoever drives it can stop at any yield
by closing it. What it returns in the end is the model and what is known of it.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

import numpy as np

from core.corpus.corpus import Corpus
from core.evaluate.spans import Metrics, evaluate
from core.learn.evaluation import Weights
from core.learn.problem import Compiled, Problem, compile_corpus
from core.learn.registry import trainer_of
from core.learn.rows import census
from core.learn.trainer import Report, Trainer
from core.model.build import build_model
from core.model.model import Model
from core.specs import DevFraction, TrainSpec

StopReason = Literal["passes", "patience", "max_seconds", "tolerance"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, as its watchers see it."""

    phase: Literal["compile", "calibrate", "train", "finish"]
    pass_number: int = 0
    passes: int = 0
    fraction: float = 0.0
    objective: float | None = None
    objective_kind: Literal["exact", "estimate"] = "estimate"
    active_features: int | None = None
    dev: dict[str, Any] | None = None
    tokens_per_second: float | None = None
    eta_seconds: float | None = None
    pass_done: bool = False
    message: str = ""

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


@dataclass
class _Run:
    """What the loop keeps between passes."""

    spec: TrainSpec
    trainer: Trainer
    problem: Problem
    dev: Problem | None
    seconds: float = 0.0
    passes: int = 0
    objective: float | None = None
    change: float = np.inf
    active: int | None = None
    metrics: Metrics | None = None
    best_score: float = -1.0
    best_pass: int = 0
    best: Weights | None = None
    weights: Weights | None = field(default=None, repr=False)

    def finish_pass(self, report: Report, weights: Weights) -> None:
        """Take stock of a pass: objective, active features, dev score."""
        active, norm1, norm2 = census(weights.values)
        objective = (report.loss or 0.0) + self.trainer.l1 * norm1 + 0.5 * self.trainer.l2 * norm2
        if self.objective is not None and self.objective != 0.0:
            self.change = abs(objective - self.objective) / abs(self.objective)
        self.passes, self.objective, self.active, self.weights = (
            report.pass_number,
            objective,
            active,
            weights,
        )
        if self.dev is None:
            return
        self.metrics = _evaluate(weights, self.dev)
        score = self.metrics.f1 if _has_spans(self.problem.labels) else self.metrics.accuracy
        if score > self.best_score:
            self.best_score, self.best_pass = score, self.passes
            self.best = weights if self.spec.stop.patience else None

    def reason_to_stop(self) -> StopReason | None:
        stop, trainer = self.spec.stop, self.spec.trainer
        if self.passes >= trainer.passes:
            return "passes"
        if stop.patience and self.dev is not None and self.passes - self.best_pass >= stop.patience:
            return "patience"
        if stop.max_seconds and self.seconds >= stop.max_seconds:
            return "max_seconds"
        if trainer.tolerance and self.change < trainer.tolerance:
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
            active_features=self.active,
            dev=self.metrics.as_dict() if self.metrics else None,
            tokens_per_second=round(rate * self.problem.tokens, 1) if rate else None,
            eta_seconds=round((passes - done) / rate, 3) if rate else None,
            pass_done=report.pass_done,
            message=report.message or (f"pass {report.pass_number} of {passes}" if report.pass_done else ""),
        )


def train(spec: TrainSpec, corpus: Corpus, dev: Corpus | None) -> Generator[Progress, None, TrainResult]:
    """Train a model. `dev` is the corpus that the spec names; a fraction is split off here."""
    yield Progress("compile", passes=spec.trainer.passes, message="compiling features")
    if isinstance(spec.dev, DevFraction):
        corpus, dev = corpus.split(spec.dev.fraction, spec.seed)
    compiled = compile_corpus(spec.features.resolve(len(corpus.columns)), corpus)
    problem = compiled.problem
    yield Progress(
        "compile",
        passes=spec.trainer.passes,
        message=f"{problem.tokens} tokens, {problem.attributes} attributes, {len(problem.labels)} labels",
    )
    run = _Run(spec, trainer_of(spec.trainer), problem, None if dev is None else compiled.problem_of(dev))
    reason = yield from _passes(run)
    return (yield from _finished(run, compiled, reason))


def _passes(run: _Run) -> Generator[Progress, None, StopReason]:
    """Drive the trainer until there is a reason to stop. Only the trainer's own time counts as training."""
    state = run.trainer.start(run.problem)
    reports = run.trainer.passes(run.problem, state, run.spec.seed)
    while True:
        began = perf_counter()
        report = next(reports)
        run.seconds += perf_counter() - began
        if report.pass_done:
            run.finish_pass(report, run.trainer.weights(run.problem, state))
        yield run.progress(report)
        over_time = run.spec.stop.max_seconds is not None and run.seconds >= run.spec.stop.max_seconds
        if report.pass_done and (reason := run.reason_to_stop()):
            return reason
        if over_time and report.phase == "train" and not report.pass_done:
            run.weights = run.trainer.weights(run.problem, state)
            return "max_seconds"


def _finished(run: _Run, compiled: Compiled, reason: StopReason) -> Generator[Progress, None, TrainResult]:
    """Exact objective, scores and the sparse model."""
    weights = run.best or run.weights
    if weights is None:
        raise AssertionError("a run ends with weights")
    active, norm1, norm2 = census(weights.values)
    objective = run.trainer.l1 * norm1 + 0.5 * run.trainer.l2 * norm2
    for part in weights.loss(run.problem):
        objective += part
        yield Progress(
            "finish", run.passes, run.spec.trainer.passes, 1.0, run.objective, active_features=active
        )
    metrics = {} if run.dev is None else {"dev": _evaluate(weights, run.dev).as_dict()}
    yield Progress("finish", run.passes, run.spec.trainer.passes, 1.0, objective, "exact", active)
    return TrainResult(
        model=build_model(compiled, weights),
        objective=objective,
        active_features=active,
        train_seconds=run.seconds,
        passes=run.passes,
        stop_reason=reason,
        metrics=metrics,
    )


def _evaluate(weights: Weights, dev: Problem) -> Metrics:
    return evaluate(dev.labels, dev.data.gold, weights.decode(dev), dev.data.offsets)


def _has_spans(labels: tuple[str, ...]) -> bool:
    """Whether the labels code spans: then span F1 is the score, else token accuracy."""
    return any(label[1:2] == "-" and label[0] in "BIESMLU" for label in labels)
