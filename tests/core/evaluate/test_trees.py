"""Scores of dependency trees against a count word by word."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.corpus.corpus import Column, Trees
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.evaluate import significance
from tagsmith.core.evaluate.trees import TreeMetrics, evaluate, punctuation, sentence_counts, usable_relations

Arc = tuple[int, str]  # head and relation
#: Per word: gold arc, predicted arc, whether it is punctuation.
Sentence = list[tuple[Arc, Arc, bool]]


def column(names: list[str]) -> Column:
    distinct = list(dict.fromkeys(names))
    ids = np.array([distinct.index(name) for name in names], np.int32)
    return Column("relation", Vocabulary.from_strings(distinct), ids)


def trees(arcs: list[Arc]) -> Trees:
    return Trees(np.array([head for head, _ in arcs], np.int32), column([relation for _, relation in arcs]))


def sides(sentences: list[Sentence]) -> tuple[Trees, Trees, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    words = [word for sentence in sentences for word in sentence]
    offsets = np.cumsum([0, *map(len, sentences)])
    return trees([gold for gold, _, _ in words]), trees([predicted for _, predicted, _ in words]), offsets


def measured(sentences: list[Sentence]) -> TreeMetrics:
    marks = np.array([mark for sentence in sentences for *_, mark in sentence], np.bool_)
    return evaluate(*sides(sentences), marks)


def share(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


ARC = st.tuples(st.integers(0, 2), st.sampled_from("xyz"))
#: Predictions often agree with the gold arcs.
WORD = st.tuples(ARC, ARC, st.booleans(), st.booleans()).map(lambda w: (w[0], w[0] if w[2] else w[1], w[3]))
SENTENCES = st.lists(st.lists(WORD, max_size=6), max_size=5)


@settings(max_examples=300, deadline=None)
@given(SENTENCES)
def test_scores_are_those_of_a_count_word_by_word(sentences: list[Sentence]) -> None:
    found = measured(sentences)
    usable = len({gold[1] for sentence in sentences for gold, _, _ in sentence}) > 1
    heads = arcs = words = word_heads = word_arcs = tokens = right = 0
    for sentence in sentences:
        good = True
        for gold, predicted, mark in sentence:
            head, arc = gold[0] == predicted[0], gold == predicted
            tokens, heads, arcs = tokens + 1, heads + head, arcs + arc
            if not mark:
                words, word_heads, word_arcs = words + 1, word_heads + head, word_arcs + arc
            good = good and (arc if usable else head)
        right += good
    assert (found.tokens, found.heads_correct, found.words, found.words_heads_correct) == (
        tokens, heads, words, word_heads,
    )  # fmt: skip
    assert (found.uas, found.uas_without_punctuation) == (share(heads, tokens), share(word_heads, words))
    assert (found.sentences, found.sentences_correct) == (len(sentences), right)
    if usable:
        assert (found.arcs_correct, found.words_arcs_correct) == (arcs, word_arcs)
        assert (found.las, found.las_without_punctuation) == (share(arcs, tokens), share(word_arcs, words))
    else:
        assert (found.las, found.las_without_punctuation, found.arcs_correct, found.by_type) == (
            None,
            None,
            None,
            {},
        )


@settings(max_examples=300, deadline=None)
@given(SENTENCES)
def test_relations_are_scored_by_their_labelled_arcs(sentences: list[Sentence]) -> None:
    found = measured(sentences).by_type
    words = [word for sentence in sentences for word in sentence]
    gold, predicted = Counter(g[1] for g, _, _ in words), Counter(p[1] for _, p, _ in words)
    correct = Counter(g[1] for g, p, _ in words if g == p)
    with_head = Counter(g[1] for g, p, _ in words if g[0] == p[0])
    if not found:
        assert len(gold) < 2
        return
    assert list(found) == sorted(gold | predicted)
    for name, score in found.items():
        assert (score.gold, score.predicted, score.correct, score.heads_correct) == (
            gold[name], predicted[name], correct[name], with_head[name],
        )  # fmt: skip
        assert score.precision == share(correct[name], predicted[name])
        assert score.recall == share(correct[name], gold[name])
        assert score.f1 == pytest.approx(share(2 * correct[name], gold[name] + predicted[name]))


@settings(max_examples=100, deadline=None)
@given(SENTENCES)
def test_the_counts_of_sentences_give_uas_to_tests_of_significance(sentences: list[Sentence]) -> None:
    counts = sentence_counts(*sides(sentences))
    assert counts.shape == (len(sentences), 3)
    assert significance.f1_of(counts) == pytest.approx(measured(sentences).uas)


def test_relations_that_the_gold_trees_do_not_have_are_scored_too() -> None:
    found = measured([[((0, "root"), (0, "root"), False), ((1, "obj"), (1, "new"), False)]])
    assert (found.uas, found.las) == (100, 50)
    assert (
        found.by_type["new"].predicted,
        found.by_type["new"].gold,
        found.by_type["obj"].heads_correct,
    ) == (1, 0, 1)


@pytest.mark.parametrize(
    ("names", "usable"),
    [(["a", "b"], True), (["a", "a"], False), (["_", "_"], False), (["a", "b", "_"], False), ([], False)],
)
def test_relations_are_usable_if_they_differ_and_none_is_unknown(names: list[str], usable: bool) -> None:
    assert usable_relations(column(names)) is usable


def test_relations_of_the_vocabulary_that_no_word_has_do_not_count() -> None:
    relations = column(["a", "b", "_"])
    assert usable_relations(replace(relations, ids=np.array([0, 1], np.int32)))
    assert not usable_relations(replace(relations, ids=np.array([0, 0], np.int32)))


def test_punctuation_is_made_of_punctuation_and_symbols_only() -> None:
    forms = ["...", ",", "a.", "«", "$", "%", "3", "", "¿?", "-LRB-", "“", "。", ","]
    found = punctuation(column(forms))
    assert [form for form, mark in zip(forms, found, strict=True) if mark] == [
        "...", ",", "«", "$", "%", "¿?", "“", "。", ",",
    ]  # fmt: skip


def test_the_score_stands_where_those_of_labels_do() -> None:
    found = measured([[((0, "root"), (0, "root"), False), ((1, "obj"), (2, "obj"), True)]])
    plain = json.loads(json.dumps(found.as_dict()))
    assert found.score == "uas"
    assert plain[found.score] == found.value == 50
    assert (plain["sentences"], plain["by_type"]["obj"]["gold"]) == (1, 1)


def test_arrays_of_different_lengths_are_refused() -> None:
    gold, predicted = trees([(0, "x"), (1, "y")]), trees([(0, "x")])
    with pytest.raises(ValueError, match="same length"):
        evaluate(gold, predicted, np.array([0, 2]), np.zeros(2, np.bool_))
    with pytest.raises(ValueError, match="offsets"):
        evaluate(gold, gold, np.array([0, 1]), np.zeros(2, np.bool_))
