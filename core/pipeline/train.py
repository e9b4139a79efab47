"""From a corpus to a model: compile the features, run the trainer, build the sparse model."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.evaluate.labels import disjoint_labels, one_label
from tagsmith.core.evaluate.segmentation import vocabulary_score
from tagsmith.core.features.lexicon.lexicon import NO_LEXICONS, Lexicons
from tagsmith.core.features.resolved import Features
from tagsmith.core.learn.problem import information_gain
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.run.loop import learn
from tagsmith.core.learn.run.progress import Progress
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.learn.run.stopping import StopReason
from tagsmith.core.learn.trainers import memory
from tagsmith.core.learn.weights.rows import census
from tagsmith.core.model.model import SparseModel
from tagsmith.core.pipeline import warm_start
from tagsmith.core.pipeline.build import build_model
from tagsmith.core.pipeline.usage import usage_of


class Start(NamedTuple):
    """A model whose weights to start from, and its name for messages."""

    model: SparseModel
    name: str


@dataclass(frozen=True, eq=False)
class TrainResult:
    """A finished run."""

    model: SparseModel
    objective: float
    active_features: int
    train_seconds: float
    passes: int
    stop_reason: StopReason
    metrics: dict[str, Any]
    #: One point a pass, as `Learned` has them.
    curve: list[dict[str, Any]]
    #: Sentences for the user about what may go wrong when the model is used.
    warnings: tuple[str, ...] = ()


def train(
    spec: Learning,
    corpus: Corpus,
    dev: Corpus | float | None,
    *,
    lexicons: Lexicons = NO_LEXICONS,
    init: Start | None = None,
    resume: Path | None = None,
    carried: Sequence[Mapping[str, Any]] = (),
) -> Generator[Progress, None, TrainResult]:
    """Train a model.

    `dev` is a corpus to evaluate on after each pass, or the fraction of the corpus to hold out for that, chosen by the
    seed. `lexicons` are those that the features name, by id. `init` is a model whose weights to start from,
    `resume` a checkpoint of this same run to continue from. `carried` is passed on to `learn`.
    """
    passes = spec.trainer.total_passes
    yield Progress("compile", passes=passes, message="compiling features")
    if isinstance(dev, float):
        corpus, dev = corpus.split(dev, spec.seed)
    elif dev is not None:
        dev = dev.comparable()
    compiled, ranked = information_gain.compile_selected(spec.features, corpus, lexicons)
    problem = compiled.problem
    if ranked:
        kept = sum(each.kept for each in ranked)
        message = f"kept {kept} of {len(ranked)} templates by information gain"
        yield Progress("compile", passes=passes, message=message)
    summary = _summary(problem)
    needed = memory.peak_bytes(
        spec.trainer, problem, threads=spec.threads, keeps_best=spec.stop.keeps_best, warm=init is not None
    )
    summary += f"; training takes about {needed / 2**20:,.0f} MiB"
    yield Progress("compile", passes=passes, message=summary, needed_bytes=needed)
    start = None
    if init is not None and resume is None:
        start = warm_start.weights_of(init.model, compiled)
        message = f"{census(start.values)[0]} weights carry over from {init.name}"
        yield Progress("compile", passes=passes, message=message)
    dev_problem = None if dev is None else compiled.problem_of(dev)
    warnings = _label_warnings(corpus, dev)
    learned = yield from learn(spec, problem, dev_problem, start=start, resume=resume, carried=carried)
    vocabulary: dict[str, Any] = {}
    if dev is not None and dev_problem is not None and dev.labels is not None:
        score = vocabulary_score(corpus, dev, dev_problem.labels, learned.weights.decode(dev_problem))
        vocabulary = {} if score is None else {"vocabulary": asdict(score)}
    metrics: dict[str, Any] = {} if learned.dev is None else {"dev": learned.dev.as_dict() | vocabulary}
    metrics |= learned.findings
    if ranked:
        metrics["filter"] = information_gain.record(ranked)
    model = build_model(compiled, learned.weights)
    found_use = usage_of(corpus, model.features.columns, calibrated=spec.trainer.calibrated)
    model = replace(model, usage=found_use.usage)
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
        warnings=(*warnings, *found_use.warnings),
    )


def _summary(problem: Problem) -> str:
    """Describe the size of a problem."""
    words = f"{problem.words} tokens, {problem.attributes} attributes"
    if not problem.data.trees.present:
        return f"{words}, {len(problem.labels)} labels"
    rules = problem.data.trees
    kind = "projective trees" if rules.projective else "trees with crossing arcs"
    roots = "one root" if rules.single_root else "several roots"
    return f"{words}, {len(problem.labels) - 1} relations, {problem.tokens} arcs, {kind}, {roots}"


def _label_warnings(corpus: Corpus, dev: Corpus | None) -> list[str]:
    """Return what is wrong with the labels of the training corpus and of the dev set."""
    if corpus.trees is not None:
        return []
    labels = corpus.label_names
    found = [one_label(labels)]
    if dev is not None and dev.labels is not None:
        found.append(disjoint_labels(dev.label_names, labels, "the dev set"))
    return [warning for warning in found if warning is not None]


def _dropped(given: Features, used: Features) -> list[dict[str, Any]]:
    """The templates of which training left no feature."""
    kept = {*used.templates, *used.bag_templates}
    return [
        {"name": template.name, "edge": template.kind == "B"}
        for template in (*given.templates, *given.bag_templates)
        if template not in kept
    ]
