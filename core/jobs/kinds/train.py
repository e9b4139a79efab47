"""`train`: train one version of a model."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.jobs.intake import Intake
from tagsmith.core.jobs.kind import Example, JobKind, Prepared, Result, Stored
from tagsmith.core.jobs.running import Note, Running, Said
from tagsmith.core.jobs.spec import Dev, DevCorpus, DevFraction, JobSpec, Promotion
from tagsmith.core.jobs.workplace import Workplace, pieces
from tagsmith.core.learn.run.loop import score_name
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.model import file
from tagsmith.core.pipeline.experiments.compare import thinned
from tagsmith.core.pipeline.experiments.plot import Curve, svg_of
from tagsmith.core.pipeline.train import Start, TrainResult, train
from tagsmith.core.registry import evaluations, models, promotion
from tagsmith.core.registry.aliases import MoveContext
from tagsmith.core.registry.evaluations import NewEvaluation
from tagsmith.core.registry.names import ModelReference, Name
from tagsmith.core.registry.registry import Registry
from tagsmith.core.service import version
from tagsmith.core.store.ids import CorpusReference

#: The actor recorded when a worker moves an alias.
ACTOR = "worker"
#: Maximum number of curve points in a result, more than a plot can show. The events have all points.
CURVE_POINTS = 1000


class TrainSpec(JobSpec, Learning):
    """Train one version of a model.

    `init` names a version to start from (`name`, `name@alias` or `name:3`). `promote` names an alias to move to the
    new version.
    """

    kind: Literal["train"]
    model: Name
    corpus: CorpusReference
    dev: Dev | None = None
    promote: Name | None = None
    init: ModelReference | None = None

    def dev_of(self, corpus: Corpus | None) -> Corpus | float | None:
        """Return the dev set: `corpus`, which the caller has read, or the fraction to hold out."""
        return self.dev.fraction if isinstance(self.dev, DevFraction) else corpus

    @model_validator(mode="after")
    def _patience_has_scores(self) -> "TrainSpec":
        if self.stop.keeps_best and self.dev is None:
            fault = Fault(
                "patience waits for a better score on dev, and there is no dev",
                pointer="/stop/patience",
                type=FaultType.INCONSISTENT,
            )
            raise Invalid("The train job is not valid", [fault], code="invalid_spec")
        return self


class TrainedVersion(Result):
    """The version, why training stopped, and one curve point per pass."""

    model: str
    version: int
    promoted: str | None
    not_promoted: str | None
    objective: float | None
    active_features: int
    train_seconds: float
    passes: int
    stop_reason: str
    metrics: dict[str, Any]
    sha256: str
    size_bytes: int
    curve: list[dict[str, Any]]
    #: What may go wrong when the model is used, such as text that is split unlike the corpus.
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class NewModel:
    """A trained model to be published as a version."""

    path: Path
    name: str
    new: models.NewVersion
    passes: int
    stop_reason: str
    curve: list[dict[str, Any]]
    #: Its scores on the dev set, if it has one.
    dev: NewEvaluation | None
    #: The alias to move to the version, if any.
    promote: str | None
    request_id: str | None
    registry: Registry
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: TrainSpec, trained: TrainResult, workplace: Workplace) -> "NewModel":
        """Write the model file of a run, and collect the data that is published with it."""
        path = workplace.scratch / "model"
        file.save(trained.model, path)
        stored = spec.model_dump(mode="json")
        return cls(
            path=path,
            name=spec.model,
            new=models.NewVersion(
                objective=trained.objective,
                active_features=trained.active_features,
                train_seconds=trained.train_seconds,
                metrics=trained.metrics,
                trainer=stored["trainer"],
                spec=stored,
                corpus=spec.corpus,
                seed=spec.seed,
                code_version=version.code_version(),
                job_id=workplace.job.id,
            ),
            passes=trained.passes,
            stop_reason=trained.stop_reason,
            curve=thinned(trained.curve, CURVE_POINTS),
            dev=_dev_scores(spec, trained, workplace.job.id),
            warnings=trained.warnings,
            promote=spec.promote,
            request_id=workplace.job.request_id,
            registry=workplace.registry,
        )

    def store(self, conn: Connection) -> dict[str, Any]:
        """Publish the version. Promote it in the same transaction if the spec requests it and the policy allows it."""
        made = self.registry.publish(conn, self.name, self.new, pieces(self.path))
        if self.dev is not None:
            evaluations.record(conn, self.name, made.version, self.dev)
        refusal = self._refused_promotion(conn, made.version)
        return TrainedVersion(
            model=self.name,
            version=made.version,
            promoted=self.promote if refusal is None else None,
            not_promoted=refusal,
            objective=made.objective,
            active_features=made.active_features,
            train_seconds=made.train_seconds,
            passes=self.passes,
            stop_reason=self.stop_reason,
            metrics=made.metrics,
            sha256=made.sha256,
            size_bytes=made.size_bytes,
            curve=self.curve,
            warnings=list(self.warnings),
        ).stored()

    def _refused_promotion(self, conn: Connection, number: int) -> str | None:
        """Promote if requested. Return the reason if the policy refuses; the version is kept either way."""
        if self.promote is None:
            return None
        context = MoveContext(ACTOR, f"promoted by {self.new.job_id}", self.request_id)
        try:
            self.registry.move_alias(conn, self.name, self.promote, number, context)
        except promotion.PromotionRefused as refused:
            return refused.message
        return None


def _dev_scores(spec: TrainSpec, trained: TrainResult, job_id: str) -> NewEvaluation | None:
    if spec.dev is None:
        return None
    return NewEvaluation(
        corpus=spec.dev.corpus if isinstance(spec.dev, DevCorpus) else None,
        held_out=None if isinstance(spec.dev, DevCorpus) else spec.dev.fraction,
        metric=score_name(trained.model.labels),
        metrics=trained.metrics["dev"],
        job_id=job_id,
    )


def _prepare(spec: TrainSpec, intake: Intake) -> Prepared:
    corpus = intake.labelled(spec.corpus)
    spec.features.resolve(corpus.columns)
    intake.dev(spec.dev, corpus)
    intake.memory(spec.features, corpus)
    intake.lexicons([spec.features])
    tokens = corpus.tokens * spec.trainer.total_passes
    if spec.init is not None:
        # Pin the version now: its alias may move before the job runs.
        spec = spec.model_copy(update={"init": str(intake.version(spec.init, "/init"))})
    return Prepared(spec=spec, tokens=tokens, model=spec.model)


def _run(spec: TrainSpec, workplace: Workplace) -> Running:
    corpus = yield from workplace.corpus(spec.corpus)
    dev = None if spec.dev is None else (yield from workplace.dev(spec.dev))
    lexicons = yield from workplace.lexicons([spec.features])
    init = None if spec.init is None else (yield from _start(workplace, spec.init))
    yield from workplace.kernels(spec.trainer)
    trained = yield from workplace.resumed(
        lambda resume: train(spec, corpus, dev, lexicons=lexicons, init=init, resume=resume)
    )
    for warning in trained.warnings:
        yield Note(warning, level="warning")
    return NewModel.of(spec, trained, workplace)


def _start(workplace: Workplace, reference: str) -> Generator[Said, None, Start]:
    """Open the version to start from."""
    path = yield from workplace.model_file(workplace.version(reference, "/init"))
    return Start(file.load(path), reference)


def _promotion(spec: TrainSpec) -> Promotion | None:
    return None if spec.promote is None else Promotion(spec.model, spec.promote, spec.dev, "/promote")


def _plot(result: Stored) -> str:
    return svg_of([Curve(f"{result['model']}:{result['version']}", result["curve"])], "score on dev, %")


KIND = JobKind(
    spec=TrainSpec,
    result=TrainedVersion,
    examples={
        "train": Example(
            "Train a version and promote it",
            {
                "kind": "train",
                "model": "chunker",
                "corpus": "crp_01hzy3m5v8q2",
                "dev": {"fraction": 0.1},
                "features": {"preset": "chunking"},
                "trainer": {"kind": "sgd-l1", "l1": 0.5, "passes": 30},
                "stop": {"patience": 5},
                "promote": "champion",
            },
        )
    },
    prepare=_prepare,
    run=_run,
    promotion=_promotion,
    plot=_plot,
    position=10,
)
