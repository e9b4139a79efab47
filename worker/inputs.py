"""What a job works on, fetched from SQL: corpora, versions, and the checkpoint of an earlier attempt."""

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import TypeVar

from core import specs
from core.corpus import formats
from core.corpus.corpus import Corpus
from core.features.matching import Lexicons
from core.flat_file import CorruptFile
from core.lexicon.lexicon import Lexicon
from core.store import blobs, checkpoints, corpora, jobs, lexicons, models
from core.store.jobs import JobRow
from core.store.references import Target
from worker.context import Note, Said, Workplace

S = TypeVar("S")
T = TypeVar("T")


def spec_of(job: JobRow, kind: type[S]) -> S:
    """The spec of a job, by the class that its kind has."""
    spec = specs.parse_job(job.spec)
    assert isinstance(spec, kind)
    return spec


def corpus(workplace: Workplace, corpus_id: str) -> Generator[Said, None, Corpus]:
    """Read a corpus, a chunk at a time, stoppable between any two."""
    with workplace.db.read() as conn:
        row = corpora.get(conn, corpus_id)
        blob_id = corpora.blob_id(conn, corpus_id)
    settings = workplace.settings
    reader = formats.reader(
        row.format,
        max_line_bytes=settings.max_line_bytes,
        max_text_bytes=settings.max_corpus_bytes,
        options=row.options,
    )
    for chunk in blobs.stream(workplace.db, blob_id):
        reader.feed(chunk)
        yield None
    return reader.finish()


def lexicons_of(workplace: Workplace, spec: specs.JobSpec) -> Generator[Said, None, Lexicons]:
    """Read the lexicons that the features of a spec name."""
    found: dict[str, Lexicon] = {}
    for _, column in specs.lexicon_columns(spec):
        lexicon_id = column.lexicon_id or ""
        if lexicon_id not in found:
            found[lexicon_id] = lexicons.load(workplace.db, lexicon_id, workplace.settings.max_line_bytes)
            yield None
    return found


def model_file(workplace: Workplace, target: Target) -> Generator[Said, None, Path]:
    """Fetch the file of a version into the folder of the job."""
    with workplace.db.read() as conn:
        blob_id = models.blob_id(conn, target.model, target.version)
    path = workplace.scratch / f"{target.model}-{target.version}"
    yield from _copy(blobs.stream(workplace.db, blob_id), path)
    return path


def resumed(
    job: JobRow, workplace: Workplace, go: Callable[[Path | None], Generator[Said, None, T]]
) -> Generator[Said, None, T]:
    """Do the work of a job from the checkpoint of an earlier attempt, or from the beginning when there is none."""
    resume = yield from _checkpoint(job, workplace)
    if resume is not None:
        try:
            return (yield from go(resume))
        except CorruptFile as error:
            # Raised before the first pass, and by nothing but a checkpoint.
            reason = error.message
        yield _without_checkpoint(job, workplace, reason)
    return (yield from go(None))


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
