"""`tune`: search over fields of a spec, scored on a dev corpus or by cross-validation."""

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationInfo, field_validator, model_validator
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.base.names import Name
from tagsmith.core.base.spec import Spec, pointer, validated
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.input_checks import InputChecks
from tagsmith.core.jobs.kind import Example, JobKind, Prepared, Result, Stored
from tagsmith.core.jobs.kinds.train import NewModel, TrainSpec
from tagsmith.core.jobs.resources import JobResources
from tagsmith.core.jobs.runner_interface import JobRun
from tagsmith.core.jobs.spec import DevCorpus, JobSpec, Promotion
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.pipeline.experiments import folds
from tagsmith.core.pipeline.experiments.search import Search, Value
from tagsmith.core.pipeline.experiments.table import csv_of, error_of
from tagsmith.core.pipeline.experiments.tune import Folds, Scoring, TuneCandidate, for_whole_corpus, tune
from tagsmith.core.store.ids import CorpusReference


class TuneTrain(Spec):
    """After the search, train a version with the best spec on the whole corpus."""

    model: Name
    promote: Name | None = None


#: Parts that the corpus is split into if the job has no dev corpus.
FOLDS = 4


class TuneSpec(JobSpec, Learning):
    """Search for the fields of a spec that score best, on `dev` or else in k-fold cross-validation (4 `folds`).

    `search.fields` names fields by dotted path: `trainer.*`, `features.*`, `stop.*`. All other fields of the job are
    the base spec.
    """

    kind: Literal["tune"]
    corpus: CorpusReference
    search: Search
    dev: DevCorpus | None = None
    folds: Annotated[int, Field(ge=2, le=20)] | None = None
    train: TuneTrain | None = None

    @model_validator(mode="before")
    @classmethod
    def _folds_without_dev(cls, body: Any) -> Any:
        if isinstance(body, dict) and body.get("dev") is None and body.get("folds") is None:
            return {**body, "folds": FOLDS}
        return body

    @field_validator("folds")
    @classmethod
    def _folds_or_dev(cls, folds: int | None, info: ValidationInfo) -> int | None:
        if folds is not None and info.data.get("dev") is not None:
            raise ValueError("Give a dev corpus or folds, not both.")
        return folds

    @model_validator(mode="after")
    def _candidates_are_valid(self) -> "TuneSpec":
        for values in self.search.probes():
            self._with(values)
        for candidate in self.candidates:
            # Check before the search that the best spec can be trained, even if its best pass is the first.
            for_whole_corpus(candidate.learning, passes=1)
        return self

    @cached_property
    def candidates(self) -> tuple[TuneCandidate, ...]:
        """Return every setting to try, in table order."""
        draws = self.search.draws(self.seed)
        return tuple(TuneCandidate(i, values, self._with(values)) for i, values in enumerate(draws, start=1))

    def check_columns(self, columns: int | Sequence[str], *, trees: bool = False) -> None:
        """Raise Invalid if the features of a candidate name a column that the corpus lacks, or are not for trees."""
        for candidate in self.candidates:
            try:
                candidate.learning.features.resolve(columns, trees=trees)
            except Invalid as error:
                raise self._at_searched_field(error, candidate.values) from None

    def _with(self, values: Mapping[str, Value]) -> Learning:
        """Return the spec with the given fields set; Invalid names the wrong value and its field."""
        body = {name: copy.deepcopy(value) for name, value in self._base.items()}
        for path, value in values.items():
            self._set(body, path, value)
        try:
            return validated(_LEARNING, body, "The tune job")
        except Invalid as error:
            raise self._at_searched_field(error, values) from None

    @cached_property
    def _base(self) -> dict[str, Any]:
        return self.model_dump(mode="json", include=set(Learning.model_fields))

    def _set(self, body: dict[str, Any], path: str, value: Value) -> None:
        *parents, leaf = path.split(".")
        target: Any = body
        for parent in parents:
            target = target.get(parent) if isinstance(target, dict) else None
        if path in ("trainer.kind", "stop.kind"):
            raise _invalid_field(
                path, "A kind cannot be tuned. To compare kinds of trainers, use a compare job."
            )
        if not isinstance(target, dict):
            raise _invalid_field(
                path, f"The spec has no object at {'.'.join(parents)} in which to set {leaf}."
            )
        target[leaf] = value

    def _at_searched_field(self, error: Invalid, values: Mapping[str, Value]) -> Invalid:
        """Return the same error, located at the searched field that caused it, or at all possible ones."""
        faults = []
        for fault in error.faults:
            field = (fault.pointer or "").strip("/").replace("/", ".")
            near = [
                path
                for path in values
                if f"{path}.".startswith(f"{field}.") or f"{field}.".startswith(f"{path}.")
            ]
            exact = [path for path in near if path == field]
            settings = ", ".join(f"{path} = {_shown(values[path])}" for path in exact or near or values)
            reason = f"{settings}: {fault.reason}"
            if near:
                where = pointer(("search", "fields", exact[0] if exact else near[0]))
                faults.append(replace(fault, reason=reason, pointer=where, type=FaultType.SEARCHED_VALUE))
            else:
                faults.append(replace(fault, reason=reason))
        return Invalid(error.message, faults, code=error.code)


