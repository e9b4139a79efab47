"""The same spec for another number of passes, of every trainer."""

from typing import get_args

import pytest
from pydantic import TypeAdapter

from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.registry import AnyTrainerSpec

KINDS = sorted(
    get_args(spec.model_fields["kind"].annotation)[0] for spec in get_args(get_args(AnyTrainerSpec)[0])
)


def spec_of(**body: object) -> TrainerSpec:
    made: TrainerSpec = TypeAdapter(AnyTrainerSpec).validate_python(body)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_every_trainer_can_be_given_any_number_of_passes(kind: str) -> None:
    spec = spec_of(kind=kind)
    for passes in (1, 2, 3, 7, spec.total_passes):
        made = spec.with_total_passes(passes)
        least = {"two-stage": 2, "sparseptron": 6}.get(kind, 1)
        assert made.total_passes == max(least, passes)
        # Valid as posted, and nothing else has changed.
        assert spec_of(**made.model_dump()) == made
    assert spec.with_total_passes(spec.total_passes) == spec


def test_a_first_stage_that_is_too_long_is_shortened() -> None:
    spec = spec_of(kind="two-stage", passes=12, first={"kind": "sgd-l1", "passes": 10}, l1=0.7)
    assert [spec.with_total_passes(n).first.passes for n in (12, 11, 10, 3, 2, 1)] == [10, 10, 9, 2, 1, 1]  # type: ignore[attr-defined]
    assert [spec.with_total_passes(n).passes for n in (12, 3, 1)] == [12, 3, 2]
    assert spec.with_total_passes(3).l1 == 0.7  # type: ignore[attr-defined]


def test_averaging_starts_within_the_run() -> None:
    spec = spec_of(kind="asgd", passes=12, start=8.0)
    assert [spec.with_total_passes(n).start for n in (12, 9, 8, 1)] == [8.0, 8.0, None, None]  # type: ignore[attr-defined]


def test_the_refit_gets_the_passes_that_the_selection_leaves() -> None:
    spec = spec_of(kind="sparseptron", passes=4, refit={"kind": "asgd", "passes": 10, "start": 5.0})
    made = [spec.with_total_passes(n) for n in (14, 9, 4, 1)]
    assert [(each.passes, each.refit.passes, each.refit.start) for each in made] == [  # type: ignore[attr-defined]
        (4, 10, 5.0), (4, 5, None), (4, 1, None), (4, 1, None),
    ]  # fmt: skip
