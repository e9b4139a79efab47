"""Learning from dependency trees, against enumeration of all trees, finite differences and literal twins."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conllu import read_conllu
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.inference.tree.rules import TreeRules
from tagsmith.core.learn.problem.information_gain import rank
from tagsmith.core.learn.problem.problem import Compiled, Problem, compile_corpus
from tagsmith.core.learn.run.loop import learn
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.learn.trainers.batch.gradient import Batch
from tagsmith.core.learn.trainers.order import pass_order
from tagsmith.core.learn.trainers.registry import SPECS, AnyTrainerSpec
from tagsmith.core.learn.weights.scoring import Weights
from tests.core.inference.tree import enumeration as every
from tests.core.learn.naive_trees import Sentence, corpus_of, sentences_of
from tests.core.learn.runs import all_rows, resumed, trained

TRAINER: TypeAdapter[Any] = TypeAdapter(AnyTrainerSpec)
KINDS = [spec.model_fields["kind"].default for spec in SPECS]
#: Their first stage has five passes.
STAGED = ("two-stage", "sparseptron")
TEMPLATES = [
    ["head.form", "modifier.form"],
    ["head.upos", "modifier.upos", "direction"],
    ["modifier.upos", "modifier.upos[1]"],
    ["head.upos", "between.upos"],
    ["distance"],
]
RULES = [TreeRules(True, projective, single) for projective in (False, True) for single in (False, True)]


def compiled_of(corpus: Corpus, **options: Any) -> Compiled:
    spec = FeatureSpec(templates=TEMPLATES, **options)
    return compile_corpus(spec.resolve(corpus.names, trees=True), corpus)


def problem_of(corpus: Corpus, rules: TreeRules | None = None, **options: Any) -> Problem:
    """The problem of a corpus, with other rules than those that its trees suggest."""
    problem = compiled_of(corpus, **options).problem
    return problem if rules is None else replace(problem, data=problem.data._replace(trees=rules))


def random_weights(problem: Problem, seed: int) -> tuple[Weights, np.ndarray]:
    """Weights of attributes, as rows and as (attributes, labels)."""
    rng = np.random.default_rng(seed)
    values = np.zeros((problem.rows, problem.width))
    values[: problem.attributes, : len(problem.labels)] = rng.normal(
        size=(problem.attributes, len(problem.labels))
    )
    return Weights(problem, values.reshape(-1)), values[: problem.attributes, : len(problem.labels)]


def naive_loss(sentences: list[Sentence], w: np.ndarray) -> float:
    return sum(sentence.loss(w) for sentence in sentences)


@pytest.mark.parametrize("relations", [True, False])
@pytest.mark.parametrize("rules", RULES)
def test_the_loss_is_that_of_all_trees_and_of_the_gold_relations(rules: TreeRules, relations: bool) -> None:
    problem = problem_of(corpus_of(1, relations=relations, crossing=False), rules)
    weights, w = random_weights(problem, 2)
    assert len(problem.labels) == (4 if relations else 1)
    assert sum(weights.loss(problem)) == pytest.approx(naive_loss(sentences_of(problem), w), rel=1e-12)


@pytest.mark.parametrize("rules", RULES)
def test_the_gradient_is_that_of_finite_differences(rules: TreeRules) -> None:
    problem = problem_of(corpus_of(3, 5, crossing=False), rules)
    batch = Batch.of(problem, 1, np.float64)
    w = np.random.default_rng(4).normal(size=batch.parameters)
    loss, gradient = finished(batch.evaluate(w))
    sentences = sentences_of(problem)

    def loss_at(parameters: np.ndarray) -> float:
        return naive_loss(sentences, parameters.reshape(problem.attributes, -1))

    assert loss == pytest.approx(loss_at(w), rel=1e-12)
    step = 1e-5
    for i in np.random.default_rng(5).choice(batch.parameters, 60, replace=False):
        there, back = w.copy(), w.copy()
        there[i] += step
        back[i] -= step
        assert gradient[i] == pytest.approx((loss_at(there) - loss_at(back)) / (2 * step), abs=1e-7)


def test_a_whole_weight_counts_like_repetition() -> None:
    corpus = corpus_of(6)
    times = np.arange(corpus.sentences) % 3 + 1
    weighted = replace(corpus, weights=times.astype(np.float32))
    repeated = corpus.subset(np.repeat(np.arange(corpus.sentences), times))
    one, other = (Batch.of(problem_of(each), 1, np.float64) for each in (weighted, repeated))
    # Attributes are numbered by frequency, which repetition changes: compare at equal weights.
    w = np.full(one.parameters, 0.3)
    (loss, gradient), (loss_2, gradient_2) = finished(one.evaluate(w)), finished(other.evaluate(w))
    assert loss == pytest.approx(loss_2, rel=1e-9)
    assert np.sort(gradient) == pytest.approx(np.sort(gradient_2), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rules", RULES)
def test_decoding_finds_the_best_tree_and_the_best_relation_of_its_arcs(rules: TreeRules) -> None:
    problem = problem_of(corpus_of(7, 12, crossing=False), rules)
    weights, w = random_weights(problem, 8)
    labels, arc = weights.decode(problem), 0
    for sentence in sentences_of(problem):
        scores = sentence.scores(w)
        best = sentence.trees[int(np.argmax(every.totals(scores, sentence.trees)))]
        for m in range(1, sentence.words + 1):
            for h in range(sentence.words + 1):
                if h != m:
                    relation = int(np.argmax(w[sentence.arcs[h, m], 1:].sum(axis=0))) + 1
                    assert labels[arc] == (relation if best[m] == h else -1)
                    arc += 1


def start_without_ties(problem: Problem, seed: int) -> tuple[Weights, np.ndarray]:
    """Random weights in float32: with zeros or whole numbers, many trees would be equally good."""
    init, w = random_weights(problem, seed)
    return Weights(problem, init.values.astype(np.float32)), w.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("relations", [True, False])
def test_passes_of_the_perceptron_are_those_of_its_twin(relations: bool) -> None:
    problem = problem_of(corpus_of(9, 20, relations=relations))
    init, w = start_without_ties(problem, 19)
    found = all_rows(trained(problem, 2, TRAINER.validate_python({"kind": "perceptron"}).make(1), init=init))
    sentences = sentences_of(problem)
    for number in (1, 2):
        for i in pass_order(problem.sentences, 3, number):
            best, labels, _ = sentences[i].worst(w, 0.0)
            gold = sentences[i].phi(sentences[i].heads, sentences[i].relations, w.shape)
            w += gold - sentences[i].phi(best, labels, w.shape)
    assert found[: problem.attributes] == pytest.approx(w, abs=1e-5)


@pytest.mark.parametrize("limit", [0.05, None])
def test_a_pass_of_passive_aggressive_steps_is_that_of_its_twin(limit: float | None) -> None:
    problem = problem_of(corpus_of(10, 20))
    spec = {"kind": "pa" if limit else "mira", "averaged": False} | ({"C": limit} if limit else {})
    init, w = start_without_ties(problem, 11)
    found = all_rows(trained(problem, 1, TRAINER.validate_python(spec).make(1), init=init))
    sentences = sentences_of(problem)
    for i in pass_order(problem.sentences, 3, 1):
        sentence = sentences[i]
        best, labels, loss = sentence.worst(w, 1.0)
        step = sentence.phi(sentence.heads, sentence.relations, w.shape) - sentence.phi(best, labels, w.shape)
        if loss > 0:
            w += min(limit or np.inf, loss / (step**2).sum()) * step
    assert found[: problem.attributes] == pytest.approx(w, abs=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_trainer_learns_trees_and_resumes_to_the_same_bytes(kind: str) -> None:
    text = generate("crossing-trees", 40, 1)
    problem = problem_of(read_conllu(text, max_line_bytes=1000, columns=("form", "upos"), label="tree"))
    trainer, passes = TRAINER.validate_python({"kind": kind}).make(1), 3 if kind not in STAGED else 8
    weights = trained(problem, passes, trainer)
    assert np.isfinite(weights.values).all()
    labels = weights.decode(problem)
    right = np.count_nonzero((labels >= 0) & (problem.data.gold >= 0))
    assert right > 0.8 * problem.words
    again = trainer.weights(problem, resumed(problem, 1, passes, trainer))
    assert again.values.tobytes() == weights.values.tobytes()


def test_the_rules_of_the_trees_are_read_from_the_training_data() -> None:
    crossing, projective = corpus_of(13, 30), corpus_of(13, 30, crossing=False)
    assert problem_of(crossing).data.trees == TreeRules(True, False, True)
    assert problem_of(projective).data.trees == TreeRules(True, True, True)
    assert problem_of(projective, projective=False).data.trees.projective is False
    assert problem_of(crossing, projective=True).data.trees.projective is True
    several = replace(
        projective, trees=replace(projective.trees, heads=np.zeros(projective.tokens, np.int32))
    )
    assert problem_of(several).data.trees.single_root is False


def test_relations_are_labels_unless_they_cannot_be_learned() -> None:
    assert problem_of(corpus_of(14)).labels == ("(head)", "mod", "obj", "subj")
    assert problem_of(corpus_of(14), relations=False).labels == ("(head)",)
    assert problem_of(corpus_of(14, relations=False)).labels == ("(head)",)


def test_a_relation_cannot_have_the_name_of_the_label_for_heads() -> None:
    corpus = corpus_of(15)
    relations = corpus.trees.relations
    names = type(relations.vocabulary).from_strings(
        [name.replace("mod", "(head)") for name in relations.vocabulary.strings()]
    )
    renamed = replace(corpus, trees=replace(corpus.trees, relations=replace(relations, vocabulary=names)))
    with pytest.raises(Invalid, match=r"'\(head\)' is reserved"):
        problem_of(renamed)


def test_the_loop_scores_the_development_set_by_heads() -> None:
    corpus, dev = corpus_of(16, 60), corpus_of(17, 30)
    compiled = compiled_of(corpus)
    spec = Learning.model_validate(
        {"features": {"templates": TEMPLATES}, "trainer": {"kind": "averaged-perceptron", "passes": 3}}
    )
    dev_problem = compiled.problem_of(dev)
    learned = finished(learn(spec, compiled.problem, dev_problem))
    labels, right = learned.weights.decode(dev_problem), 0
    right = int(np.count_nonzero((labels >= 0) & (dev_problem.data.gold >= 0)))
    both = int(np.count_nonzero((labels >= 0) & (dev_problem.data.gold == labels)))
    assert learned.dev is not None
    assert learned.score == pytest.approx(100 * right / dev.tokens)
    assert learned.dev.las == pytest.approx(100 * both / dev.tokens)


def test_information_gain_compares_gold_arcs_with_all_others() -> None:
    compiled = compiled_of(corpus_of(18, 20))
    data, templates = compiled.problem.data, len(TEMPLATES)
    arcs, gold = len(data.gold), data.gold >= 0
    gains = np.zeros(templates)
    for attribute in range(compiled.problem.attributes):
        has = np.zeros(arcs, np.bool_)
        for arc in range(arcs):
            has[arc] = attribute in data.rows[data.starts[arc] : data.starts[arc + 1]]
        for y in (True, False):
            both, one, other = (has & (gold == y)).mean(), has.mean(), (gold == y).mean()
            if both:
                gains[compiled.index.seen_at[attribute] % templates] += both * np.log2(both / (one * other))
    assert [each.gain for each in rank(compiled, templates)] == pytest.approx(gains.tolist())
