"""`compare`: several trainers on one corpus and one dev set."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args

from pydantic import Field, StringConstraints, ValidationInfo, create_model, field_validator

from core.features.spec import FeatureSpec
from core.learn.registry import AnyTrainerSpec, uses_threads
from core.learn.trainer import TrainerSpec
from core.specs.parts import CorpusId, Dev, JobLimits, Learning, PatienceStop, Seed, Stop

#: More rows than this are for a `tune` job.
MAX_TRAINERS = 32

#: A row of a table, an entry of a legend. Begins with a letter or digit, so that no spreadsheet takes it for a formula.
RunName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][^\x00-\x1f\x7f]{0,63}$")]


def _named(spec: type[TrainerSpec]) -> type[TrainerSpec]:
    """A trainer spec that may also have a name."""
    name: Any = (RunName | None, Field(None, description="Of its row and its curve; the kind by default."))
    return create_model(f"Named{spec.__name__}", __base__=spec, __doc__=spec.__doc__, name=name)


if TYPE_CHECKING:

    class NamedTrainer(TrainerSpec):
        """A trainer spec of any kind, with a name."""

        name: str | None
else:
    NamedTrainer = Annotated[
        Union[tuple(_named(spec) for spec in get_args(get_args(AnyTrainerSpec)[0]))],  # noqa: UP007  # made, not written
        Field(discriminator="kind"),
    ]


class CompareSpec(JobLimits):
    """Run several trainers on the same corpus, features and dev set, and tabulate how they did.

    `threads` are for the trainers that can use them; the others take one.
    """

    kind: Literal["compare"]
    corpus: CorpusId
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
            raise ValueError(f"two trainers have the name {twice[0]}")
        return trainers

    @field_validator("threads")
    @classmethod
    def _threads_of_use(cls, threads: int, info: ValidationInfo) -> int:
        trainers = info.data.get("trainers")
        if threads > 1 and trainers is not None and not any(uses_threads(trainer) for trainer in trainers):
            raise ValueError("none of the trainers can use more than 1 thread")
        return threads

    def runs(self) -> list[tuple[str, Learning]]:
        """What to run, in order, under names that differ."""
        return [
            (name, self._learning(trainer))
            for name, trainer in zip(self._names(), self.trainers, strict=True)
        ]

    def _learning(self, named: NamedTrainer) -> Learning:
        kind = cast("type[TrainerSpec]", type(named).__base__)
        trainer = kind.model_validate(named.model_dump(exclude={"name"}))
        return Learning(
            features=self.features,
            trainer=trainer,  # type: ignore[arg-type]  # one of the union, as it was posted
            seed=self.seed,
            threads=self.threads if uses_threads(trainer) else 1,
            stop=self.stop,
            objective=self.objective,
        )

    def _names(self) -> list[str]:
        """The names given; else the kind, numbered where it would come twice."""
        names = [trainer.name for trainer in self.trainers]
        taken = {name for name in names if name is not None}
        for place, trainer in enumerate(self.trainers):
            if names[place] is None:
                options = (
                    trainer.kind if number == 1 else f"{trainer.kind} {number}" for number in range(1, 99)
                )
                names[place] = next(name for name in options if name not in taken)
                taken.add(cast(str, names[place]))
        return cast(list[str], names)
