"""The runner of training jobs: corpus from SQL, the pass loop, a model file, a version, perhaps an alias."""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from core import specs, version, warm
from core.corpus import formats
from core.corpus.corpus import Corpus
from core.flat_file import CorruptFile
from core.learn import loop
from core.model import file
from core.model.model import Model
from core.store import aliases, blobs, checkpoints, corpora, jobs, models, references
from core.store.jobs import JobRow
from worker.context import Note, Running, Said, Workplace

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
        """Publish the version, and promote it in the same transaction when the spec says so."""
        made = models.publish(conn, self.name, self.new, _pieces(self.path))
        if self.promote is not None:
            reason = f"promoted by {self.new.job_id}"
            aliases.move(conn, self.name, self.promote, made.version, ACTOR, reason, self.request_id)
        return {
            "model": self.name,
            "version": made.version,
            "promoted": self.promote,
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


def run_train(job: JobRow, workplace: Workplace) -> Running:
    """Train as the spec of the job says."""
    spec = specs.parse_job(job.spec)
    corpus = yield from _load(workplace, spec.corpus)
    dev: Corpus | None = None
    if isinstance(spec.dev, specs.DevCorpus):
        dev = yield from _load(workplace, spec.dev.corpus)
    init = None if spec.init is None else (yield from _start(workplace, spec.init))
    # Compiled inside the run, a kernel would be counted as training time.
    yield loop.Progress("compile", passes=spec.trainer.passes, message="making the kernels ready")
    warm.trainer(spec.trainer)
    result = yield from _resumed(job, workplace, spec, corpus, dev)
    if result is None:
        result = yield from loop.train(spec, corpus, dev, init=init)
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


def thinned(curve: list[dict[str, Any]], points: int) -> list[dict[str, Any]]:
    """At most so many points of a curve, spread evenly, the first and the last among them."""
    if len(curve) <= points:
        return curve
    return [curve[i * (len(curve) - 1) // (points - 1)] for i in range(points)]


def _load(workplace: Workplace, corpus_id: str) -> Generator[Said, None, Corpus]:
    """Read a corpus from SQL, a chunk at a time, stoppable between any two."""
    with workplace.db.read() as conn:
        row = corpora.get(conn, corpus_id)
        blob_id = corpora.blob_id(conn, corpus_id)
    reader = formats.reader(row.format, max_line_bytes=workplace.settings.max_line_bytes)
    for chunk in blobs.stream(workplace.db, blob_id):
        reader.feed(chunk)
        yield None
    return reader.finish()


def _start(workplace: Workplace, reference: str) -> Generator[Said, None, Model]:
    """Open the version to start from."""
    with workplace.db.read() as conn:
        target = references.resolve(conn, reference, "/init")
        blob_id = models.blob_id(conn, target.model, target.version)
    path = workplace.scratch / "init"
    yield from _copy(blobs.stream(workplace.db, blob_id), path)
    return file.load(path)


def _resumed(
    job: JobRow, workplace: Workplace, spec: specs.JobSpec, corpus: Corpus, dev: Corpus | None
) -> Generator[Said, None, loop.TrainResult | None]:
    """Go on from the checkpoint of an earlier attempt; None when there is no sound one."""
    resume = yield from _checkpoint(job, workplace)
    if resume is None:
        return None
    try:
        return (yield from loop.train(spec, corpus, dev, resume=resume))
    except CorruptFile as error:
        # Raised before the first pass, and by nothing but a checkpoint.
        reason = error.message
    yield _without_checkpoint(job, workplace, reason)
    return None


def _checkpoint(job: JobRow, workplace: Workplace) -> Generator[Said, None, Path | None]:
    """Fetch the checkpoint that an earlier attempt left, if there is a sound one."""
    with workplace.db.read() as conn:
        found = checkpoints.find(conn, job.id)
    if found is None:
        return None
    path = workplace.scratch / "resume"
    try:
        yield from _copy(blobs.stream(workplace.db, found.blob_id), path)
    except blobs.CorruptBlobError as error:
        yield _without_checkpoint(job, workplace, str(error))
        return None
    return path


def _without_checkpoint(job: JobRow, workplace: Workplace, reason: str) -> Note:
    """Remove a checkpoint that cannot be used, and say so."""
    assert job.lease_owner is not None
    with workplace.db.write() as conn:
        if jobs.heartbeat(conn, job.id, job.lease_owner, workplace.settings.lease_seconds).lost:
            raise jobs.LeaseLost(f"the lease of {job.id} has passed on")
        checkpoints.delete(conn, job.id)
    return Note(f"the checkpoint cannot be used, training starts afresh: {reason}", level="warning")


def _copy(chunks: Iterable[bytes], path: Path) -> Generator[Said, None, None]:
    with path.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
            yield None


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as handle:
        while piece := handle.read(READ_BYTES):
            yield piece
