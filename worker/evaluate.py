"""The runner of `evaluate` jobs: versions on a corpus, one model in memory at a time."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from core import specs, warm
from core.evaluate import versions
from core.model.tagger import Tagger
from core.steps import mapped
from core.store import references
from core.store.jobs import JobRow
from worker import inputs
from worker.context import Note, Running, Workplace


@dataclass(frozen=True, slots=True)
class Step:
    """How far the work with finished versions is."""

    fraction: float
    message: str = ""
    phase: str = "evaluate"
    checkpoint = None

    @property
    def event(self) -> str | None:
        return "message" if self.message else None

    def as_dict(self) -> dict[str, Any]:
        """The `progress` of the HTTP contract."""
        return {"phase": self.phase, "fraction": round(self.fraction, 6)}


@dataclass(frozen=True, slots=True)
class EvaluateOutcome:
    """Scores and tests; nothing to store but the result itself."""

    result: dict[str, Any]
    serves = False

    def store(self, _conn: Connection) -> dict[str, Any]:
        return self.result


def run_evaluate(job: JobRow, workplace: Workplace) -> Running:
    """Score the versions that the job names, then compare each two."""
    spec = inputs.spec_of(job, specs.EvaluateSpec)
    with workplace.db.read() as conn:
        targets = [references.resolve(conn, text, f"/models/{i}") for i, text in enumerate(spec.models)]
    corpus = yield from inputs.corpus(workplace, spec.corpus)
    yield Step(0.0, "making the kernels ready")
    warm.evaluation()
    parts = len(targets) + 1
    taggings, scored = [], []
    for number, target in enumerate(targets):
        path = yield from inputs.model_file(workplace, target)
        steps = versions.tag_corpus(str(target), Tagger.open(path, target.sha256), corpus)
        tagging = yield from mapped(steps, partial(_step, number, parts))
        path.unlink()
        taggings.append(tagging)
        scored.append(
            {
                "model": target.model,
                "version": target.version,
                "sha256": target.sha256,
                "metrics": tagging.metrics.as_dict(),
            }
        )
        yield Note(f"{target}: F1 {tagging.metrics.f1:.2f}, accuracy {tagging.metrics.accuracy:.2f}")
    tests = versions.compare_all(taggings, spec.resamples, spec.confidence, spec.seed)
    pairs = yield from mapped(tests, partial(_step, parts - 1, parts))
    return EvaluateOutcome({"corpus": spec.corpus, "models": scored, "pairs": pairs})


def _step(before: int, parts: int, done: float) -> Step:
    """So much of one part of the job as a part of the whole."""
    return Step((before + done) / parts)