def _shown(value: Value) -> str:
    """Format a value; long values are shortened in the middle."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:40]}...{text[-10:]}"


_LEARNING: TypeAdapter[Learning] = TypeAdapter(Learning)


def _invalid_field(path: str, reason: str) -> Invalid:
    where = pointer(("search", "fields", path))
    fault = Fault(f"{path}: {reason}", pointer=where, type=FaultType.SEARCHED_VALUE)
    return Invalid("The tune job is not valid.", [fault], code="invalid_spec")


class SearchResult(Result):
    """One table row per candidate, the best candidate with its spec, and the version trained with it, if any."""

    score: str
    #: None if the candidates were scored on a dev corpus.
    folds: int | None
    table: list[dict[str, Any]]
    best: dict[str, Any]
    trained: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Searched:
    """The result of a search, and the model trained with the best spec, if any."""

    result: dict[str, Any]
    model: NewModel | None

    def store(self, conn: Connection) -> dict[str, Any]:
        result = self.result if self.model is None else self.result | {"trained": self.model.store(conn)}
        return SearchResult(**result).stored()


def _prepare(spec: TuneSpec, inputs: InputChecks) -> Prepared:
    corpus = inputs.labelled(spec.corpus)
    spec.check_columns(corpus.columns, trees=corpus.trees)
    inputs.dev(spec.dev, corpus)
    if spec.folds is not None:
        folds.check(corpus.sentences, spec.folds)
    for features in _features(spec):
        inputs.memory(features, corpus)
    inputs.lexicons(_features(spec))
    runs = [candidate.learning.trainer.total_passes for candidate in spec.candidates]
    passes = (spec.folds or 1) * sum(runs) + (max(runs) if spec.train is not None else 0)
    return Prepared(
        spec=spec,
        tokens=corpus.tokens * passes,
        model=None if spec.train is None else spec.train.model,
    )


def _run(spec: TuneSpec, resources: JobResources) -> JobRun:
    corpus = yield from resources.corpus(spec.corpus)
    scoring: Scoring
    if spec.dev is not None:
        scoring = yield from resources.corpus(spec.dev.corpus)
    else:
        assert spec.folds is not None  # the spec has a dev corpus or folds
        scoring = Folds(spec.folds, spec.seed)
    lexicons = yield from resources.lexicons(_features(spec))
    yield from resources.kernels(spec.trainer)
    tuned = yield from resources.resumed(
        lambda resume: tune(
            spec.candidates,
            corpus,
            scoring=scoring,
            train_best=spec.train is not None,
            lexicons=lexicons,
            resume=resume,
        )
    )
    if spec.train is None or tuned.trained is None:
        return _Searched(tuned.result, None)
    # The version is stored with the spec of an equivalent `train` job.
    wanted = {"kind": "train", "corpus": spec.corpus, **spec.train.model_dump(mode="json")}
    if spec.dev is not None:
        wanted["dev"] = spec.dev.model_dump(mode="json")
    final = TrainSpec.model_validate({**tuned.best.model_dump(mode="json"), **wanted})
    return _Searched(tuned.result, (yield from NewModel.of(final, tuned.trained, resources)))


def _features(spec: TuneSpec) -> list[FeatureSpec]:
    """Return the distinct features of the candidates."""
    features = (candidate.learning.features for candidate in spec.candidates)
    return list({each.model_dump_json(): each for each in features}.values())


def _promotion(spec: TuneSpec) -> Promotion | None:
    if spec.train is None or spec.train.promote is None:
        return None
    return Promotion(spec.train.model, spec.train.promote, spec.dev, "/train/promote")


def _table(result: Stored) -> str:
    """One row per candidate."""
    table, folds = result["table"], result["folds"]
    fields = sorted(table[0]["values"])
    parts = ["dev"] if folds is None else [f"fold {i}" for i in range(1, int(folds) + 1)]
    header = ["candidate", *fields, "mean", "deviation", *parts]
    rows = [
        [
            row["candidate"],
            *(row["values"][field] for field in fields),
            row["mean"],
            row["deviation"],
            *(row["scores"] or [None] * len(parts)),
            row["passes"],
            row["seconds"],
            error_of(row),
        ]
        for row in table
    ]
    return csv_of([*header, "passes", "seconds", "error"], rows)


KIND = JobKind(
    spec=TuneSpec,
    result=SearchResult,
    examples={
        "tune": Example(
            "Search a grid by 4-fold cross-validation, then train with the best",
            {
                "kind": "tune",
                "corpus": "crp_01hzy3m5v8q2",
                "features": {"preset": "chunking"},
                "trainer": {"kind": "sgd-l1", "passes": 10},
                "search": {
                    "kind": "grid",
                    "fields": {"trainer.l1": [0.1, 0.5, 1.0], "features.cutoff": [1, 3]},
                },
                "folds": 4,
                "train": {"model": "chunker", "promote": "champion"},
            },
        ),
        "tune at random": Example(
            "Search at random",
            {
                "kind": "tune",
                "corpus": "crp_01hzy3m5v8q2",
                "trainer": {"kind": "adf", "passes": 10},
                "search": {
                    "kind": "random",
                    "trials": 20,
                    "fields": {
                        "trainer.c": {"low": 0.01, "high": 1, "scale": "log"},
                        "features.cutoff": {"low": 1, "high": 4, "integer": True},
                    },
                },
            },
        ),
    },
    prepare=_prepare,
    run=_run,
    promotion=_promotion,
    table=_table,
    position=30,
)
