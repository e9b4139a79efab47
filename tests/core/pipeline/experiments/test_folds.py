"""A fold of a compiled corpus is what compiling its sentences alone would give."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.features.spec import FeatureSpec, InformationGain
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.pipeline.experiments.folds import fold_of, parts, shared
from tagsmith.core.pipeline.experiments.tune import Folds, _Workbench
from tests.core.pipeline.experiments import runs
from tests.core.problems import random_problem


def attributes_by_token(problem: Problem, names: np.ndarray) -> list[list[int]]:  # type: ignore[type-arg]
    data = problem.data
    return [
        sorted(names[data.rows[a:b]].tolist()) for a, b in zip(data.starts[:-1], data.starts[1:], strict=True)
    ]


@pytest.mark.parametrize("cutoff", [1, 2, 5])
def test_held_out_sentences_have_no_say_in_the_cutoff(cutoff: int) -> None:
    corpus = runs.corpus(60)
    features = FeatureSpec(templates=runs.FEATURES["templates"], cutoff=cutoff, pairs="seen")
    whole = compile_corpus(shared(features).resolve(2), corpus)
    held_out = parts(corpus.sentences, 3, 7)[1]
    fold = fold_of(whole.problem, held_out, features)

    rest = np.setdiff1d(np.arange(corpus.sentences), held_out)
    alone = compile_corpus(features.resolve(2), corpus.subset(rest))
    scored = alone.problem_of(corpus.subset(held_out))
    assert fold.train.attributes == fold.held_out.attributes == alone.problem.attributes
    # The rows of a fold are those of the whole that are left, in the same order: the keys tell which is which.
    kept = np.bincount(whole.problem.subset(rest).data.rows, minlength=whole.problem.attributes) >= cutoff
    keys = whole.index.keys[kept]
    assert attributes_by_token(fold.train, keys) == attributes_by_token(alone.problem, alone.index.keys)
    assert attributes_by_token(fold.held_out, keys) == attributes_by_token(scored, alone.index.keys)
    assert fold.train.existing.seen_pairs
    assert fold.train.labels == whole.problem.labels
    names = np.array(whole.problem.labels)
    assert names[fold.held_out.data.gold].tolist() == np.array(scored.labels)[scored.data.gold].tolist()


def test_a_fold_of_rich_edges_has_the_edge_attributes_of_its_own_tokens() -> None:
    problem, twins = random_problem(3, edge_attributes=4)
    chosen = [4, 0, 4]
    data = problem.subset(np.array(chosen)).data
    edges = [data.edge_rows[a:b].tolist() for a, b in pairwise(data.edge_starts.tolist())]
    assert edges == [list(row) for number in chosen for row in twins[number].edges]
    assert any(edges)


def test_templates_of_a_fold_are_chosen_without_its_held_out_labels() -> None:
    corpus = runs.corpus(60)
    assert corpus.labels is not None
    select = InformationGain(kind="information-gain", templates=2)
    features = FeatureSpec(templates=runs.FEATURES["templates"], select=select)
    held_out = parts(corpus.sentences, 3, 7)[1]
    ids = corpus.labels.ids.copy()
    for sentence in held_out:
        ids[corpus.offsets[sentence] : corpus.offsets[sentence + 1]] = ids[0]
    spoilt = replace(corpus, labels=replace(corpus.labels, ids=ids))
    fold, other = (_Workbench(each, {}, Folds(3, 7)).fold(features, 1) for each in (corpus, spoilt))
    assert fold.train.attributes == other.train.attributes > 0
    assert fold.train.data.rows.tolist() == other.train.data.rows.tolist()
    assert fold.held_out.data.gold.tolist() != other.held_out.data.gold.tolist()
    # Of three templates, which every token has an attribute of, two were chosen.
    assert set(np.diff(fold.train.data.starts).tolist()) == {2}


def test_parts_cover_every_sentence_once_and_hang_on_the_seed() -> None:
    dealt = parts(103, 4, 1)
    assert sorted(np.concatenate(dealt).tolist()) == list(range(103))
    assert sorted(len(part) for part in dealt) == [25, 26, 26, 26]
    assert all(np.array_equal(a, b) for a, b in zip(dealt, parts(103, 4, 1), strict=True))
    assert not np.array_equal(dealt[0], parts(103, 4, 2)[0])
    with pytest.raises(Invalid) as raised:
        parts(3, 4, 1)
    assert (raised.value.code, raised.value.faults[0].pointer) == ("corpus_too_small", "/folds")
