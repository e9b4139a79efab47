from typing import get_args

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.jobs.kinds import parse_job
from tagsmith.core.jobs.kinds.tag import FormatName
from tagsmith.core.learn.trainers.sgd.sgd_l1 import SgdL1Spec

LEAST = {"kind": "train", "model": "chunker", "corpus": "crp_1"}


def test_the_least_that_can_be_said_is_enough():
    spec = parse_job(LEAST)
    assert (spec.trainer.kind, spec.trainer.passes, spec.seed, spec.threads) == ("sgd-l1", 30, 1, 1)
    assert spec.features.resolve(2).edges


def test_a_spec_survives_being_stored_as_json():
    body = {
        **LEAST,
        "dev": {"fraction": 0.1},
        "features": {
            "templates": "U00:%x[0,0]\nU01:%x[0,s]\nB",
            "derived": {"s": {"kind": "suffix", "n": 3}},
        },
        "trainer": {"kind": "sgd-l1", "l1": 1, "schedule": {"kind": "inverse", "eta0": 0.1}},
        "stop": {"patience": 5, "max_seconds": 600},
        "promote": "champion",
    }
    spec = parse_job(body)
    assert parse_job(spec.model_dump(mode="json")) == spec


#: The fields that the contract names for each kind, besides `passes`, `batch` and `tolerance`.
CONTRACT = {
    "sgd": {"l2", "schedule"},
    "sgd-l1": {"l1", "penalty", "schedule", "line_search"},
    "lbfgs": {"l2", "memory"},
    "owlqn": {"l1", "l2", "memory"},
    "two-stage": {"l1", "first", "second"},
    "adf": {"l2", "c", "alpha", "beta", "window"},
    "madf": {"l2", "a", "b", "schedule"},
    "perceptron": set(),
    "averaged-perceptron": set(),
    "pa": {"C", "variant", "costs"},
    "mira": {"C", "variant", "costs"},
    "dca": {"l2", "loss"},
    "cw": {"confidence"},
    "arow": {"r"},
    "asgd": {"l2", "schedule", "start"},
    "prox-grad": {"loss", "groups", "strength", "budget", "rank", "shrink", "every"},
    "sparseptron": {"groups", "strength", "budget", "rank", "shrink", "every", "refit", "refit_features"},
}


@pytest.mark.parametrize("kind", CONTRACT)
def test_every_trainer_has_the_fields_of_the_contract(kind):
    fields = set(parse_job({**LEAST, "trainer": {"kind": kind}}).trainer.model_dump())
    assert fields >= {"passes", "tolerance"} | CONTRACT[kind]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"model": "No Spaces"}, "/model"),
        ({"model": "../etc"}, "/model"),
        ({"model": "x" * 65}, "/model"),
        ({"corpus": "non\nsense"}, "/corpus"),
        ({"seed": -1}, "/seed"),
        ({"seed": "1"}, "/seed"),
        ({"threads": 0}, "/threads"),
        ({"threads": 2}, "/threads"),
        ({"trainer": {"kind": "lbfgs", "l1": 0.5}}, "/trainer/l1"),
        ({"trainer": {"kind": "owlqn", "l1": 0}}, "/trainer/l1"),
        ({"trainer": {"kind": "owlqn", "memory": 0}}, "/trainer/memory"),
        ({"trainer": {"kind": "mira", "variant": "II"}}, "/trainer/variant"),
        ({"trainer": {"kind": "two-stage", "l1": 0}}, "/trainer/l1"),
        ({"trainer": {"kind": "two-stage", "first": {"kind": "sgd-l1", "l1": 9}}}, "/trainer"),
        ({"trainer": {"kind": "sgd", "schedule": {"eta0": -1}}}, "/trainer/schedule/eta0"),
        ({"trainer": {"kind": "sgd-l1", "line_search": "heuristic", "batch": 2}}, "/trainer"),
        ({"init": "a b"}, "/init"),
        ({"init": "m:0"}, "/init"),
        ({"objective": "wrong"}, "/objective"),
        ({"trainer": {"kind": "sgd-l1", "l1": -0.5}}, "/trainer/l1"),
        ({"trainer": {"kind": "sgd-l1", "l1": float("nan")}}, "/trainer/l1"),
        ({"trainer": {"kind": "sgd-l1", "l1": float("inf")}}, "/trainer/l1"),
        ({"trainer": {"kind": "sgd-l1", "passes": 0}}, "/trainer/passes"),
        ({"trainer": {"kind": "sgd-l1", "passes": True}}, "/trainer/passes"),
        ({"trainer": {"kind": "sgd-l1", "penalty": "some"}}, "/trainer/penalty"),
        ({"trainer": {"kind": "sgd-l1", "schedule": {"alpha": 0}}}, "/trainer/schedule/alpha"),
        ({"trainer": {"kind": "sgd-l1", "nose": 1}}, "/trainer/nose"),
        ({"features": {"preset": "nope"}}, "/features/preset"),
        ({"features": {"cutoff": 0}}, "/features/cutoff"),
        ({"features": {"preset": "chunking", "templates": "B"}}, "/features"),
        ({"stop": {"max_seconds": 0}}, "/stop/max_seconds"),
        ({"stop": {"patience": 3}}, "/stop/patience"),
        ({"stop": {"kind": "patience", "patience": 3}}, "/stop/patience"),
        ({"stop": {"patience": 0, "dev": 1}}, "/stop/dev"),
        ({"stop": {"kind": "flat", "patience": 3}}, "/stop/patience"),
        ({"stop": {"kind": "flat", "window": 1}}, "/stop/window"),
        ({"stop": {"kind": "flat", "deviation": 0}}, "/stop/deviation"),
        ({"stop": {"window": 5}}, "/stop/window"),
        ({"stop": {"kind": "never"}}, "/stop/kind"),
        ({"stop": {"kind": None}}, "/stop/kind"),
        ({"stop": []}, "/stop/kind"),
        ({"promote": "Not OK"}, "/promote"),
        ({"extra": 1}, "/extra"),
    ],
)
def test_what_is_wrong_is_pointed_at(change, pointer):
    with pytest.raises(Invalid) as raised:
        parse_job({**LEAST, **change})
    assert raised.value.code == "invalid_spec"
    assert any(fault.pointer == pointer for fault in raised.value.faults), raised.value.faults


