"""The runners of jobs that make several runs: `compare` and `tune`."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from core import specs
from core.experiments import compare, tune
from core.store.jobs import JobRow
from worker import inputs
from worker.context import Running, Workplace
from worker.train import TrainOutcome, kernels_ready, outcome_of


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """A table, and perhaps a version trained with the best spec of it."""

    result: dict[str, Any]
    trained: TrainOutcome | None = None

    @property
    def serves(self) -> bool:
        return self.trained is not None

    def store(self, conn: Connection) -> dict[str, Any]:
        """Publish the version, if there is one."""
        return self.result if self.trained is None else self.result | {"trained": self.trained.store(conn)}


def run_compare(job: JobRow, workplace: Workplace) -> Running:
    """Compare trainers as the spec of the job says."""
    spec = inputs.spec_of(job, specs.CompareSpec)
    corpus = yield from inputs.corpus(workplace, spec.corpus)
    dev = None
    if isinstance(spec.dev, specs.DevCorpus):
        dev = yield from inputs.corpus(workplace, spec.dev.corpus)
    lexicons = yield from inputs.lexicons_of(workplace, spec)
    for _, learning in spec.runs():
        yield from kernels_ready(learning.trainer)
    return TableOutcome(
        (
            yield from inputs.resumed(
                job,
                workplace,
                lambda resume: compare.compare(spec, corpus, dev, lexicons=lexicons, resume=resume),
            )
        )
    )


def run_tune(job: JobRow, workplace: Workplace) -> Running:
    """Tune as the spec of the job says, and train with what was found if it asks for that."""
    spec = inputs.spec_of(job, specs.TuneSpec)
    corpus = yield from inputs.corpus(workplace, spec.corpus)
    lexicons = yield from inputs.lexicons_of(workplace, spec)
    yield from kernels_ready(spec.trainer)
    tuned = yield from inputs.resumed(
        job, workplace, lambda resume: tune.tune(spec, corpus, lexicons=lexicons, resume=resume)
    )
    if tuned.final is None or tuned.trained is None:
        return TableOutcome(tuned.result)
    return TableOutcome(tuned.result, outcome_of(job, workplace, tuned.final, tuned.trained))
