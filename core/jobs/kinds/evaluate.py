"""`evaluate`: score model versions on a labelled corpus."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.names import ModelReference
from tagsmith.core.base.steps import mapped
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.evaluate.labels import disjoint_labels
from tagsmith.core.evaluate.spans import Metrics
from tagsmith.core.evaluate.trees import TreeMetrics
from tagsmith.core.jobs.input_checks import InputChecks
from tagsmith.core.jobs.kind import Example, JobKind, Prepared, Result, Stored
from tagsmith.core.jobs.resources import JobResources
from tagsmith.core.jobs.runner_interface import JobRun, Note, Step
from tagsmith.core.jobs.spec import JobSpec
from tagsmith.core.learn.run.spec import Seed
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import evaluation, warm
from tagsmith.core.pipeline.experiments.table import csv_of
from tagsmith.core.registry import evaluations
from tagsmith.core.registry.evaluations import NewEvaluation
from tagsmith.core.registry.references import Target
from tagsmith.core.store.ids import CorpusReference

#: Every pair is compared: 16 versions make 120 pairs.
MAX_MODELS = 16

_METRICS = (
    "precision", "recall", "f1", "accuracy", "correct", "gold", "predicted", "tokens", "tokens_correct",
    "sentences", "sentences_correct",
)  # fmt: skip
_TREE_METRICS = (
    "uas", "las", "uas_without_punctuation", "las_without_punctuation", "tokens", "heads_correct", "arcs_correct",
    "words", "words_heads_correct", "words_arcs_correct", "sentences", "sentences_correct",
)  # fmt: skip


class EvaluateSpec(JobSpec):
    """Score versions on a corpus and, for each pair, test whether the difference is statistically significant.

    The paired bootstrap of F1, or of UAS for parsers, draws `resamples` samples of the sentences. Its interval has the
    level `confidence`.
    """

    kind: Literal["evaluate"]
    models: Annotated[list[ModelReference], Field(min_length=1, max_length=MAX_MODELS)]
    corpus: CorpusReference
    resamples: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    confidence: Annotated[float, Field(ge=0.5, le=0.999)] = 0.95
    seed: Seed = 1

    @field_validator("models")
    @classmethod
    def _models_differ(cls, models: list[str]) -> list[str]:
        if len(set(models)) < len(models):
            raise ValueError("A model occurs twice. Remove one of the two.")
        return models


class Evaluation(Result):
    """The metrics and mistakes of each version, and the significance tests of each pair."""

    corpus: str
    corpus_name: str
    models: list[dict[str, Any]]
    pairs: list[dict[str, Any]]
    #: Why scores may be low, such as labels that the model does not have.
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class _Scored:
    """The result, and the scores to be stored with each version."""

    result: dict[str, Any]
    scores: list[tuple[Target, NewEvaluation]]

    def store(self, conn: Connection) -> dict[str, Any]:
        for target, score in self.scores:
            evaluations.record(conn, target.model, target.version, score)
        return self.result


def _prepare(spec: EvaluateSpec, inputs: InputChecks) -> Prepared:
    corpus = inputs.labelled(spec.corpus)
    targets: list[Target] = []
    for index, reference in enumerate(spec.models):
        target = inputs.version(reference, f"/models/{index}")
        if inputs.parses(target) != corpus.trees:
            reason = evaluation.structures_differ(str(target), parses=not corpus.trees)
            fault = Fault(reason, pointer=f"/models/{index}")
            raise Invalid("A version does not fit the corpus.", [fault], code="structures_differ")
        if target in targets:
            fault = Fault(
                f"{reference} is {target}, which occurs already. Remove one of the two.",
                pointer=f"/models/{index}",
            )
            raise Invalid("The spec names a version twice.", [fault], code="same_version")
        targets.append(target)
    names = {target.model for target in targets}
    return Prepared(
        spec=spec.model_copy(update={"models": [str(target) for target in targets]}),
        tokens=corpus.tokens * len(targets),
        model=names.pop() if len(names) == 1 else None,
    )


def _run(spec: EvaluateSpec, resources: JobResources) -> JobRun:
    """Score the versions with one model in memory at a time, then compare each pair."""
    targets = [resources.version(text, f"/models/{i}") for i, text in enumerate(spec.models)]
    corpus = yield from resources.corpus(spec.corpus)
    corpus_labels = (
        corpus.label_names if corpus.trees is None else corpus.trees.relations.vocabulary.strings()
    )
    yield Step("evaluate", 0.0, "making the kernels ready")
    warm.evaluation()
    parts = len(targets) + 1
    taggings, scored, scores, warnings = [], [], [], list[str]()
    for number, target in enumerate(targets):
        path = yield from resources.model_file(target)
        tagger = Tagger.open(path, target.sha256)
        steps = evaluation.tag_corpus(str(target), tagger, corpus, resources.settings.job_memory)
        tagging = yield from mapped(steps, partial(_step, number, parts))
        path.unlink()
        taggings.append(tagging)
        metrics, metric = tagging.metrics.as_dict(), tagging.metrics.score
        scores.append((target, NewEvaluation(spec.corpus, None, metric, metrics, resources.job.id)))
        scored.append(
            {
                "model": target.model,
                "version": target.version,
                "sha256": target.sha256,
                "metric": metric,
                "score": tagging.metrics.value,
                "metrics": metrics,
                "types": evaluations.types_of(metrics),
                "confusion": tagging.confusion,
                "wrong_sentences": tagging.wrong_sentences,
            }
        )
        known = tagger.model.labels if corpus.trees is None else tagger.model.labels[1:]
        warning = disjoint_labels(corpus_labels, known, of_model=str(target)) if known else None
        if warning is not None:
            warnings.append(warning)
            yield Note(warning, level="warning")
        yield Note(f"{target}: {_said(tagging.metrics)}")
    tests = evaluation.compare_all(taggings, spec.resamples, spec.confidence, spec.seed)
    pairs = yield from mapped(tests, partial(_step, parts - 1, parts))
    row = resources.corpus_row(spec.corpus)
    result = Evaluation(corpus=row.id, corpus_name=row.name, models=scored, pairs=pairs, warnings=warnings)
    return _Scored(result.stored(), scores)


def _names(corpus: Corpus) -> list[str]:
    """Return the labels or the relations of a corpus."""
    return corpus.label_names if corpus.trees is None else corpus.trees.relations.vocabulary.strings()


def _step(before: int, parts: int, done: float) -> Step:
    """Convert the progress of one part to the progress of the job."""
    return Step("evaluate", (before + done) / parts)


def _said(metrics: Metrics | TreeMetrics) -> str:
    if isinstance(metrics, Metrics):
        return f"F1 {metrics.f1:.2f}, accuracy {metrics.accuracy:.2f}"
    return f"UAS {metrics.uas:.2f}" + ("" if metrics.las is None else f", LAS {metrics.las:.2f}")


def _table(result: Stored) -> str:
    """One row per version."""
    models = result["models"]
    names = _TREE_METRICS if models[0].get("metric") == "uas" else _METRICS
    rows = [[row["model"], row["version"], *(row["metrics"][name] for name in names)] for row in models]
    return csv_of(["model", "version", *names], rows)


KIND = JobKind(
    spec=EvaluateSpec,
    result=Evaluation,
    examples={
        "evaluate": Example(
            "Score two versions and test whether they differ",
            {"kind": "evaluate", "models": ["chunker:1", "chunker@champion"], "corpus": "crp_01hzy3m9k4t7"},
        )
    },
    prepare=_prepare,
    run=_run,
    table=_table,
    position=40,
)