@pytest.mark.parametrize("kind", ["magic", "", None, 3])
def test_an_unknown_kind_of_job_is_pointed_at(kind):
    with pytest.raises(Invalid) as raised:
        parse_job({**LEAST, "kind": kind})
    assert raised.value.faults[0].pointer == "/kind"


def test_an_unknown_trainer_is_pointed_at():
    with pytest.raises(Invalid) as raised:
        parse_job({**LEAST, "trainer": {"kind": "magic"}})
    assert raised.value.faults[0].pointer == "/trainer/kind"


@pytest.mark.parametrize("dev", [{"fraction": 0}, {"fraction": 1}, {"fraction": 2.5}, {"corpus": ""}, {}])
def test_a_wrong_dev_set_is_pointed_at(dev):
    with pytest.raises(Invalid) as raised:
        parse_job({**LEAST, "dev": dev})
    assert all((fault.pointer or "").startswith("/dev") for fault in raised.value.faults)


@pytest.mark.parametrize("body", [None, [], "train", 3, {}])
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises(Invalid):
        parse_job(body)


def test_a_template_that_does_not_parse_gives_its_line():
    with pytest.raises(Invalid) as raised:
        parse_job({**LEAST, "features": {"templates": "U00:%x[0,0]\nU01:%x[0"}})
    assert raised.value.code == "invalid_template"
    assert raised.value.faults[0].line == 2


def test_a_column_the_corpus_lacks_is_named():
    spec = parse_job({**LEAST, "features": {"templates": "U00:%x[0,3]"}})
    spec.features.resolve(4)
    with pytest.raises(Invalid, match="columns that are missing"):
        spec.features.resolve(3)


COMPARE = {"kind": "compare", "corpus": "crp_1", "dev": {"fraction": 0.1}}
TUNE = {"kind": "tune", "corpus": "crp_1"}


def grid(**fields):
    return {**TUNE, "search": {"kind": "grid", "fields": fields}}


def drawn(**fields):
    return {**TUNE, "search": {"kind": "random", "trials": 30, "fields": fields}}


