"""Dependency trees in a corpus: what is checked, what is carried along, what is counted."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus import trees as kernels
from tagsmith.core.corpus.corpus import Column, Corpus, Trees
from tagsmith.core.corpus.report import report
from tagsmith.core.corpus.sentences import Sentences
from tagsmith.core.corpus.vocabulary import Vocabulary

Heads = list[int]


def corpus_of(*sentences: Heads) -> Corpus:
    """A corpus with these heads; the form of each word and its relation are its number in the corpus."""
    tokens = sum(map(len, sentences))
    ids = np.arange(tokens, dtype=np.int32)
    names = Vocabulary.from_strings([f"w{i}" for i in range(tokens)])
    heads = np.array([head for heads in sentences for head in heads], np.int32)
    offsets = np.cumsum([0, *map(len, sentences)])
    trees = Trees(heads, Column("relation", names, ids))
    return Corpus((Column("form", names, ids),), None, offsets, trees=trees)


# -- twins --


def reaches_the_root(heads: Heads, word: int) -> bool:
    """Whether following the heads leads to 0 in as many steps as there are words."""
    for _ in heads:
        word = heads[word - 1] if word else 0
    return word == 0


def is_tree(heads: Heads) -> bool:
    return all(0 <= head <= len(heads) for head in heads) and all(
        reaches_the_root(heads, word) for word in range(1, len(heads) + 1)
    )


def arcs_cross(heads: Heads) -> bool:
    """Whether two arcs cross when all are drawn above the words, with the artificial root in front."""
    arcs = [tuple(sorted((head, word))) for word, head in enumerate(heads, start=1)]
    return any(a < c < b < d or c < a < d < b for (a, b), (c, d) in combinations(arcs, 2))


@st.composite
def any_heads(draw: st.DrawFn) -> Heads:
    words = draw(st.integers(1, 7))
    return draw(st.lists(st.integers(-1, words + 1), min_size=words, max_size=words))


@st.composite
def tree(draw: st.DrawFn) -> Heads:
    """A tree of up to 7 words, made from an order in which each word is below 0 or an earlier one."""
    words = draw(st.integers(1, 7))
    order = draw(st.permutations(range(1, words + 1)))
    heads = [0] * words
    for place, word in enumerate(order):
        heads[word - 1] = draw(st.sampled_from([0, *order[:place]]))
    return heads


def found_fault(sentences: list[Heads]) -> int | None:
    offsets = np.cumsum([0, *map(len, sentences)])
    return kernels.fault_in(np.array([h for heads in sentences for h in heads], np.int32), offsets)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(any_heads(), tree()), min_size=1, max_size=4))
@example([[0], [1]])
@example([[2, 3, 1]])
def test_the_first_sentence_that_is_not_a_tree_is_found(sentences: list[Heads]) -> None:
    slow = next((number for number, heads in enumerate(sentences) if not is_tree(heads)), None)
    assert found_fault(sentences) == slow


@settings(max_examples=300, deadline=None)
@given(st.lists(tree(), min_size=1, max_size=4))
@example([[0, 0, 1]])
@example([[3, 0, 2, 1]])
def test_sentences_are_nonprojective_if_arcs_cross(sentences: list[Heads]) -> None:
    corpus = corpus_of(*sentences)
    assert corpus.trees is not None
    found = kernels.nonprojective(corpus.trees.heads, corpus.offsets)
    assert found.tolist() == [arcs_cross(heads) for heads in sentences]


@settings(max_examples=100, deadline=None)
@given(tree())
def test_a_word_of_a_cycle_leads_back_to_itself(heads: Heads) -> None:
    closed = [len(heads) if head == 0 else head for head in heads]
    word = int(
        kernels.word_in_cycle(np.array(closed, np.int32), 0, len(closed), np.empty(len(closed) + 1, np.int64))
    )
    at = closed[word - 1]
    for _ in heads:
        at = at if at == word else closed[at - 1]
    assert at == word


def test_words_are_numbered_within_their_sentences() -> None:
    assert kernels.word_numbers(np.array([0, 2, 2, 5])).tolist() == [1, 2, 1, 2, 3]


def test_roots_are_counted_per_sentence() -> None:
    heads = np.array([0, 1, 0, 0, 2, 0], np.int32)
    assert kernels.root_counts(heads, np.array([0, 3, 3, 4, 6])).tolist() == [2, 0, 1, 1]


# -- the corpus --


@pytest.mark.parametrize("heads", [[2, 1], [1], [-1, 0], [3, 0], [2, 3, 1]])
def test_heads_that_are_not_a_tree_are_refused(heads: Heads) -> None:
    with pytest.raises(ValueError, match="sentence 1 are not a tree"):
        corpus_of([0], heads)


def test_trees_have_a_head_and_a_known_relation_for_each_token_and_no_labels_beside_them() -> None:
    corpus = corpus_of([0, 1])
    assert corpus.trees is not None
    few = Trees(corpus.trees.heads[:1], corpus.trees.relations)
    with pytest.raises(ValueError, match="1 heads for 2 tokens"):
        replace(corpus, trees=few)
    unknown = Column("relation", Vocabulary.from_strings(["a"]), np.array([0, 1], np.int32))
    with pytest.raises(ValueError, match="relation has an id outside"):
        replace(corpus, trees=Trees(corpus.trees.heads, unknown))
    with pytest.raises(ValueError, match="not both"):
        replace(corpus, labels=corpus.columns[0])


def test_heads_are_read_only() -> None:
    trees = corpus_of([0, 1]).trees
    assert trees is not None
    with pytest.raises(ValueError, match="read-only"):
        trees.heads[0] = 1


def trees_of(corpus: Corpus) -> list[tuple[list[str], Heads, list[str]]]:
    sentences = Sentences(corpus)
    found = [sentences.read(index) for index in range(corpus.sentences)]
    return [(each.tokens, each.heads, each.relations) for each in found]


def test_a_subset_and_a_split_carry_the_trees_of_their_sentences() -> None:
    corpus = corpus_of([0, 1], [2, 0, 2], [0], [3, 1, 0], [0, 0])
    everything = trees_of(corpus)
    assert everything[1] == (["w2", "w3", "w4"], [2, 0, 2], ["w2", "w3", "w4"])
    assert trees_of(corpus.subset([3, 0])) == [everything[3], everything[0]]
    train, dev = corpus.split(0.4, seed=1)
    assert (train.sentences, dev.sentences) == (3, 2)
    assert sorted(trees_of(train) + trees_of(dev)) == sorted(everything)
    assert trees_of(corpus.comparable()) == everything


def test_a_corpus_is_labelled_by_labels_or_by_trees() -> None:
    corpus = corpus_of([0, 1])
    plain = replace(corpus, trees=None)
    assert corpus.labelled
    assert not plain.labelled
    assert replace(plain, labels=plain.columns[0]).labelled


def test_labels_are_refused_with_what_the_corpus_has_instead() -> None:
    corpus = corpus_of([0, 1])
    with pytest.raises(Invalid, match="has dependency trees") as caught:
        corpus.needed_labels()
    assert caught.value.code == "unlabelled_corpus"
    with pytest.raises(Invalid, match="has no labels"):
        replace(corpus, trees=None).needed_labels()


# -- the report --


def test_the_report_counts_relations_arc_lengths_crossing_arcs_and_roots() -> None:
    corpus = corpus_of([0, 1, 1], [0, 0], [3, 0, 2, 1], [0])
    assert corpus.trees is not None
    names = Vocabulary.from_strings(["root", "arc", "unused"])
    ids = (corpus.trees.heads > 0).astype(np.int32)
    corpus = replace(corpus, trees=Trees(corpus.trees.heads, Column("relation", names, ids)))
    found = report(corpus)
    assert found.trees is not None
    assert found.trees.relation_counts == {"root": 5, "arc": 5, "unused": 0}
    assert found.trees.arc_lengths == {"1": 2, "2": 2, "3": 1}
    assert (found.trees.nonprojective_sentences, found.trees.several_roots_sentences) == (1, 1)
    assert (found.label_counts, found.label_scheme) == ({}, None)
    assert found.vocabulary_sizes == {"form": 10, "relation": 3}
    assert report(replace(corpus, trees=None)).trees is None


def test_the_same_words_with_other_trees_conflict_and_with_the_same_tree_are_duplicates() -> None:
    names = Vocabulary.from_strings(["a"])
    column = Column("form", names, np.zeros(8, np.int32))
    relations = Column("relation", Vocabulary.from_strings(["x", "y"]), np.array([0] * 6 + [0, 1], np.int32))
    heads = np.array([0, 1, 2, 0, 0, 1, 0, 1], np.int32)
    found = report(Corpus((column,), None, np.array([0, 2, 4, 6, 8]), trees=Trees(heads, relations)))
    assert (found.duplicate_sentences, found.conflicting_sentences) == (1, 2)
