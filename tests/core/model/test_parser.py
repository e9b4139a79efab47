"""Parsing against a dictionary of strings and all trees of short sentences."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.inference.tree.rules import TreeRules
from tagsmith.core.learn.problem.problem import Compiled
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.difference import weight_difference
from tagsmith.core.model.file import save
from tagsmith.core.model.inspection import histogram, top_features, top_transitions
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.parser import parse
from tagsmith.core.model.parsing.explanation import explain_arcs
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.model.templates import template_sizes
from tagsmith.core.pipeline.build import build_model
from tests.core.inference.tree import enumeration
from tests.core.model.forging import words_model
from tests.core.model.parsers import (
    StringParser,
    compiled_trees,
    corpus_of_trees,
    features_of,
    random_weights,
    rows_of,
)


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compiled_trees()


@pytest.fixture(scope="module")
def weights(compiled: Compiled) -> Weights:
    return random_weights(compiled, 5)


@pytest.fixture(scope="module")
def model(compiled: Compiled, weights: Weights) -> SparseModel:
    return build_model(compiled, weights)


@pytest.fixture(scope="module")
def twin(model: SparseModel) -> StringParser:
    return StringParser.of(model)


def short_sentences() -> list[list[list[str]]]:
    """Sentences of up to five words of the corpus, and an unknown one."""
    rng = np.random.default_rng(8)
    words = [token for row in rows_of(corpus_of_trees()) for token in row]
    words += [["unheard", "NOUN"], ["unheard", "X"]] * 20
    return [
        [words[i] for i in rng.integers(0, len(words), length)] for length in [1, 2, 2, 3, 3, 4, 4, 5, 5, 5]
    ]


def test_attributes_are_those_with_weights_and_those_that_these_need(
    model: SparseModel, weights: Weights
) -> None:
    assert model.active_features == np.count_nonzero(weights.values)
    live = int(weights.attribute_rows.any(axis=1).sum())
    without = int((np.diff(model.attributes.starts) == 0).sum())
    assert model.attributes.size - without == live < len(weights.attribute_rows)
    assert without > 10


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_the_best_of_all_trees_is_found_with_its_probability(
    model: SparseModel, twin: StringParser, projective: bool, single_root: bool
) -> None:
    rules = TreeRules(present=True, projective=projective, single_root=single_root)
    tagger = Tagger(replace(model, trees=rules))
    sentences = short_sentences()
    coded = tagger.code(sentences)
    parsed = parse(tagger, coded, probabilities=True)
    for i, rows in enumerate(sentences):
        begin, end = coded.offsets[i : i + 2].tolist()
        every = enumeration.trees(len(rows), single_root, projective)
        scores = twin.scores(rows)
        totals = enumeration.totals(scores, every)
        heads = (-1, *parsed.heads[begin:end].tolist())
        assert heads in set(map(tuple, every.tolist()))
        assert enumeration.score(scores, heads) == pytest.approx(totals.max(), abs=1e-9)
        assert parsed.scores[i] == pytest.approx(totals.max(), abs=1e-9)
        log_z = enumeration.log_z(scores, every)
        assert parsed.log_probabilities[i] == pytest.approx(totals.max() - log_z, abs=1e-9)
        sums = enumeration.marginals(scores, every)
        for m in range(1, len(rows) + 1):
            token, head = begin + m - 1, heads[m]
            assert parsed.arc_probabilities[token] == pytest.approx(sums[head, m], abs=1e-9)
            relations = twin.lanes(rows, head, m)[1:]
            assert parsed.relations[token] == 1 + int(np.argmax(relations))
            share = np.exp(relations - relations.max())
            expected = sums[head, m] * share.max() / share.sum()
            assert parsed.relation_probabilities[token] == pytest.approx(expected, abs=1e-9)


def test_scores_of_long_sentences_are_sums_of_weights(model: SparseModel, twin: StringParser) -> None:
    tagger = Tagger(model)
    sentences = [row for row in rows_of(corpus_of_trees(30, 17)) if len(row) > 8][:6]
    sentences.append(list(chain.from_iterable(sentences)))
    coded = tagger.code(sentences)
    parsed = parse(tagger, coded)
    for i, rows in enumerate(sentences):
        begin, end = coded.offsets[i : i + 2].tolist()
        arcs = list(enumerate(parsed.heads[begin:end].tolist(), start=1))
        assert parsed.scores[i] == pytest.approx(sum(twin.lanes(rows, h, m)[0] for m, h in arcs), abs=1e-6)
    assert parsed.arc_probabilities.size == parsed.log_probabilities.size == 0


def test_parsing_equals_decoding_with_the_trained_weights(
    model: SparseModel, compiled: Compiled, weights: Weights
) -> None:
    corpus = corpus_of_trees(30, 99)
    tagger = Tagger(model)
    parsed = parse(tagger, tagger.code_corpus(corpus))
    problem = compiled.problem_of(corpus)
    chosen = weights.decode(problem)
    assert problem.gold_trees is not None
    trees = problem.gold_trees.predicted(chosen, compiled.problem.labels)
    assert parsed.heads.tolist() == trees.heads.tolist()
    assert parsed.relations.tolist() == trees.relations.ids.tolist()


def test_a_file_keeps_the_parser(
    model: SparseModel, compiled: Compiled, weights: Weights, tmp_path: Path
) -> None:
    assert save(model, tmp_path / "a") == save(build_model(compiled, weights), tmp_path / "b")
    opened = Tagger.open(tmp_path / "a")
    save(opened.model, tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == (tmp_path / "a").read_bytes()
    assert opened.is_parser
    assert opened.model.trees == compiled.problem.data.trees
    sentences = short_sentences()
    assert opened.parse(sentences) == Tagger(model).parse(sentences)


def test_the_answer_has_heads_and_relations_of_each_sentence(model: SparseModel) -> None:
    tagger = Tagger(model)
    sentences = short_sentences()
    parsed = parse(tagger, tagger.code(sentences))
    found = tagger.parse([*sentences, []])
    assert [head for each in found for head in each.heads] == parsed.heads.tolist()
    assert [len(each.relations) for each in found] == [len(sentence) for sentence in sentences] + [0]
    assert {relation for each in found for relation in each.relations} <= set(model.relations)


def test_vocabularies_and_templates_keep_only_what_is_used(compiled: Compiled) -> None:
    problem = compiled.problem
    values = np.zeros((problem.rows, problem.width), np.float32)
    (row,) = (
        row
        for row, name in enumerate(
            StringParser.of(build_model(compiled, Weights(problem, np.ones(values.size, np.float32)))).weights
        )
        if name == "head.upos|modifier.upos|direction|distance=VERB|ADV|left|1"
    )
    values[row, 0] = 2.5
    model = build_model(compiled, Weights(problem, values.reshape(-1)))
    assert [vocabulary.strings() for vocabulary in model.coder.vocabularies] == [[], ["VERB", "ADV"]]
    assert [template.name for template in model.features.templates] == [
        "head.upos|modifier.upos|direction|distance"
    ]
    assert model.attribute_name(0) == "head.upos|modifier.upos|direction|distance=VERB|ADV|left|1"
    assert Tagger(model).parse([[["he", "PRON"], ["ran", "VERB"], ["off", "ADV"]]])[0].heads[2] == 2


def test_a_model_without_weights_parses(compiled: Compiled) -> None:
    problem = compiled.problem
    model = build_model(compiled, Weights(problem, np.zeros(problem.rows * problem.width, np.float32)))
    (found,) = Tagger(model).parse([[["a", "X"], ["b", "Y"]]])
    assert enumeration.is_tree((-1, *found.heads))


def test_parsers_do_not_tag_and_taggers_do_not_parse(model: SparseModel) -> None:
    tagger = Tagger(model)
    with pytest.raises(Invalid, match="Use parse"):
        tagger.tag([[["a", "X"]]])
    with pytest.raises(Invalid, match="Use parse"):
        decode(tagger, tagger.code([[["a", "X"]]]), DecodingOptions(nbest=2))
    with pytest.raises(Invalid, match="list of tokens"):
        tagger.parse("a b")
    with pytest.raises(Invalid, match="Use tag"):
        Tagger(words_model()).parse([["我"]])


def test_explanations_add_up_to_the_scores(model: SparseModel, twin: StringParser) -> None:
    tagger = Tagger(model)
    sentences = short_sentences()
    coded = tagger.code(sentences)
    parsed = parse(tagger, coded, probabilities=True)
    places = [(i, t) for i, rows in enumerate(sentences) for t in range(len(rows))]
    rules = model.trees
    assert rules is not None
    found = list(explain_arcs(tagger, coded, parsed, places))
    assert [(each.sentence, each.token) for each in found] == places
    for token, each in enumerate(found):
        rows, m = sentences[each.sentence], each.token + 1
        every = enumeration.trees(len(rows), rules.single_root, rules.projective)
        sums = enumeration.marginals(twin.scores(rows), every)[:, m]
        assert each.head.head == parsed.heads[token]
        assert each.head.probability == pytest.approx(parsed.arc_probabilities[token])
        others = np.delete(sums, [m, each.head.head])
        assert (each.runner_up is None) == (others.max(initial=0) == 0)
        if each.runner_up is not None:
            assert each.runner_up.probability == pytest.approx(others.max())
        for candidate in filter(None, (each.head, each.runner_up)):
            lanes = twin.lanes(rows, candidate.head, m)
            assert candidate.score == pytest.approx(lanes[0], abs=1e-6)
            assert candidate.score == pytest.approx(sum(candidate.weights), abs=1e-9)
            assert set(candidate.features) <= set(features_of(rows, candidate.head, m))
            assert np.all(np.diff(np.abs(candidate.weights)) <= 0)
        assert each.relation is not None
        assert each.other_relation is not None
        lanes = twin.lanes(rows, each.head.head, m)
        for relation in (each.relation, each.other_relation):
            assert relation.score == pytest.approx(lanes[model.labels.index(relation.relation)], abs=1e-6)
        product = each.head.probability * each.relation.probability
        assert product == pytest.approx(parsed.relation_probabilities[token])
        assert each.other_relation.score == pytest.approx(np.sort(lanes[1:])[-2], abs=1e-6)


def test_inspection_shows_the_weights_of_heads_and_of_relations(
    model: SparseModel, twin: StringParser
) -> None:
    template = "head.form|modifier.form"
    found, rest = top_features(model, "(head)", template, 1000, None)
    expected = {
        name: own[0] for name, own in twin.weights.items() if own[0] and name.startswith(f"{template}=")
    }
    assert rest is None
    assert {each.feature: each.weight for each in found} == expected
    assert len(expected) > 10
    assert {each.label for each in found} == {"(head)"}
    assert any(each.label in model.relations for each in top_features(model, None, None, 10, None)[0])
    assert top_transitions(model, None, None, 10, None) == ([], None)
    assert sum(histogram(model, 5).features) == model.active_features
    sizes = template_sizes(model)
    assert sum(size.active_features for size in sizes) == model.active_features
    assert {size.name for size in sizes} == {template.name for template in model.features.templates}


def test_parsers_are_compared_by_the_names_of_features(compiled: Compiled, model: SparseModel) -> None:
    other = build_model(compiled, random_weights(compiled, 6))
    assert weight_difference(model, model, 5).top == []
    difference = weight_difference(model, other, 5)
    assert difference.base == model.active_features
    assert difference.head == other.active_features
    first = difference.top[0]
    weights = [StringParser.of(each).weights for each in (model, other)]
    assert first.feature is not None
    lane = model.labels.index(first.label)
    both = [own[first.feature][lane] if first.feature in own else 0.0 for own in weights]
    assert [first.base, first.head] == both
