"""A fold of a compiled corpus is what compiling its sentences alone would give."""

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.pipeline.experiments.folds import fold_of, parts, shared
from tests.core.pipeline.experiments import runs


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


def test_parts_cover_every_sentence_once_and_hang_on_the_seed() -> None:
    dealt = parts(103, 4, 1)
    assert sorted(np.concatenate(dealt).tolist()) == list(range(103))
    assert sorted(len(part) for part in dealt) == [25, 26, 26, 26]
    assert all(np.array_equal(a, b) for a, b in zip(dealt, parts(103, 4, 1), strict=True))
    assert not np.array_equal(dealt[0], parts(103, 4, 2)[0])
    with pytest.raises(Invalid) as raised:
        parts(3, 4, 1)
    assert (raised.value.code, raised.value.faults[0].pointer) == ("corpus_too_small", "/folds")