def test_trainers_compared_have_names_that_differ():
    trainers = [{"kind": "sgd"}, {"kind": "sgd", "name": "sgd 2"}, {"kind": "sgd"}, {"kind": "lbfgs"}]
    spec = parse_job({**COMPARE, "trainers": trainers, "threads": 2})
    assert [name for name, _ in spec.runs()] == ["sgd", "sgd 2", "sgd 3", "lbfgs"]
    assert [learning.threads for _, learning in spec.runs()] == [1, 1, 1, 2]
    assert spec.runs()[1][1].trainer == parse_job({**LEAST, "trainer": {"kind": "sgd"}}).trainer
    assert parse_job(spec.model_dump(mode="json")) == spec


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"trainers": []}, "/trainers"),
        ({"trainers": [{"kind": "sgd"}] * 33}, "/trainers"),
        ({"trainers": [{"kind": "sgd"}, {"kind": "magic"}]}, "/trainers/1/kind"),
        ({"trainers": [{"kind": "sgd", "l1": 1}]}, "/trainers/0/l1"),
        ({"trainers": [{"kind": "sgd", "name": ""}]}, "/trainers/0/name"),
        ({"trainers": [{"kind": "sgd", "name": "=1+1"}]}, "/trainers/0/name"),
        ({"trainers": [{"kind": "sgd", "name": "a"}, {"kind": "pa", "name": "a"}]}, "/trainers"),
        ({"trainers": [{"kind": "sgd"}], "threads": 2}, "/threads"),
        ({"trainers": [{"kind": "sgd"}], "dev": None}, "/dev"),
        ({"trainers": [{"kind": "sgd"}], "model": "m"}, "/model"),
    ],
)
def test_what_is_wrong_with_a_comparison_is_pointed_at(change, pointer):
    with pytest.raises(Invalid, match="compare") as raised:
        parse_job({**COMPARE, **change})
    assert any(fault.pointer == pointer for fault in raised.value.faults), raised.value.faults


def test_a_comparison_needs_a_dev_set():
    with pytest.raises(Invalid) as raised:
        parse_job({"kind": "compare", "corpus": "crp_1", "trainers": [{"kind": "sgd"}]})
    assert raised.value.faults[0].pointer == "/dev"


def test_a_grid_is_every_combination_once():
    spec = parse_job(grid(**{"trainer.l1": [0.1, 1.0, 0.1], "features.cutoff": [1, 2]}))
    assert [dict(candidate.values) for candidate in spec.candidates] == [
        {"features.cutoff": cutoff, "trainer.l1": l1} for cutoff in (1, 2) for l1 in (0.1, 1.0)
    ]
    last = spec.candidates[-1]
    assert (last.number, last.learning.features.cutoff, last.learning.trainer.l1) == (4, 2, 1.0)
    assert parse_job(spec.model_dump(mode="json")) == spec


def test_draws_hang_on_the_seed_and_stay_in_range():
    fields = {
        "trainer.l1": {"low": 0.001, "high": 10, "scale": "log"},
        "features.cutoff": {"low": 1, "high": 3, "integer": True},
        "trainer.penalty": ["cumulative", "naive"],
        "trainer.schedule.alpha": {"low": 0.5, "high": 0.9},
    }
    spec = parse_job(drawn(**fields))
    values = [candidate.values for candidate in spec.candidates]
    assert len(values) == 30
    assert {each["features.cutoff"] for each in values} == {1, 2, 3}
    assert {each["trainer.penalty"] for each in values} == {"cumulative", "naive"}
    assert all(0.001 <= each["trainer.l1"] <= 10 for each in values)
    assert 8 <= sum(each["trainer.l1"] < 0.1 for each in values) <= 22
    assert all(0.5 <= each["trainer.schedule.alpha"] <= 0.9 for each in values)
    assert values == [candidate.values for candidate in parse_job(spec.model_dump(mode="json")).candidates]
    other = parse_job({**drawn(**fields), "seed": 2})
    assert values != [candidate.values for candidate in other.candidates]
    fewer = parse_job(drawn(**{"trainer.l1": fields["trainer.l1"]}))
    assert [each["trainer.l1"] for each in values] == [each.values["trainer.l1"] for each in fewer.candidates]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"trainer.l1": [-1]}, "searched_value"),
        ({"trainer.kind": ["sgd"]}, "searched_value"),
        ({"trainer.l1": [i / 9 for i in range(300)], "trainer.batch": [1, 2]}, "searched_value"),
        ({"trainer.l1": []}, "too_short"),
    ],
)
def test_what_only_the_searched_spec_refuses_has_a_type_of_its_own(fields, kind):
    with pytest.raises(Invalid) as caught:
        parse_job(grid(**fields)).candidates  # noqa: B018  # checks them
    assert {fault.type for fault in caught.value.faults} == {kind}


def test_settings_drawn_twice_are_tried_once():
    spec = parse_job(drawn(**{"features.cutoff": [1, 2]}))
    assert sorted(candidate.values["features.cutoff"] for candidate in spec.candidates) == [1, 2]


