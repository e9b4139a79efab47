"""The pass loop: one loop for every trainer, with evaluation, early stopping, time budget, checkpoints and progress.

It is a generator of `Progress`, and yields at least every fraction of a second: whoever drives it can stop at any yield
by closing it. `train` returns the model and what is known of it; `learn` is the part of it that starts from a compiled
corpus, for jobs that make several runs over one.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np

from core.corpus.corpus import Corpus
from core.evaluate.segmentation import codes_words, evaluate, vocabulary_score
from core.evaluate.spans import Metrics
from core.features.matching import NO_LEXICONS, Lexicons
from core.features.settled import Features
from core.learn import checkpoint, information_gain, memory, warm_start
from core.learn.evaluation import Weights
from core.learn.problem import Problem
from core.learn.progress import ObjectiveKind, Progress
from core.learn.registry import trainer_of
from core.learn.rows import census
from core.learn.trainer import Report, State, Trainer
from core.model.build import build_model
from core.model.model import Model
from core.specs import DevFraction, FlatStop, Learning, TrainSpec

StopReason = Literal["passes", "patience", "flat", "max_seconds", "tolerance", "converged"]
ScoreName = Literal["f1", "accuracy"]


@dataclass(frozen=True, eq=False)
class Learned:
    """A run at its end: the weights, and what is known of them."""

    weights: Weights
    objective: float
    active_features: int
    seconds: float
    passes: int
    #: The pass whose weights these are: the last, or the best one when patience keeps that.
    best_pass: int
    stop_reason: StopReason
    dev: Metrics | None
    #: One point a pass: pass, seconds, objective and its kind, active features, score on dev.
    curve: list[dict[str, Any]]
    #: What the trainer found out besides, for the metrics of the version.
    findings: dict[str, Any]

    @property
    def score(self) -> float | None:
        """The one figure that runs are compared by."""
        return None if self.dev is None else score_of(self.dev, self.weights.problem.labels)


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
    #: One point a pass, as `Learned` has them.
    curve: list[dict[str, Any]]


@dataclass
class _Run:
    """What the loop keeps between passes. All of it but the problem is in a checkpoint."""

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
    metrics: Metrics | None = None
    best_score: float = -1.0
    best_pass: int = 0
    best: Weights | None = None
    curve: list[dict[str, Any]] = field(default_factory=list)

    def finish_pass(self, report: Report, weights: Weights) -> Generator[Progress, None, None]:
        """Take stock of a pass: objective, active features, dev score."""
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
        score = score_of(self.metrics, self.problem.labels)
        if score > self.best_score:
            self.best_score, self.best_pass = score, self.passes
            self.best = weights if self.spec.stop.keeps_best else None
        return score

    def reason_to_stop(self) -> StopReason | None:
        stop, trainer = self.spec.stop, self.spec.trainer
        if self.passes >= trainer.total_passes:
            return "passes"
        if isinstance(stop, FlatStop):
            if is_flat(self.curve, stop.window, stop.deviation):
                return "flat"
        elif stop.patience and self.dev is not None and self.passes - self.best_pass >= stop.patience:
            return "patience"
        if stop.max_seconds and self.seconds >= stop.max_seconds:
            return "max_seconds"
        if self.objective_kind == "estimate" and trainer.tolerance and self.change < trainer.tolerance:
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
        checkpoint.save(path, kept, arrays, self.carried)

    def restore(self, path: Path) -> None:
        """Go back to a checkpoint."""
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


def train(
    spec: TrainSpec,
    corpus: Corpus,
    dev: Corpus | None,
    *,
    lexicons: Lexicons = NO_LEXICONS,
    init: Model | None = None,
    resume: Path | None = None,
    carried: Sequence[Mapping[str, Any]] = (),
) -> Generator[Progress, None, TrainResult]:
    """Train a model.

    `dev` is the corpus that the spec names; a fraction is split off here. `lexicons` are those that its features name.
    `init` is a model whose weights to start from, `resume` a checkpoint of this same run to go on from; `carried` as in
    `learn`.
    """
    passes = spec.trainer.total_passes
    yield Progress("compile", passes=passes, message="compiling features")
    if isinstance(spec.dev, DevFraction):
        corpus, dev = corpus.split(spec.dev.fraction, spec.seed)
    compiled, ranked = information_gain.compile_selected(spec.features, corpus, lexicons)
    problem = compiled.problem
    if ranked:
        kept = sum(each.kept for each in ranked)
        message = f"kept {kept} of {len(ranked)} templates by information gain"
        yield Progress("compile", passes=passes, message=message)
    summary = f"{problem.tokens} tokens, {problem.attributes} attributes, {len(problem.labels)} labels"
    needed = memory.peak_bytes(spec, problem)
    summary += f"; training takes about {needed / 2**20:,.0f} MiB"
    yield Progress("compile", passes=passes, message=summary, needed_bytes=needed)
    start = None
    if init is not None and resume is None:
        start = warm_start.weights_of(init, compiled)
        yield Progress(
            "compile", passes=passes, message=f"{census(start.values)[0]} weights carry over from {spec.init}"
        )
    dev_problem = None if dev is None else compiled.problem_of(dev)
    learned = yield from learn(spec, problem, dev_problem, start=start, resume=resume, carried=carried)
    vocabulary: dict[str, Any] = {}
    if dev is not None and dev_problem is not None:
        score = vocabulary_score(corpus, dev, dev_problem.labels, learned.weights.decode(dev_problem))
        vocabulary = {} if score is None else {"vocabulary": asdict(score)}
    metrics: dict[str, Any] = {} if learned.dev is None else {"dev": learned.dev.as_dict() | vocabulary}
    metrics |= learned.findings
    if ranked:
        metrics["filter"] = information_gain.record(ranked)
    model = build_model(compiled, learned.weights)
    if dropped := _dropped(compiled.features, model.features):
        metrics["dropped_templates"] = dropped
    return TrainResult(
        model=model,
        objective=learned.objective,
        active_features=learned.active_features,
        train_seconds=learned.seconds,
        passes=learned.passes,
        stop_reason=learned.stop_reason,
        metrics=metrics,
        curve=learned.curve,
    )


def _dropped(given: Features, used: Features) -> list[dict[str, Any]]:
    """The templates of which training left no feature."""
    kept = {*used.templates, *used.over_several}
    return [
        {"name": template.name, "edge": template.kind == "B"}
        for template in (*given.templates, *given.over_several)
        if template not in kept
    ]


def learn(
    spec: Learning,
    problem: Problem,
    dev: Problem | None,
    *,
    start: Weights | None = None,
    resume: Path | None = None,
    carried: Sequence[Mapping[str, Any]] = (),
) -> Generator[Progress, None, Learned]:
    """Run a trainer on a compiled corpus. What is `carried` goes into each checkpoint, for jobs of several runs."""
    problem = problem.by_token()
    trainer = trainer_of(spec.trainer, spec.threads)
    run = _Run(spec, trainer, problem, dev, trainer.start(problem, start), carried)
    if resume is not None:
        run.restore(resume)
        passes, message = spec.trainer.total_passes, f"resumed after pass {run.passes}"
        yield Progress("train", run.passes, passes, run.passes / passes, run.objective, message=message)
    reason = yield from _passes(run)
    return (yield from _finished(run, reason))


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


def _finished(run: _Run, reason: StopReason) -> Generator[Progress, None, Learned]:
    """Exact objective and scores."""
    weights = run.best or run.trainer.weights(run.problem, run.state)
    active, norm1, norm2 = census(weights.values)
    objective = run.trainer.penalty(weights, norm1, norm2)
    passes = run.spec.trainer.total_passes
    for part in weights.loss(run.problem):
        objective += part
        yield Progress(
            "finish", run.passes, passes, 1.0, run.objective, active_features=active, seconds=run.seconds
        )
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


def is_flat(curve: Sequence[Mapping[str, Any]], window: int, deviation: float) -> bool:
    """Whether the last `window` scores lie within less than `deviation`; without scores, the objectives, relatively."""
    last = curve[-window:]
    if len(last) < window:
        return False
    scores = [point["dev_score"] for point in last]
    if None not in scores:
        return bool(max(scores) - min(scores) < deviation)
    # Estimates and exact values of one run, as two-stage training has them, are not on one curve.
    if len({point["objective_kind"] for point in last}) > 1:
        return False
    objectives = [point["objective"] for point in last]
    return bool(max(objectives) - min(objectives) < deviation * abs(objectives[-1]))


def score_name(labels: tuple[str, ...]) -> ScoreName:
    """Which figure is the score: F1 when the labels code spans or words, else token accuracy."""
    spans = any(label[1:2] == "-" and label[0] in "BIESMLU" for label in labels)
    return "f1" if spans or codes_words(labels) else "accuracy"


def score_of(metrics: Metrics, labels: tuple[str, ...]) -> float:
    """The one figure that passes and runs are compared by."""
    return metrics.f1 if score_name(labels) == "f1" else metrics.accuracy


def _evaluate(weights: Weights, dev: Problem) -> Metrics:
    return evaluate(dev.labels, dev.data.gold, weights.decode(dev), dev.data.offsets)
