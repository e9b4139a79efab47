"""`train`: train one version of a model."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.base.names import ModelReference, Name
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.jobs.input_checks import InputChecks
from tagsmith.core.jobs.kind import Example, JobKind, Prepared, Result, Stored
from tagsmith.core.jobs.resources import JobResources, chunks_of, when_there_is_room
from tagsmith.core.jobs.runner_interface import JobRun, JobUpdate, Note
from tagsmith.core.jobs.spec import Dev, DevCorpus, DevFraction, JobSpec, Promotion
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.model import file
from tagsmith.core.pipeline.experiments.compare import thinned
from tagsmith.core.pipeline.experiments.plot import Curve, svg_of
from tagsmith.core.pipeline.train import Start, TrainResult, train
from tagsmith.core.registry import evaluations, models, promotion
from tagsmith.core.registry.aliases import MoveContext
from tagsmith.core.registry.evaluations import NewEvaluation
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
                "`patience` needs a dev set. Add `dev` or remove `patience`.",
                pointer="/stop/patience",
                type=FaultType.INCONSISTENT,
            )
            raise Invalid("The train job is not valid.", [fault], code="invalid_spec")
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
    def of(
        cls, spec: TrainSpec, trained: TrainResult, resources: JobResources
    ) -> Generator[JobUpdate, None, "NewModel"]:
        """Write the model file of a run, and collect the data that is published with it."""
        path = resources.scratch / "model"
        yield from when_there_is_room(lambda: file.save(trained.model, path), path)
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
                job_id=resources.job.id,
            ),
            passes=trained.passes,
            stop_reason=trained.stop_reason,
            curve=thinned(trained.curve, CURVE_POINTS),
            dev=_dev_scores(spec, trained, resources.job.id),
            warnings=trained.warnings,
            promote=spec.promote,
            request_id=resources.job.request_id,
            registry=resources.registry,
        )

    def store(self, conn: Connection) -> dict[str, Any]:
        """Publish the version. Promote it in the same transaction if the spec requests it and the policy allows it."""
        row = self.registry.publish(conn, self.name, self.new, chunks_of(self.path))
        if self.dev is not None:
            evaluations.record(conn, self.name, row.version, self.dev)
        refusal = self._refused_promotion(conn, row.version)
        return TrainedVersion(
            model=self.name,
            version=row.version,
            promoted=self.promote if refusal is None else None,
            not_promoted=refusal,
            objective=row.objective,
            active_features=row.active_features,
            train_seconds=row.train_seconds,
            passes=self.passes,
            stop_reason=self.stop_reason,
            metrics=row.metrics,
            sha256=row.sha256,
            size_bytes=row.size_bytes,
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
        metric=trained.metrics["dev"]["score"],
        metrics=trained.metrics["dev"],
        job_id=job_id,
    )


def _prepare(spec: TrainSpec, inputs: InputChecks) -> Prepared:
    corpus = inputs.labelled(spec.corpus)
    spec.features.resolve(corpus.columns, trees=corpus.trees)
    inputs.dev(spec.dev, corpus)
    inputs.memory(spec.features, corpus)
    inputs.lexicons([spec.features])
    tokens = corpus.tokens * spec.trainer.total_passes
    if spec.init is not None:
        # Pin the version now: its alias may move before the job runs.
        spec = spec.model_copy(update={"init": str(inputs.version(spec.init, "/init"))})
    return Prepared(spec=spec, tokens=tokens, model=spec.model)


def _run(spec: TrainSpec, resources: JobResources) -> JobRun:
    corpus = yield from resources.corpus(spec.corpus)
    dev = None if spec.dev is None else (yield from resources.dev(spec.dev))
    lexicons = yield from resources.lexicons([spec.features])
    init = None if spec.init is None else (yield from _start(resources, spec.init))
    yield from resources.kernels(spec.trainer)
    trained = yield from resources.resumed(
        lambda resume: train(spec, corpus, dev, lexicons=lexicons, init=init, resume=resume)
    )
    for warning in trained.warnings:
        yield Note(warning, level="warning")
    return (yield from NewModel.of(spec, trained, resources))


def _start(resources: JobResources, reference: str) -> Generator[JobUpdate, None, Start]:
    """Open the version to start from."""
    path = yield from resources.model_file(resources.version(reference, "/init"))
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