@pytest.mark.parametrize(
    ("body", "pointer", "reason"),
    [
        (grid(**{"trainer.l1": [0.1, -1]}), "/search/fields/trainer.l1", "trainer.l1 = -1"),
        (grid(**{"trainer.nose": [1]}), "/search/fields/trainer.nose", "Unknown field"),
        (grid(**{"trainer.kind": ["sgd"]}), "/search/fields/trainer.kind", "compare"),
        (grid(**{"stop.kind": ["flat"]}), "/search/fields/stop.kind", "cannot be tuned"),
        (grid(**{"trainer.l1.x": [1]}), "/search/fields/trainer.l1.x", "no object at trainer.l1"),
        (grid(**{"features.cutoff": [0]}), "/search/fields/features.cutoff", "features.cutoff = 0"),
        (grid(**{"features.templates": ["U:%x[0"]}), "/search/fields/features.templates", "macro"),
        (
            grid(**{"features.preset": ["generic"], "features.templates": ["B"]}),
            "/search/fields/features.preset",
            "not both",
        ),
        (grid(seed=[1]), "/search/fields/seed", "pattern"),
        (grid(**{"trainer.l1": []}), "/search/fields/trainer.l1", "at least 1"),
        (grid(**{"trainer.l1": [[1]]}), "/search/fields/trainer.l1/0", "number"),
        (
            grid(**{"trainer.l1": [i / 9 for i in range(300)], "trainer.batch": [1, 2]}),
            "/search/fields",
            "600",
        ),
        (grid(), "/search/fields", "at least 1"),
        (drawn(**{"trainer.l1": {"low": -0.001, "high": 100}}), "/search/fields/trainer.l1", "-0.001"),
        (drawn(**{"trainer.l1": {"low": 1, "high": 1}}), "/search/fields/trainer.l1", "less than `high`"),
        (
            drawn(**{"trainer.l1": {"low": 0, "high": 1, "scale": "log"}}),
            "/search/fields/trainer.l1",
            "above 0",
        ),
        (drawn(**{"trainer.passes": {"low": 1, "high": 9}}), "/search/fields/trainer.passes", "integer"),
        (
            drawn(**{"trainer.passes": {"low": 1.5, "high": 9, "integer": True}}),
            "/search/fields/trainer.passes",
            "must be integers",
        ),
        (drawn(**{"trainer.l1": {"low": 1}}), "/search/fields/trainer.l1/high", "required"),
        ({**grid(**{"trainer.l1": [1]}), "folds": 1}, "/folds", "2"),
        ({**grid(**{"trainer.l1": [1]}), "folds": 21}, "/folds", "20"),
        ({**grid(**{"trainer.l1": [1]}), "train": {"model": "No"}}, "/train/model", "did you mean no?"),
        ({**TUNE, "search": {"kind": "annealing"}}, "/search/kind", "grid"),
        (TUNE, "/search", "required"),
    ],
)
def test_what_is_wrong_with_a_search_is_pointed_at(body, pointer, reason):
    with pytest.raises(Invalid) as raised:
        parse_job(body)
    found = [fault for fault in raised.value.faults if fault.pointer == pointer]
    assert any(reason in fault.reason for fault in found), raised.value.faults


def test_a_column_that_a_candidate_lacks_is_blamed_on_its_field():
    spec = parse_job(grid(**{"features.templates": ["U:%x[0,0]", "U:%x[0,3]"]}))
    spec.check_columns(4)
    with pytest.raises(Invalid) as raised:
        spec.check_columns(3)
    assert raised.value.faults[0].pointer == "/search/fields/features.templates"


def test_a_search_whose_best_spec_could_not_be_trained_is_refused_when_posted(monkeypatch):
    def refuse(self, passes):
        raise ValueError(f"{self.kind} cannot make {passes} passes")

    body = {**grid(**{"trainer.l1": [1]}), "stop": {"patience": 2}, "train": {"model": "m"}}
    parse_job(body)
    monkeypatch.setattr(SgdL1Spec, "with_total_passes", refuse)
    with pytest.raises(Invalid, match="tune") as raised:
        parse_job(body)
    assert "sgd-l1 cannot make 1 passes" in raised.value.faults[0].reason


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"models": []}, "/models"),
        ({"models": ["a"] * 2}, "/models"),
        ({"models": [f"m:{i}" for i in range(1, 18)]}, "/models"),
        ({"models": ["a", "B"]}, "/models/1"),
        ({"resamples": 99}, "/resamples"),
        ({"confidence": 1.0}, "/confidence"),
        ({"dev": {"fraction": 0.1}}, "/dev"),
    ],
)
def test_what_is_wrong_with_an_evaluation_is_pointed_at(change, pointer):
    with pytest.raises(Invalid, match="evaluate") as raised:
        parse_job({"kind": "evaluate", "models": ["a"], "corpus": "crp_1", **change})
    assert any(fault.pointer == pointer for fault in raised.value.faults), raised.value.faults


def test_a_tag_job_knows_every_format() -> None:
    assert get_args(FormatName) == formats.known_formats()
