"""The resources of a running job: its row, the database, a scratch directory, and its inputs read from SQL."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tagsmith.core.base import disk
from tagsmith.core.base.flat_file import CorruptFile
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.features.lexicon.lexicon import Lexicon, Lexicons
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs import checkpoints, leases
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.jobs.runner_interface import JobUpdate, Note, Waiting
from tagsmith.core.jobs.spec import Dev, DevCorpus
from tagsmith.core.learn.run.progress import Progress
from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.pipeline import warm
from tagsmith.core.registry import models, references
from tagsmith.core.registry.references import Target
from tagsmith.core.registry.registry import Registry
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import blobs, corpora, lexicons
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.engine import Database

T = TypeVar("T")

#: What a job says while it waits.
WAITING_FOR_ROOM = "the disk is full: the result is kept until there is room for it"

READ_BYTES = 1 << 20
#: How often a job that waits for room tries again, and how often it can be stopped meanwhile.
ROOM_RETRY_S, ROOM_POLL_S = 2.0, 0.1


@dataclass(frozen=True, slots=True)
class JobResources:
    """One claim of one job. The methods that read are generators: the job can be stopped between any two chunks."""

    settings: Settings
    db: Database
    #: A directory for this job, removed when it ends.
    scratch: Path
    job: JobRow
    #: Publishes versions and moves aliases.
    registry: Registry

    def corpus(self, corpus_id: str) -> Generator[JobUpdate, None, Corpus]:
        """Read a corpus."""
        row = self.corpus_row(corpus_id)
        with self.db.read() as conn:
            blob_id = corpora.blob_id(conn, corpus_id)
        reader = formats.reader(
            row.format,
            max_line_bytes=self.settings.max_line_bytes,
            max_text_bytes=self.settings.max_corpus_bytes,
            options=row.options,
        )
        for chunk in blobs.stream(self.db, blob_id):
            reader.feed(chunk)
            yield None
        return reader.finish()

    def corpus_row(self, corpus_id: str) -> CorpusRow:
        """Return the row of a corpus: its format and counts."""
        with self.db.read() as conn:
            return corpora.get(conn, corpus_id)

    def dev(self, dev: Dev) -> Generator[JobUpdate, None, Corpus | float]:
        """Read the corpus of a dev set, or return the fraction to hold out."""
        if isinstance(dev, DevCorpus):
            return (yield from self.corpus(dev.corpus))
        return dev.fraction

    def lexicons(self, features: Iterable[FeatureSpec]) -> Generator[JobUpdate, None, Lexicons]:
        """Read the lexicons that the features name."""
        by_id: dict[str, Lexicon] = {}
        for column in (column for each in features for column in each.lexicons.values()):
            lexicon_id = column.lexicon_id or ""
            if lexicon_id not in by_id:
                by_id[lexicon_id] = lexicons.load(self.db, lexicon_id, self.settings.max_line_bytes)
                yield None
        return by_id

    def version(self, reference: str, pointer: str) -> Target:
        """Find the version that a reference in the spec names."""
        with self.db.read() as conn:
            return references.resolve(conn, reference, pointer)

    def model_file(self, target: Target) -> Generator[JobUpdate, None, Path]:
        """Copy the file of a version into the scratch directory."""
        with self.db.read() as conn:
            blob_id = models.blob_id(conn, target.model, target.version)
        path = self.scratch / f"{target.model}-{target.version}"
        yield from write_file(blobs.stream(self.db, blob_id), path)
        return path

    def kernels(self, trainer: TrainerSpec) -> Generator[JobUpdate, None, None]:
        """Compile the kernels of a trainer if needed. Inside the run this would count as training time."""
        yield Progress("compile", message=f"compiling the kernels of {trainer.kind}")
        warm.trainer(trainer)

    def resumed(
        self, go: Callable[[Path | None], Generator[JobUpdate, None, T]]
    ) -> Generator[JobUpdate, None, T]:
        """Run `go` from the checkpoint of an earlier attempt, or from the start if no usable checkpoint exists."""
        resume = yield from self._checkpoint()
        if resume is not None:
            try:
                return (yield from go(resume))
            except CorruptFile as error:
                # Only reading a checkpoint raises this, before the first pass.
                reason = error.message
            yield self._without_checkpoint(reason)
        return (yield from go(None))

    def _checkpoint(self) -> Generator[JobUpdate, None, Path | None]:
        """Copy the checkpoint of an earlier attempt into the scratch directory, if an intact one exists."""
        with self.db.read() as conn:
            checkpoint = checkpoints.find(conn, self.job.id)
        if checkpoint is None:
            return None
        path = self.scratch / "resume"
        try:
            yield from write_file(blobs.stream(self.db, checkpoint.blob_id), path)
        except blobs.CorruptBlobError as error:
            yield self._without_checkpoint(str(error))
            return None
        return path

    def _without_checkpoint(self, reason: str) -> Note:
        """Delete an unusable checkpoint, and return a note about it."""
        job = self.job
        assert job.lease_owner is not None
        with self.db.write() as conn:
            if leases.heartbeat(conn, job.id, job.lease_owner, self.settings.lease_seconds).lost:
                raise leases.LeaseLost(f"This worker has lost the lease of {job.id}.")
            checkpoints.delete(conn, job.id)
        return Note(f"the checkpoint cannot be used, so training starts again: {reason}", level="warning")


def when_there_is_room(write: Callable[[], object], path: Path) -> Generator[JobUpdate, None, None]:
    """Write a file. While the disk is full, wait for room, so that what a long run has made is not lost."""
    while True:
        try:
            write()
        except OSError as error:
            if not disk.is_full(error):
                raise
            path.unlink(missing_ok=True)
        else:
            return
        retry_at = time.monotonic() + ROOM_RETRY_S
        while time.monotonic() < retry_at:
            yield Waiting(WAITING_FOR_ROOM)
            time.sleep(ROOM_POLL_S)


def write_file(chunks: Iterable[bytes], path: Path) -> Generator[JobUpdate, None, None]:
    """Write chunks to a file. The job can be stopped between two chunks."""
    with path.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
            yield None


def chunks_of(path: Path) -> Iterator[bytes]:
    """Read a file in chunks."""
    with path.open("rb") as handle:
        while chunk := handle.read(READ_BYTES):
            yield chunk
