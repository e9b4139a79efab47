"""The runner of training jobs: corpus from SQL, the pass loop, a model file, a version, perhaps an alias."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from core import specs, version
from core.corpus import formats
from core.corpus.corpus import Corpus
from core.learn import loop
from core.model import file
from core.store import aliases, blobs, corpora, models
from core.store.jobs import JobRow
from worker.context import Report, Running, Workplace

READ_BYTES = 1 << 20
#: Who moved an alias, when no person did.
ACTOR = "worker"


@dataclass(frozen=True, slots=True)
class TrainOutcome:
    """A trained model, waiting to become a version."""

    path: Path
    name: str
    new: models.NewVersion
    passes: int
    stop_reason: str
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
        }


def run_train(job: JobRow, workplace: Workplace) -> Running:
    """Train as the spec of the job says."""
    spec = specs.parse_job(job.spec)
    corpus = yield from _load(workplace, spec.corpus)
    dev: Corpus | None = None
    if isinstance(spec.dev, specs.DevCorpus):
        dev = yield from _load(workplace, spec.dev.corpus)
    result = yield from loop.train(spec, corpus, dev)
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
        promote=spec.promote,
        request_id=job.request_id,
    )


def _load(workplace: Workplace, corpus_id: str) -> Generator[Report | None, None, Corpus]:
    """Read a corpus from SQL, a chunk at a time, stoppable between any two."""
    with workplace.db.read() as conn:
        row = corpora.get(conn, corpus_id)
        blob_id = corpora.blob_id(conn, corpus_id)
    reader = formats.reader(row.format, max_line_bytes=workplace.settings.max_line_bytes)
    for chunk in blobs.stream(workplace.db, blob_id):
        reader.feed(chunk)
        yield None
    return reader.finish()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as handle:
        while piece := handle.read(READ_BYTES):
            yield piece
