"""What is shown of a decision adds up to what decided."""

from itertools import pairwise

import numpy as np
import pytest

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.ndjson import read_ndjson
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.explanation import explain
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.tagger import Tagger, score, score_edges
from tagsmith.core.pipeline.build import build_model


def test_scores_are_those_of_the_label_between_its_neighbours(model: SparseModel, corpus: Corpus) -> None:
    tagger = Tagger(model)
    coded = tagger.code_corpus(corpus).part(0, 8)
    decoded = decode(tagger, coded, DecodingOptions(distributions=True))
    lengths = np.diff(coded.offsets).tolist()
    places = [(i, t) for i, length in enumerate(lengths) for t in range(length)]
    found = list(explain(tagger, coded, decoded, places))
    assert [(each.sentence, each.token) for each in found] == places
    at, named = 0, 0
    for begin, end in pairwise(coded.offsets.tolist()):
        s = tagger.scratch(end - begin)
        score(tagger.weights, coded, begin, end, s)
        score_edges(tagger.weights, tagger.edge_weights, coded, begin, end, s) if len(s.matrices) else None
        labels = decoded.labels[begin:end].tolist()
        for t in range(end - begin):
            each = found[at]
            at += 1
            assert each.chosen.tag == model.labels[labels[t]]
            row = decoded.distributions[begin + t]
            assert each.chosen.probability == pytest.approx(row[labels[t]])
            for candidate in filter(None, (each.chosen, each.runner_up)):
                y = model.labels.index(candidate.tag)
                path = [*labels[:t], y, *labels[t + 1 :]]
                expected = float(s.scores[t * tagger.width + y])
                for u in (t, t + 1):
                    if 0 < u < end - begin:
                        expected += _edge(tagger, s.matrices, u, path[u - 1], path[u])
                assert candidate.score == pytest.approx(expected, abs=1e-4)
                assert candidate.score == pytest.approx(
                    sum(candidate.weights) + sum(candidate.transitions.weights), abs=1e-9
                )
                named += sum(name is not None for name in candidate.transitions.features)
            assert each.runner_up is not None
            others = np.delete(row, labels[t])
            assert each.runner_up.probability == pytest.approx(others.max())
    assert (named > 0) == (model.edges is not None)


def _edge(tagger: Tagger, matrices: np.ndarray, token: int, before: int, after: int) -> float:
    if not len(matrices):
        return float(tagger.model.transitions[before, after])
    size = len(tagger.weights.transitions)
    return float(matrices[token * size + before * tagger.width + after])


def test_features_have_their_names_strongest_first(model: SparseModel, corpus: Corpus) -> None:
    tagger = Tagger(model)
    coded = tagger.code_corpus(corpus).part(0, 8)
    decoded = decode(tagger, coded, DecodingOptions(distributions=True))
    places = [(i, 0) for i in range(8)]
    names = {model.attribute_name(i) for i in range(model.attributes.size)}
    for each in explain(tagger, coded, decoded, places):
        assert set(each.chosen.features) <= names
        assert 0 not in each.chosen.weights
        assert np.all(np.diff(np.abs(each.chosen.weights)) <= 0)


def test_values_of_named_attributes_count() -> None:
    text = b'{"tokens": [{"size": 2.5}, {"word": "said"}], "labels": ["A", "B"]}'
    compiled = compile_corpus(FeatureSpec().resolve(0), read_ndjson([text], max_line_bytes=1000))
    problem = compiled.problem
    values = np.zeros(problem.rows * problem.width, np.float32)
    (bag,) = compiled.bags
    row = int(bag.attributes[bag.vocabulary.id_of("size")])
    values[row * problem.width] = 2.0
    tagger = Tagger(build_model(compiled, Weights(problem, values)))
    coded = tagger.code([[{"size": 3.0}]])
    decoded = decode(tagger, coded, DecodingOptions(distributions=True))
    (each,) = explain(tagger, coded, decoded, [(0, 0)])
    assert (each.chosen.tag, each.chosen.features, each.chosen.weights) == ("A", ["size"], [6.0])
    assert each.runner_up is not None
    assert (each.runner_up.tag, each.runner_up.weights, each.runner_up.score) == ("B", [], 0)
