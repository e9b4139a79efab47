"""The runner of training jobs: corpus from SQL, the pass loop, a model file, a version, perhaps an alias."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from core import specs, version, warm
from core.experiments.compare import thinned
from core.learn import loop
from core.learn.progress import Progress
from core.learn.trainer import TrainerSpec
from core.model import file
from core.model.model import Model
from core.store import aliases, models, promotion, references
from core.store.aliases import Why
from core.store.jobs import JobRow
from worker import inputs
from worker.context import Running, Said, Workplace

READ_BYTES = 1 << 20
#: Who moved an alias, when no person did.
ACTOR = "worker"
#: Points of a curve that a result keeps: more than a plot can show. The events have all of them.
CURVE_POINTS = 1000


@dataclass(frozen=True, slots=True)
class TrainOutcome:
    """A trained model, waiting to become a version."""

    path: Path
    name: str
    new: models.NewVersion
    passes: int
    stop_reason: str
    curve: list[dict[str, Any]]
    #: The alias to move to the version, if any.
    promote: str | None
    request_id: str | None
    serves = True

    def store(self, conn: Connection) -> dict[str, Any]:
        """Publish the version, and promote it in the same transaction when the spec says so and the policy lets it."""
        made = models.publish(conn, self.name, self.new, _pieces(self.path))
        refusal = self._refused_promotion(conn, made.version)
        return {
            "model": self.name,
            "version": made.version,
            "promoted": self.promote if refusal is None else None,
            "not_promoted": refusal,
            "objective": made.objective,
            "active_features": made.active_features,
            "train_seconds": made.train_seconds,
            "passes": self.passes,
            "stop_reason": self.stop_reason,
            "metrics": made.metrics,
            "sha256": made.sha256,
            "size_bytes": made.size_bytes,
            "curve": self.curve,
        }

    def _refused_promotion(self, conn: Connection, number: int) -> str | None:
        """Promote if that is wanted. What the policy has against it is told: the version is worth keeping anyway."""
        if self.promote is None:
            return None
        why = Why(ACTOR, f"promoted by {self.new.job_id}", self.request_id)
        try:
            aliases.move(conn, self.name, self.promote, number, why)
        except promotion.Refused as refused:
            return refused.message
        return None


def run_train(job: JobRow, workplace: Workplace) -> Running:
    """Train as the spec of the job says."""
    spec = inputs.spec_of(job, specs.TrainSpec)
    corpus = yield from inputs.corpus(workplace, spec.corpus)
    dev = None
    if isinstance(spec.dev, specs.DevCorpus):
        dev = yield from inputs.corpus(workplace, spec.dev.corpus)
    lexicons = yield from inputs.lexicons_of(workplace, spec)
    init = None if spec.init is None else (yield from _start(workplace, spec.init))
    yield from kernels_ready(spec.trainer)
    result = yield from inputs.resumed(
        job,
        workplace,
        lambda resume: loop.train(spec, corpus, dev, lexicons=lexicons, init=init, resume=resume),
    )
    return outcome_of(job, workplace, spec, result)


def kernels_ready(trainer: TrainerSpec) -> Generator[Said, None, None]:
    """Compile what a trainer needs, if it has not been: inside the run it would be counted as training time."""
    yield Progress("compile", message=f"making the kernels of {trainer.kind} ready")
    warm.trainer(trainer)


def outcome_of(
    job: JobRow, workplace: Workplace, spec: specs.TrainSpec, result: loop.TrainResult
) -> TrainOutcome:
    """Write the model file of a run, and say what is to be published."""
    path = workplace.scratch / "model"
    file.save(result.model, path)
    stored = spec.model_dump(mode="json")
    return TrainOutcome(
        path=path,
        name=spec.model,
        new=models.NewVersion(
            objective=result.objective,
            active_features=result.active_features,
            train_seconds=result.train_seconds,
            metrics=result.metrics,
            trainer=stored["trainer"],
            spec=stored,
            corpus=spec.corpus,
            seed=spec.seed,
            code_version=version.code_version(),
            job_id=job.id,
        ),
        passes=result.passes,
        stop_reason=result.stop_reason,
        curve=thinned(result.curve, CURVE_POINTS),
        promote=spec.promote,
        request_id=job.request_id,
    )


def _start(workplace: Workplace, reference: str) -> Generator[Said, None, Model]:
    """Open the version to start from."""
    with workplace.db.read() as conn:
        target = references.resolve(conn, reference, "/init")
    return file.load((yield from inputs.model_file(workplace, target)))


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as handle:
        while piece := handle.read(READ_BYTES):
            yield piece
