"""`CRF` against python-crfsuite: the same data and options give the same model, where the optimum is unique."""

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import RandomizedSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

from tagsmith import CRF, Tagger
from tagsmith.core.pipeline.estimator import NotFitted
from tests.core.pipeline.test_estimator import CHECKS, sequences

X, Y = sequences(40)
UNSEEN, GOLD = sequences(20, seed=2)
#: Both converge to the same optimum only if they go on long enough.
EXACT = {"delta": 1e-9, "epsilon": 1e-9, "max_iterations": 2000}
ALGORITHMS = ["lbfgs", "l2sgd", "ap", "pa", "arow"]


class Oracle:
    """A model that CRFsuite trained with the same options."""

    def __init__(self, path: Path, algorithm: str, **params: Any) -> None:
        self.path = str(path / "oracle.crfsuite")
        names = {"min_freq": "feature.minfreq", "all_possible_states": "feature.possible_states",
                 "all_possible_transitions": "feature.possible_transitions"}  # fmt: skip
        given = {names.get(name, name): value for name, value in params.items()}
        trainer = pycrfsuite.Trainer(algorithm=algorithm, params=given, verbose=False)
        for sequence, labels in zip(X, Y, strict=True):
            trainer.append(sequence, labels)
        trainer.train(self.path)
        self.tagger = pycrfsuite.Tagger()
        self.tagger.open(self.path)


