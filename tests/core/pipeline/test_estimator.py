"""The estimator: feature dicts in, labels out, and scikit-learn's tools around it."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.pipeline.estimator import NotFitted, SequenceTagger

#: What scikit-learn asks of every estimator and can be asked without a matrix. The others feed arrays of numbers with a
#: row a sample and one target each, of which sequences of tokens have no equivalent: `check_estimator` itself runs none
#: of them for an estimator whose tags say that it takes no such arrays.
CHECKS = (
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_mixin_order,
    estimator_checks.check_valid_tag_types,
    estimator_checks.check_estimator_tags_renamed,
)


def sequences(count: int = 60, seed: int = 1) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    text = b"".join(generate("references", count, seed)).decode()
    rows = [[line.split() for line in block.split("\n")] for block in text.strip().split("\n\n")]
    X = [
        [
            {"word": word, "class": kind, "length": len(word) / 10, "last": i == len(each) - 1}
            for i, (word, kind, _) in enumerate(each)
        ]
        for each in rows
    ]
    return X, [[label for _, _, label in each] for each in rows]


@pytest.fixture(scope="module")
def fitted() -> SequenceTagger:
    return SequenceTagger(passes=15).fit(*sequences())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_check_of_scikit_learn_that_applies_passes(check: Any) -> None:
    check("SequenceTagger", SequenceTagger(passes=3))


def test_check_estimator_finds_nothing_else_to_run() -> None:
    with pytest.warns(match="Can't test estimator"):
        results = estimator_checks.check_estimator(SequenceTagger(), on_skip=None, on_fail=None)
    assert {result["status"] for result in results} == {"passed"}


def test_it_labels_what_it_has_not_seen(fitted: SequenceTagger) -> None:
    X, y = sequences(30, seed=2)
    assert fitted.score(X, y) > 0.6
    assert [len(labels) for labels in fitted.predict(X)] == [len(each) for each in X]
    assert list(fitted.classes_) == sorted({label for each in sequences()[1] for label in each})
    assert fitted.n_passes_ <= 15
    assert fitted.objective_ > 0


def test_marginals_sum_to_one_and_agree_with_confident_labels(fitted: SequenceTagger) -> None:
    X, _ = sequences(10, seed=3)
    found = fitted.predict_marginals(X)
    assert [len(each) for each in found] == [len(each) for each in X]
    for labels, rows in zip(fitted.predict(X), found, strict=True):
        for label, row in zip(labels, rows, strict=True):
            assert sum(row.values()) == pytest.approx(1, abs=1e-4)
            best = max(row, key=row.__getitem__)
            assert row[best] < 0.9 or best == label


def test_it_works_in_cross_validation_and_grid_search() -> None:
    X, y = sequences()
    scores = cross_val_score(SequenceTagger("averaged-perceptron", passes=3), X, y, cv=3)
    assert scores.min() > 0.5
    search = GridSearchCV(SequenceTagger("sgd", passes=3), {"l2": [0.1, 1000.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"l2": 0.1}
    assert search.predict(X[:1]) == search.best_estimator_.predict(X[:1])


def test_a_clone_has_the_parameters_and_nothing_learned(fitted: SequenceTagger) -> None:
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    with pytest.raises(NotFitted):
        again.predict([[{}]])
    check_is_fitted(fitted)


def test_it_survives_pickling(fitted: SequenceTagger) -> None:
    X, _ = sequences(10, seed=4)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(X) == fitted.predict(X)
    assert again.predict_marginals(X[:1]) == fitted.predict_marginals(X[:1])
    assert pickle.loads(pickle.dumps(SequenceTagger())).get_params() == SequenceTagger().get_params()


def test_fitting_twice_gives_the_same() -> None:
    X, y = sequences(20)
    one, two = (SequenceTagger("sgd", passes=3, seed=7).fit(X, y) for _ in range(2))
    assert one.predict_marginals(X) == two.predict_marginals(X)
    assert one.objective_ == two.objective_


def test_tokens_may_be_names_alone_and_values_of_numpy() -> None:
    X = [[["a", "b"], ["c"]], [["a"], ["c", "d"]]]
    assert SequenceTagger().fit(X, [["x", "y"], ["x", "y"]]).predict(X) == [["x", "y"], ["x", "y"]]
    numbers = [[{"v": np.float32(1)}, {"v": np.int64(-1), "f": np.bool_(True)}]]
    assert SequenceTagger().fit(numbers, [["x", "y"]]).predict(numbers) == [["x", "y"]]


@pytest.mark.parametrize(
    ("X", "y", "reason"),
    [
        ([[{"a": float("nan")}]], [["x"]], r"X\[0\]/0/a: must be a number from"),
        ([[{"a": None}]], [["x"]], r"X\[0\]/0/a: must be a string, a number"),
        ([[{}], ["ab"]], [["x"], ["y"]], r"X\[1\]/0: must be an object"),
        ([[{}]], [["x", "y"]], r"X\[0\] has 1 tokens, but y\[0\] has 2 labels"),
        ([[{}]], [], "X has 1 sequences, but y has 0"),
        ([[{}]], None, "requires y to be passed"),
        ([[{}]], [[1]], "Labels must be non-empty strings"),
        ([], [], "X has 0 sequences"),
        ("ab", [["x"]], "X must be a list of sequences"),
        ([{}], [["x"]], r"X\[0\] must be a sequence"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(X: Any, y: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SequenceTagger().fit(X, y)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"trainer": "none"}, "/trainer/kind"),
        ({"l1": 1.0}, "/trainer/l1"),
        ({"l2": -1.0}, "/trainer/l2"),
        ({"structure": "tree"}, "/features/structure"),
        ({"options": {"memory": 0}}, "/trainer/memory"),
    ],
)
def test_a_wrong_parameter_is_named_when_fitting(params: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SequenceTagger(**params).fit([[{"a": 1}]], [["x"]])


def test_an_unknown_parameter_cannot_be_set() -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'c1'"):
        SequenceTagger().set_params(c1=1)
