"""Unknown names: the nearest known one is suggested, and the known ones are listed."""

import doctest
from typing import Any

import pytest

from tagsmith.core.base import names, suggest
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.suggest import MAX_LISTED, did_you_mean, unknown
from tagsmith.core.jobs.kinds import parse_job

TRAIN: dict[str, Any] = {"kind": "train", "model": "m", "corpus": "crp_1"}


def fault(**fields: Any) -> tuple[str | None, str]:
    with pytest.raises(Invalid) as caught:
        parse_job({**TRAIN, **fields})
    (found,) = caught.value.faults
    return found.pointer, found.reason


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("lbgfs", ["lbfgs", "owlqn"], "lbfgs"),
        ("sgd_l1", ["sgd", "sgd-l1"], "sgd-l1"),
        ("Passes", ["passes"], "passes"),
        ("ner", ["ner"], None),
        ("ner", ["ner", "ner2"], "ner2"),
        ("completely-else", ["lbfgs", "owlqn"], None),
        ("", ["a"], None),
    ],
)
def test_the_nearest_name_is_suggested(name: str, known: list[str], meant: str | None) -> None:
    assert did_you_mean(name, known) == meant


def test_the_examples_of_the_modules_are_true() -> None:
    for module, examples in ((suggest, 2), (names, 1)):
        found = doctest.testmod(module)
        assert (found.failed, found.attempted) == (0, examples)


def test_a_long_list_and_a_long_name_are_cut() -> None:
    known = [f"name-{i}" for i in range(MAX_LISTED + 3)]
    said = unknown("field", "x" * 1000, known)
    assert said.startswith("Unknown field.")
    assert said.endswith(f"name-{MAX_LISTED - 1} and 3 more.")


def test_an_unknown_field_of_a_job_names_the_known_ones() -> None:
    pointer, reason = fault(sed=1)
    assert pointer == "/sed"
    assert reason.startswith("Unknown field `sed`; did you mean `seed`? Known: ")
    assert "trainer" in reason


def test_an_unknown_field_of_a_trainer_names_those_of_that_trainer() -> None:
    pointer, reason = fault(trainer={"kind": "sgd-l1", "pases": 3})
    assert pointer == "/trainer/pases"
    assert reason.startswith("Unknown field `pases`; did you mean `passes`? Known: ")
    assert "l1" in reason
    assert "memory" not in reason  # of another trainer


def test_an_unknown_field_inside_a_nested_spec_names_those_of_that_spec() -> None:
    pointer, reason = fault(trainer={"kind": "two-stage", "first": {"kind": "sgd-l1", "L1": 3}})
    assert pointer == "/trainer/first/L1"
    assert "did you mean `l1`?" in reason
    pointer, reason = fault(features={"presets": "ner"})
    assert pointer == "/features/presets"
    assert "did you mean `preset`?" in reason


def test_an_unknown_trainer_preset_or_kind_of_job_is_suggested() -> None:
    assert fault(trainer={"kind": "lbgfs"})[1].startswith(
        "Unknown kind `lbgfs`; did you mean `lbfgs`? Known: "
    )
    assert fault(features={"preset": "nre"})[1].startswith("Unknown preset `nre`; did you mean `ner`?")
    assert fault(kind="trian")[1].startswith("Unknown kind `trian`; did you mean `train`?")


def test_a_penalty_that_a_trainer_does_not_have_names_the_trainer_that_does() -> None:
    assert fault(trainer={"kind": "lbfgs", "l1": 1.0})[1].endswith("use the trainer `owlqn`.")
    assert fault(trainer={"kind": "sgd", "l1": 1.0})[1].endswith("use the trainer `sgd-l1`.")