@pytest.fixture(scope="module")
def fitted() -> CRF:
    return CRF(c2=0.1, max_iterations=30).fit(X, Y, UNSEEN, GOLD)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"c2": 0.05, "all_possible_transitions": True},
        {"c2": 0.5, "all_possible_states": True},
        {"c2": 0.5, "all_possible_states": True, "all_possible_transitions": True},
        {"c2": 0.1, "min_freq": 3},
        {"c2": 0.1, "min_freq": 2.5, "all_possible_states": True},
        {"c1": 0.5, "c2": 0.1},
    ],
    ids=str,
)
def test_weights_labels_and_probabilities_are_those_of_crfsuite(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    ours, theirs = CRF(**options, **EXACT).fit(X, Y), Oracle(tmp_path, "lbfgs", **options, **EXACT).tagger
    info = theirs.info()
    for found, expected in (
        (ours.state_features_, info.state_features),
        (ours.transition_features_, info.transitions),
    ):
        assert found is not None
        for key in {*found, *expected}:
            assert found.get(key, 0.0) == pytest.approx(expected.get(key, 0.0), abs=5e-3), key
    assert [ours.predict_single(each) for each in UNSEEN] == [theirs.tag(each) for each in UNSEEN]
    theirs.set(UNSEEN[0])
    for position, row in enumerate(ours.predict_marginals_single(UNSEEN[0])):
        for label, probability in row.items():
            assert probability == pytest.approx(theirs.marginal(label, position), abs=1e-3)


#: Runs whose scores are averaged.
RUNS = 8


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_reaches_the_accuracy_of_crfsuite(tmp_path: Path, algorithm: str) -> None:
    # CRFsuite does not seed its shuffles, and the scores of runs have a standard deviation of 0.02: compare means.
    theirs = []
    for _ in range(RUNS):
        tagger = Oracle(tmp_path, algorithm, max_iterations=20).tagger
        found = [tagger.tag(x) for x in UNSEEN]
        theirs.append(
            np.mean([a == b for x, y in zip(found, GOLD, strict=True) for a, b in zip(x, y, strict=True)])
        )
    scores = []
    for run in range(RUNS):
        order = np.random.default_rng(run).permutation(len(X))
        ours = CRF(algorithm, max_iterations=20).fit([X[i] for i in order], [Y[i] for i in order])
        scores.append(ours.score(UNSEEN, GOLD))
    assert np.mean(scores) > np.mean(theirs) - 0.03
    assert sum(ours.predict_marginals(UNSEEN[:1])[0][0].values()) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        ({}, {"kind": "lbfgs", "l2": 2.0, "passes": 100_000, "memory": 6, "tolerance": 1e-6}),
        ({"c1": 0.5, "c2": 0.0, "num_memories": 3}, {"kind": "owlqn", "l1": 0.5, "l2": 0.0, "memory": 3}),
        ({"delta": 0.1, "period": 5}, {"tolerance": 0.02}),
        ({"algorithm": "l2sgd", "c2": 3}, {"kind": "sgd", "l2": 6.0, "passes": 1000}),
        ({"algorithm": "ap"}, {"kind": "averaged-perceptron", "passes": 100}),
        ({"algorithm": "pa"}, {"kind": "pa", "C": 1.0, "variant": "I", "total": "root", "averaged": True}),
        ({"algorithm": "pa", "pa_type": 0, "c": 2}, {"kind": "mira", "C": None, "update": "prediction"}),
        ({"algorithm": "pa", "pa_type": 2, "c": 2}, {"C": 2.0, "variant": "II"}),
        (
            {"algorithm": "pa", "error_sensitive": False, "averaging": False},
            {"total": "one", "averaged": False},
        ),
        ({"algorithm": "arow", "gamma": 3, "variance": 2}, {"kind": "arow", "r": 1.5, "passes": 100}),
    ],
    ids=str,
)
def test_options_have_the_meaning_that_crfsuite_gives_them(
    options: dict[str, Any], spec: dict[str, Any]
) -> None:
    from tagsmith.core.pipeline import crfsuite
    from tagsmith.core.pipeline.estimator import learning_of

    trainer = learning_of(crfsuite.spec_of(CRF(**options).get_params())).trainer.model_dump()
    assert {name: trainer[name] for name in spec} == pytest.approx(spec)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"algorithm": "lbgfs"}, "Unknown algorithm 'lbgfs'"),
        ({"linesearch": "none"}, "Unknown linesearch"),
        ({"c1": -1.0}, "c1 must not be negative"),
        ({"c2": -1.0}, "/trainer/l2"),
        ({"algorithm": "pa", "pa_type": 3}, "pa_type must be 0, 1 or 2"),
        ({"algorithm": "arow", "variance": 0}, "variance must be above 0"),
        ({"trainer_cls": object}, "trainer_cls is not supported"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_when_fitting(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        CRF(**options).fit(X[:2], Y[:2])


def test_holdout_data_needs_labels() -> None:
    with pytest.raises(ValueError, match="both X_dev and y_dev"):
        CRF().fit(X, Y, X_dev=X)


def test_the_arguments_are_accepted_in_the_same_order() -> None:
    names = list(inspect.signature(CRF).parameters)
    assert names[:7] == [
        "algorithm", "min_freq", "all_possible_states", "all_possible_transitions", "c1", "c2", "max_iterations",
    ]  # fmt: skip
    assert names[-4:] == ["verbose", "model_filename", "keep_tempfiles", "trainer_cls"]
    assert len(names) == 28


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_check_of_scikit_learn_that_applies_passes(check: Any) -> None:
    check("CRF", CRF(max_iterations=3))


def test_predictions_are_arrays_of_labels(fitted: CRF) -> None:
    found = fitted.predict(UNSEEN)
    assert isinstance(found, np.ndarray)
    assert found.dtype == object
    assert [list(each) for each in found] == [fitted.predict_single(each) for each in UNSEEN]
    assert fitted.predict_marginals(UNSEEN)[1] == fitted.predict_marginals_single(UNSEEN[1])
    assert len(fitted.predict([])) == 0


def test_the_model_is_described_after_fitting(fitted: CRF) -> None:
    unfitted = CRF()
    names = ("tagger_", "classes_", "size_", "num_attributes_", "attributes_", "state_features_",
             "transition_features_", "training_log_")  # fmt: skip
    assert {getattr(unfitted, name) for name in names} == {None}
    assert set(fitted.classes_ or ()) == {label for each in Y for label in each}
    assert fitted.num_attributes_ == len(set(fitted.attributes_ or ())) > 0
    assert "length" in (fitted.attributes_ or ())
    assert {name for name, _ in fitted.state_features_ or {}} == set(fitted.attributes_ or ())
    assert fitted.size_ == len(fitted._model_bytes())


def test_the_log_has_each_iteration_and_the_scores_of_labels(fitted: CRF) -> None:
    log = fitted.training_log_
    assert log is not None
    assert [each["num"] for each in log.iterations] == list(range(1, len(log.iterations) + 1))
    assert log.iterations[0]["loss"] > log.iterations[-1]["loss"]
    last = log.last_iteration
    assert last is not None
    assert last["item_accuracy_float"] == pytest.approx(fitted.score(UNSEEN, GOLD))
    assert sum(score.ref for score in last["scores"].values()) == last["item_total"]
    label, score = next(iter(last["scores"].items()))
    gold = [label for each in GOLD for label in each]
    found = [label for each in fitted.predict(UNSEEN) for label in each]
    right = sum(a == b == label for a, b in zip(gold, found, strict=True))
    assert (score.precision, score.recall) == (right / max(1, found.count(label)), right / gold.count(label))


def test_iterations_are_printed_if_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    CRF(max_iterations=2, verbose=True).fit(X, Y, UNSEEN, GOLD)
    printed = capsys.readouterr().out
    assert "Iter 2 " in printed
    assert "Acc(item/seq)=" in printed
    assert "support" in printed
    CRF(max_iterations=2).fit(X, Y)
    assert capsys.readouterr().out == ""


def test_the_tagger_has_the_methods_of_crfsuites(tmp_path: Path) -> None:
    tagger = CRF(c2=0.1, **EXACT).fit(X, Y).tagger_
    theirs = Oracle(tmp_path, "lbfgs", c2=0.1, **EXACT).tagger
    assert tagger is not None
    assert sorted(tagger.labels()) == sorted(theirs.labels())
    for sequence, gold in zip(UNSEEN[:5], GOLD, strict=False):
        assert tagger.tag(sequence) == theirs.tag(sequence)
        assert tagger.probability(tagger.tag()) == pytest.approx(theirs.probability(theirs.tag()), abs=1e-3)
        assert tagger.probability(gold) == pytest.approx(theirs.probability(gold), abs=1e-3)
        assert tagger.marginal(gold[0], 0) == pytest.approx(theirs.marginal(gold[0], 0), abs=1e-3)
    with pytest.raises(ValueError, match="tokens, but there are 1 labels"):
        tagger.probability(["x"])
    with pytest.raises(ValueError, match="no label 'nothing'"):
        tagger.probability(["nothing"] * len(tagger.tag()))
    tagger.set(X[0] * 1000)
    assert tagger.probability(tagger.tag()) < 1e-9
    assert tagger.info().header["num_labels"] == str(len(tagger.labels()))
    tagger.dump(tmp_path / "dump")
    assert "length --> " in (tmp_path / "dump").read_text()


def test_it_survives_pickling(fitted: CRF) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert again.score(UNSEEN, GOLD) == fitted.score(UNSEEN, GOLD)
    assert again.state_features_ == fitted.state_features_
    assert again.training_log_.iterations == fitted.training_log_.iterations
    assert pickle.loads(pickle.dumps(CRF(c1=2))).c1 == 2


def test_a_model_file_is_written_and_used(fitted: CRF, tmp_path: Path) -> None:
    path = tmp_path / "model"
    unfitted = CRF(model_filename=str(path))
    with pytest.raises(NotFittedError):
        check_is_fitted(unfitted)
    clone(fitted).set_params(model_filename=str(path)).fit(X, Y)
    again = CRF(model_filename=str(path))
    check_is_fitted(again)
    assert again.predict(UNSEEN).tolist() == fitted.predict(UNSEEN).tolist()
    assert Tagger.open(path).tag(UNSEEN) == fitted.predict(UNSEEN).tolist()


def test_a_model_of_crfsuite_is_used(tmp_path: Path) -> None:
    theirs = Oracle(tmp_path, "lbfgs", max_iterations=10)
    ours = CRF(model_filename=theirs.path)
    assert [ours.predict_single(each) for each in UNSEEN] == [theirs.tagger.tag(each) for each in UNSEEN]
    assert ours.state_features_ == pytest.approx(theirs.tagger.info().state_features, abs=1e-5)


def test_it_works_in_cross_validation_and_random_search() -> None:
    assert cross_val_score(CRF(max_iterations=5), X, Y, cv=2).min() > 0.5
    space = {"c1": [0.0, 0.1], "c2": [0.1, 1000.0]}
    search = RandomizedSearchCV(CRF(max_iterations=5), space, cv=2, n_iter=4, random_state=0).fit(X, Y)
    assert search.best_params_["c2"] == 0.1
    assert search.best_estimator_.size_ > 0


def test_words_may_be_bytes() -> None:
    text = [[{"word": "не".encode(), "tags": [b"a", "b"]}, {"word": "да"}]]
    crf = CRF().fit(text, [["n", "y"]])
    assert {"word:не", "tags:a", "tags:b"} <= set(crf.attributes_ or ())
    with pytest.raises(ValueError, match=r"X\[0\]/0/word: must be a string in UTF-8"):
        CRF().fit([[{"word": b"\xff"}]], [["n"]])


def test_a_fitted_estimator_is_published_with_a_client(fitted: CRF) -> None:
    class Publisher:
        def import_model(self, name: str, artifact: bytes) -> tuple[str, bytes]:
            return name, artifact

    name, published = fitted.push(Publisher(), "ner")
    assert name == "ner"
    assert published == fitted._model_bytes()


def test_generators_are_taken_as_lists() -> None:
    given = CRF(max_iterations=5).fit(X, Y, UNSEEN, GOLD)
    made = CRF(max_iterations=5).fit(
        (iter(sequence) for sequence in X), iter(Y), iter(UNSEEN), (iter(labels) for labels in GOLD)
    )
    assert made.predict(iter(UNSEEN)).tolist() == given.predict(UNSEEN).tolist()
    assert made.score(iter(UNSEEN), iter(GOLD)) == given.score(UNSEEN, GOLD)


def test_a_missing_model_file_is_named() -> None:
    with pytest.raises(NotFitted, match=r"There is no file none\.crf"):
        CRF(model_filename="none.crf").predict(X)


def test_an_option_of_another_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match="c1 has no meaning"):
        CRF(algorithm="l2sgd", c1=0.1).fit(X, Y)
