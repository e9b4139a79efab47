"""Partial labels against enumeration over completions, and weights of sentences against repetition."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from tagsmith.core.base.jit import readonly
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.labels import partial
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.learn.trainers.batch.gradient import Batch
from tagsmith.core.learn.trainers.order import pass_order
from tagsmith.core.learn.trainers.registry import SPECS, AnyTrainerSpec
from tagsmith.core.learn.weights.scoring import Weights
from tests import naive
from tests.core.learn.runs import all_rows, resumed, trained

TRAINER: TypeAdapter[Any] = TypeAdapter(AnyTrainerSpec)
KINDS = [spec.model_fields["kind"].default for spec in SPECS]
#: Their first stage has five passes.
STAGED = ("two-stage", "sparseptron")
LABELS = ("A", "B", "C")
PLAIN, RICH = "U0:%x[0,0]\nU1:%x[-1,0]\nB", "U:%x[0,0]\nB\nB:%x[0,0]"


def corpus_of(seed: int, sentences: int = 12) -> Corpus:
    """Sentences of a few words, of which some have no label, or two to choose from."""
    rng = np.random.default_rng(seed)
    choices = [*LABELS, "?", "A|B", "B|C", "C|A"]
    lines = []
    for _ in range(sentences):
        words = range(rng.integers(1, 6))
        given = rng.choice(choices, len(words), p=[0.2, 0.2, 0.1, 0.2, 0.1, 0.1, 0.1])
        lines += [f"w{rng.integers(5)} {label}\n" for label in given]
        lines.append("\n")
    lines.append("w0 A\nw1 B\nw2 C\n\n")
    corpus = read_conll(["".join(lines).encode()], max_line_bytes=100)
    return replace(corpus, partial=True)


def problem_of(corpus: Corpus, templates: str) -> Problem:
    return compile_corpus(FeatureSpec(templates=templates).resolve(len(corpus.columns)), corpus).problem


def scores_of(problem: Problem, values: Any, sentence: int) -> tuple[Any, Any]:
    """Emissions and transitions of a sentence, from rows of weights."""
    data, labels = problem.data, len(problem.labels)
    rows = values.reshape(problem.rows, -1)[:, :labels]
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    emissions = np.array(
        [rows[data.rows[data.starts[t] : data.starts[t + 1]]].sum(axis=0) for t in range(begin, end)]
    )
    shared = rows[problem.attributes : problem.blocks] if problem.edges else np.zeros((labels, labels))
    transitions = np.repeat(shared[None], end - begin, axis=0).astype(float)
    if problem.rich:
        blocks = rows[problem.blocks :].reshape(-1, labels, labels)
        for t in range(begin, end):
            transitions[t - begin] += blocks[
                data.edge_rows[data.edge_starts[t] : data.edge_starts[t + 1]]
            ].sum(axis=0)
    return emissions, transitions


def allowed_of(corpus: Corpus, problem: Problem, sentence: int) -> list[set[int]]:
    assert corpus.labels is not None
    names = corpus.labels.vocabulary.strings()
    begin, end = corpus.offsets[sentence], corpus.offsets[sentence + 1]
    numbers = {name: i for i, name in enumerate(problem.labels)}
    everything = set(numbers.values())
    given = [partial.alternatives(names[i]) for i in corpus.labels.ids[begin:end]]
    return [{numbers[name] for name in each} or everything for each in given]


def naive_loss(corpus: Corpus, problem: Problem, values: Any) -> float:
    """The sum over sentences of weight * (log Z - log Z of the completions), by enumeration."""
    total = 0.0
    for i in range(problem.sentences):
        emissions, transitions = scores_of(problem, values, i)
        allowed = allowed_of(corpus, problem, i)

        def keep(path: Any, allowed: list[set[int]] = allowed) -> bool:
            return all(y in each for y, each in zip(path, allowed, strict=True))

        weight = 1.0 if corpus.weights is None else float(corpus.weights[i])
        total += weight * (naive.log_z(emissions, transitions) - naive.log_z(emissions, transitions, keep))
    return total


@pytest.mark.parametrize("templates", [PLAIN, RICH])
@pytest.mark.parametrize("spread", [0.5, 40.0])  # the second needs log space
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_and_gradient_are_those_of_all_completions(
    templates: str, spread: float, weighted: bool
) -> None:
    corpus = corpus_of(1)
    rng = np.random.default_rng(2)
    if weighted:
        corpus = replace(corpus, weights=rng.uniform(0.5, 3, corpus.sentences).astype(np.float32))
    problem = problem_of(corpus, templates)
    batch = Batch.of(problem, 1, np.float64)
    w = rng.normal(0, spread, batch.parameters)
    loss, gradient = finished(batch.evaluate(w))

    def rows_of(parameters: Any) -> Any:
        rows = np.zeros((problem.rows, problem.width))
        at = np.repeat(np.arange(problem.rows), np.diff(batch.pairs.starts))
        rows[at, batch.pairs.labels] = parameters
        return rows

    assert loss == pytest.approx(naive_loss(corpus, problem, rows_of(w)), rel=1e-9, abs=1e-9)
    if spread < 1:
        for k in rng.choice(batch.parameters, 25, replace=False):
            step = np.zeros(batch.parameters)
            step[k] = 1e-5
            slope = (
                naive_loss(corpus, problem, rows_of(w + step))
                - naive_loss(corpus, problem, rows_of(w - step))
            ) / 2e-5
            assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("templates", [PLAIN, RICH])
def test_whole_weights_equal_repetition(templates: str) -> None:
    problem = problem_of(corpus_of(3), templates)
    times = np.random.default_rng(4).integers(1, 4, problem.sentences)
    # The features of a corpus are numbered by their frequency, so the repeated one is not compiled anew.
    repeated = problem.subset(np.repeat(np.arange(problem.sentences), times))
    data = problem.data._replace(weights=readonly(times, np.float32), weighted=True)
    first, second = (Batch.of(each, 1, np.float64) for each in (replace(problem, data=data), repeated))
    w = np.random.default_rng(5).normal(0, 1, first.parameters)
    (loss, gradient), (again, same) = finished(first.evaluate(w)), finished(second.evaluate(w))
    assert loss == pytest.approx(again, rel=1e-12)
    np.testing.assert_allclose(gradient, same, rtol=1e-9, atol=1e-9)


def test_labels_that_are_all_single_change_nothing() -> None:
    text = b"w0 A\nw1 B\n\nw2 C\nw0 B\nw1 A\n\n"
    corpus = read_conll([text], max_line_bytes=100)
    for templates in (PLAIN, RICH):
        plain, same = (
            Batch.of(problem_of(each, templates), 1) for each in (corpus, replace(corpus, partial=True))
        )
        w = np.random.default_rng(6).normal(0, 1, plain.parameters)
        (loss, gradient), (again, as_before) = finished(plain.evaluate(w)), finished(same.evaluate(w))
        assert loss == again
        assert gradient.tobytes() == as_before.tobytes()


def test_the_exact_loss_of_weights_is_that_of_the_batch() -> None:
    corpus = corpus_of(7)
    problem = problem_of(corpus, PLAIN)
    values = np.zeros((problem.rows, problem.width), np.float32)
    values[:, : len(problem.labels)] = np.random.default_rng(8).normal(
        0, 1, (problem.rows, len(problem.labels))
    )
    loss = sum(Weights(problem, values.reshape(-1)).loss(problem))
    assert loss == pytest.approx(naive_loss(corpus, problem, values.astype(np.float64)), rel=1e-6)


def random_weights(corpus: Corpus, seed: int) -> Corpus:
    weights = np.random.default_rng(seed).choice([0.25, 1.0, 2.0, 3.5], corpus.sentences)
    return replace(corpus, weights=weights.astype(np.float32))


def features_of(problem: Problem, sentence: int, path: Any) -> Any:
    """phi(path), as rows of weights."""
    data, labels = problem.data, len(problem.labels)
    phi = np.zeros((problem.rows, labels))
    begin = data.offsets[sentence]
    for t, y in enumerate(path):
        for row in data.rows[data.starts[begin + t] : data.starts[begin + t + 1]]:
            phi[row, y] += 1
        if t:
            phi[problem.attributes + path[t - 1], y] += 1
    return phi


def best(emissions: Any, transitions: Any, allowed: list[set[int]] | None = None, cost: Any = None) -> Any:
    """The best labelling of all, or of those that are allowed, by enumeration."""

    def value(path: Any) -> float:
        return naive.score(emissions, transitions, path) + (0.0 if cost is None else cost(path))

    paths = naive.sequences(len(emissions), emissions.shape[1])
    every = [p for p in paths if allowed is None or all(y in a for y, a in zip(p, allowed, strict=True))]
    return max(every, key=value)


def naive_margin(corpus: Corpus, problem: Problem, passes: int, limit: float | None, start: Any) -> Any:
    """The mean weights of a perceptron (no limit) or of PA-I with costs, with completions for gold."""
    w = start.copy()
    total, updates = np.zeros_like(w), 0
    for number in range(1, passes + 1):
        for i in pass_order(problem.sentences, 3, number):
            emissions, transitions = scores_of(problem, w, i)
            allowed = allowed_of(corpus, problem, i)
            gold = best(emissions, transitions, allowed)

            def cost(path: Any, allowed: list[set[int]] = allowed) -> float:
                return sum(y not in a for y, a in zip(path, allowed, strict=True))

            found = best(emissions, transitions, None, None if limit is None else cost)
            d = features_of(problem, i, gold) - features_of(problem, i, found)
            weight = 1.0 if corpus.weights is None else float(corpus.weights[i])
            norm = float((d * d).sum())
            if norm > 0 and limit is None:
                w = w + weight * d
            elif norm > 0 and limit is not None:
                loss = cost(found) + naive.score(emissions, transitions, found)
                loss -= naive.score(emissions, transitions, gold)
                # The weight of an example multiplies its limit C.
                w = w + min(limit * weight, max(loss, 0.0) / norm) * d
            total += w
            updates += 1
    return total / updates


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "limit"), [("averaged-perceptron", None), ("pa", 0.3)])
def test_margin_learners_update_against_the_best_completion(
    kind: str, limit: float | None, weighted: bool
) -> None:
    corpus = corpus_of(9)
    if weighted:
        corpus = random_weights(corpus, 10)
    problem = problem_of(corpus, PLAIN)
    spec = {"kind": kind, "passes": 3} | ({} if limit is None else {"C": limit})
    # From zero, many labellings have the same score.
    start = Weights(problem, np.zeros(problem.rows * problem.width, np.float32))
    all_rows(start)[:] = np.random.default_rng(15).normal(0, 0.1, (problem.rows, len(problem.labels)))
    found = trained(problem, 3, TRAINER.validate_python(spec).make(1), init=start)
    np.testing.assert_allclose(
        all_rows(found), naive_margin(corpus, problem, 3, limit, all_rows(start)), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_sgd_steps_along_the_gradient_of_all_completions(weighted: bool) -> None:
    corpus = corpus_of(11)
    if weighted:
        corpus = random_weights(corpus, 12)
    problem = problem_of(corpus, PLAIN)
    schedule = {"kind": "exponential", "eta0": 0.1, "alpha": 1.0}
    found = trained(
        problem, 2, TRAINER.validate_python({"kind": "sgd", "l2": 0.0, "schedule": schedule}).make(1)
    )
    w = np.zeros((problem.rows, len(problem.labels)))
    for number in (1, 2):
        for i in pass_order(problem.sentences, 3, number):
            emissions, transitions = scores_of(problem, w, i)
            allowed = allowed_of(corpus, problem, i)
            weight = 1.0 if corpus.weights is None else float(corpus.weights[i])
            expected = []
            for keep in (lambda p, a=allowed: all(y in s for y, s in zip(p, a, strict=True)), lambda _: True):
                log_z = naive.log_z(emissions, transitions, keep)
                paths = filter(keep, naive.sequences(len(emissions), emissions.shape[1]))
                expected.append(
                    sum(
                        np.exp(naive.score(emissions, transitions, p) - log_z) * features_of(problem, i, p)
                        for p in paths
                    )
                )
            w = w + 0.1 * weight * (expected[0] - expected[1])
    np.testing.assert_allclose(all_rows(found), w, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_trainer_learns_from_open_labels_and_resumes_to_the_same_bytes(kind: str) -> None:
    corpus = random_weights(corpus_of(13, 40), 14)
    problem = problem_of(corpus, PLAIN)
    trainer, passes = TRAINER.validate_python({"kind": kind}).make(1), 3 if kind not in STAGED else 8
    weights = trained(problem, passes, trainer)
    assert np.isfinite(weights.values).all()
    assert weights.values.any()
    again = trainer.weights(problem, resumed(problem, 1, passes, trainer))
    assert again.values.tobytes() == weights.values.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_one_and_single_labels_give_the_same_bytes(kind: str) -> None:
    text = b"w0 A\nw1 B\n\nw2 C\nw0 B\nw1 A\n\nw1 C\nw2 B\nw2 A\n\n" * 5
    corpus = read_conll([text], max_line_bytes=100)
    ones = replace(corpus, partial=True, weights=np.ones(corpus.sentences, np.float32))
    passes = 2 if kind not in STAGED else 7
    values = [
        trained(
            problem_of(each, PLAIN), passes, TRAINER.validate_python({"kind": kind}).make(1)
        ).values.tobytes()
        for each in (corpus, ones)
    ]
    assert values[0] == values[1]
