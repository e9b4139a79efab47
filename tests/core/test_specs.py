import pytest

from core.errors import Invalid
from core.specs import check_against, parse_job

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


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"model": "No Spaces"}, "/model"),
        ({"model": "../etc"}, "/model"),
        ({"model": "x" * 65}, "/model"),
        ({"corpus": "nonsense"}, "/corpus"),
        ({"seed": -1}, "/seed"),
        ({"seed": "1"}, "/seed"),
        ({"threads": 0}, "/threads"),
        ({"threads": 2}, "/threads"),
        ({"trainer": {"kind": "lbfgs", "l1": 0.5}}, "/trainer/l1"),
        ({"trainer": {"kind": "owlqn", "l1": 0}}, "/trainer/l1"),
        ({"trainer": {"kind": "owlqn", "memory": 0}}, "/trainer/memory"),
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
        ({"promote": "Not OK"}, "/promote"),
        ({"extra": 1}, "/extra"),
    ],
)
def test_what_is_wrong_is_pointed_at(change, pointer):
    with pytest.raises(Invalid) as raised:
        parse_job({**LEAST, **change})
    assert raised.value.code == "invalid_spec"
    assert any(fault.pointer == pointer for fault in raised.value.faults), raised.value.faults


@pytest.mark.parametrize("kind", ["tune", "", None, 3])
def test_an_unknown_kind_of_job_is_pointed_at(kind):
    with pytest.raises(Invalid) as raised:
        parse_job({**LEAST, "kind": kind})
    assert raised.value.faults[0].pointer == "/kind"


def test_an_unknown_trainer_is_pointed_at():
    with pytest.raises(Invalid) as raised:
        parse_job({**LEAST, "trainer": {"kind": "magic"}})
    assert raised.value.faults[0].pointer == "/trainer/kind"


@pytest.mark.parametrize("dev", [{"fraction": 0}, {"fraction": 1}, {"fraction": 2.5}, {"corpus": "x"}, {}])
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
    check_against(spec, 4)
    with pytest.raises(Invalid, match="does not have"):
        check_against(spec, 3)
