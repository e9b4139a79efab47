"""The runner of `tag` jobs: a corpus labelled by one version, written to a file that is stored when the job ends."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from core import specs, warm
from core.corpus import formats
from core.evaluate.versions import tagged_corpus
from core.model.constraints import Constraints
from core.model.tagger import Tagger
from core.steps import mapped
from core.store import blobs, corpora, jobs, references
from core.store.jobs import JobRow
from core.store.references import Target
from worker import inputs
from worker.context import Note, Running, Said, Workplace
from worker.evaluate import Step

#: How much of the work tagging is; the rest is writing.
TAGGING = 0.5
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class TagOutcome:
    """What was written, and by which version."""

    job_id: str
    target: Target
    path: Path
    result: dict[str, Any]
    serves = False

    def store(self, conn: Connection) -> dict[str, Any]:
        """Store the output beside the end of the job."""
        stored = blobs.write(conn, jobs.output_id(self.job_id), self._chunks())
        return {**self.result, "size_bytes": stored.size_bytes, "sha256": stored.sha256}

    def _chunks(self) -> Iterator[bytes]:
        with self.path.open("rb") as source:
            while chunk := source.read(READ_BYTES):
                yield chunk


def run_tag(job: JobRow, workplace: Workplace) -> Running:
    """Label the corpus that the job names, then write it."""
    spec = inputs.spec_of(job, specs.TagSpec)
    with workplace.db.read() as conn:
        target = references.resolve(conn, spec.model, "/model")
        row = corpora.get(conn, spec.corpus)
    corpus = yield from inputs.corpus(workplace, spec.corpus)
    yield Step(0.0, "making the kernels ready", "tag")
    warm.serving()
    path = yield from inputs.model_file(workplace, target)
    tagger = Tagger.open(path, target.sha256)
    constraints = None if spec.valid is None else Constraints(valid=spec.valid)
    steps = tagged_corpus(tagger, corpus, posterior=spec.decode == "posterior", constraints=constraints)
    tagged = yield from mapped(steps, lambda done: Step(TAGGING * done, phase="tag"))
    path.unlink()
    yield Note(f"{target} has labelled {corpus.tokens} tokens")
    name = spec.format or row.format
    options = formats.writing_options(row.format, row.options, name, spec.options)
    out = workplace.scratch / "output"
    yield from _written(formats.write(tagged, name, options), out)
    result = {
        "model": target.model,
        "version": target.version,
        "corpus": row.id,
        "format": name,
        "media_type": formats.media_type(name),
        "sentences": corpus.sentences,
        "tokens": corpus.tokens,
    }
    return TagOutcome(job.id, target, out, result)


def _written(chunks: Iterator[bytes], path: Path) -> Generator[Said, None, None]:
    with path.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
            yield None
