"""`compare`: train several trainers on one corpus and evaluate them on one dev set."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast

from pydantic import Field, StringConstraints, ValidationInfo, create_model, field_validator

from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.input_checks import InputChecks
from tagsmith.core.jobs.kind import Example, JobKind, Prepared, Result, Stored
from tagsmith.core.jobs.resources import JobResources
from tagsmith.core.jobs.runner_interface import JobRun, ResultOnly
from tagsmith.core.jobs.spec import Dev, JobSpec
from tagsmith.core.learn.run.spec import Learning, Seed
from tagsmith.core.learn.run.stopping import PatienceStop, Stop
from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.registry import SPECS
from tagsmith.core.pipeline.experiments.compare import compare
from tagsmith.core.pipeline.experiments.plot import Curve, svg_of
from tagsmith.core.pipeline.experiments.table import csv_of, error_of
from tagsmith.core.store.ids import CorpusReference

#: For more runs, use a `tune` job.
MAX_TRAINERS = 32

#: Before and after the scores.
_FIRST_COLUMNS = ("name", "trainer", "passes", "seconds", "objective", "active_features", "score")
_LAST_COLUMNS = ("passes_to_near", "stop_reason")
#: The scores of each row, by the metric that the trainers are compared by.
_SCORES = {"f1": ("f1", "accuracy"), "accuracy": ("f1", "accuracy"), "uas": ("uas", "las")}
_TITLES = {"f1": "F1 on dev, %", "accuracy": "accuracy on dev, %", "uas": "UAS on dev, %"}

#: The name of a table row and a legend entry. It begins with a letter or digit, so that no spreadsheet reads it as
#: a formula.
RunName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][^\x00-\x1f\x7f]{0,63}$")]


def _named(spec: type[TrainerSpec]) -> type[TrainerSpec]:
    """Return a trainer spec with an optional name."""
    name: Any = (RunName | None, Field(None, description="Of its row and its curve; the kind by default."))
    return create_model(f"Named{spec.__name__}", __base__=spec, __doc__=spec.__doc__, name=name)


if TYPE_CHECKING:

    class NamedTrainer(TrainerSpec):
        """A trainer spec of any kind, with an optional name."""

        name: str | None
else:
    NamedTrainer = Annotated[
        Union[tuple(_named(spec) for spec in SPECS)],  # noqa: UP007  # built at run time
        Field(discriminator="kind"),
    ]


class CompareSpec(JobSpec):
    """Run several trainers on the same corpus, features and dev set, and tabulate their results.

    `threads` applies to trainers that can use several threads; the others use one.
    """

    kind: Literal["compare"]
    corpus: CorpusReference
    dev: Dev
    features: FeatureSpec = FeatureSpec()
    trainers: Annotated[list[NamedTrainer], Field(min_length=1, max_length=MAX_TRAINERS)]
    seed: Seed = 1
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    stop: Stop = PatienceStop()
    objective: Literal["estimate", "exact"] = "estimate"

    @field_validator("trainers")
    @classmethod
    def _names_differ(cls, trainers: list[NamedTrainer]) -> list[NamedTrainer]:
        counts = Counter(trainer.name for trainer in trainers if trainer.name is not None)
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            raise ValueError(f"Two trainers have the name {twice[0]}. Give each a different one.")
        return trainers

    @field_validator("threads")
    @classmethod
    def _check_threads(cls, threads: int, info: ValidationInfo) -> int:
        trainers = info.data.get("trainers")
        if threads > 1 and trainers is not None and not any(trainer.uses_threads for trainer in trainers):
            raise ValueError("None of the trainers uses more than one thread. Set threads to 1.")
        return threads

    def runs(self) -> list[tuple[str, Learning]]:
        """Return the runs in order, with unique names."""
        return [
            (name, self._learning(trainer))
            for name, trainer in zip(self._names(), self.trainers, strict=True)
        ]

    def _learning(self, named: NamedTrainer) -> Learning:
        kind = cast("type[TrainerSpec]", type(named).__base__)
        trainer = kind.model_validate(named.model_dump(exclude={"name"}))
        return Learning(
            features=self.features,
            trainer=trainer,
            seed=self.seed,
            threads=self.threads if trainer.uses_threads else 1,
            stop=self.stop,
            objective=self.objective,
        )

    def _names(self) -> list[str]:
        """Return the given names. The default is the kind, numbered if it occurs more than once."""
        names = [trainer.name for trainer in self.trainers]
        taken = {name for name in names if name is not None}
        for index, trainer in enumerate(self.trainers):
            if names[index] is None:
                options = (
                    trainer.kind if number == 1 else f"{trainer.kind} {number}" for number in range(1, 99)
                )
                names[index] = next(name for name in options if name not in taken)
                taken.add(cast(str, names[index]))
        return cast(list[str], names)


class Comparison(Result):
    """One table row and one curve per trainer. `score` names the metric that the trainers are compared by."""

    score: str
    table: list[dict[str, Any]]
    curves: list[dict[str, Any]]


def _prepare(spec: CompareSpec, inputs: InputChecks) -> Prepared:
    corpus = inputs.labelled(spec.corpus)
    spec.features.resolve(corpus.columns, trees=corpus.trees)
    inputs.dev(spec.dev, corpus)
    inputs.memory(spec.features, corpus)
    inputs.lexicons([spec.features])
    passes = sum(trainer.total_passes for trainer in spec.trainers)
    return Prepared(spec=spec, tokens=corpus.tokens * passes)


def _run(spec: CompareSpec, resources: JobResources) -> JobRun:
    corpus = yield from resources.corpus(spec.corpus)
    dev = yield from resources.dev(spec.dev)
    lexicons = yield from resources.lexicons([spec.features])
    runs = spec.runs()
    for _, learning in runs:
        yield from resources.kernels(learning.trainer)
    compared = yield from resources.resumed(
        lambda resume: compare(runs, corpus, dev, lexicons=lexicons, resume=resume)
    )
    return ResultOnly(Comparison(**compared).stored())


def _table(result: Stored) -> str:
    """One row per trainer."""
    columns = [*_FIRST_COLUMNS, *_SCORES[result.get("score", "f1")], *_LAST_COLUMNS]
    rows = [[*(row.get(name) for name in columns), error_of(row)] for row in result["table"]]
    return csv_of([*columns, "error"], rows)


def _plot(result: Stored) -> str:
    curves = [Curve(each["name"], each["points"]) for each in result["curves"]]
    return svg_of(curves, _TITLES[result["score"]])


KIND = JobKind(
    spec=CompareSpec,
    result=Comparison,
    examples={
        "compare": Example(
            "Compare trainers on one corpus and dev set",
            {
                "kind": "compare",
                "corpus": "crp_01hzy3m5v8q2",
                "dev": {"fraction": 0.1},
                "features": {"preset": "chunking"},
                "trainers": [
                    {"kind": "adf"},
                    {"kind": "sgd"},
                    {"kind": "averaged-perceptron", "name": "perceptron, averaged"},
                    {"kind": "lbfgs", "passes": 100},
                ],
                "stop": {"kind": "flat", "window": 5, "deviation": 0.01},
            },
        )
    },
    prepare=_prepare,
    run=_run,
    table=_table,
    plot=_plot,
    position=20,
)
