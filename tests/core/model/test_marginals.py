"""Probabilities of a model's labels, against the sum over every labelling."""

from itertools import pairwise

import numpy as np
import pytest

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.learn.problem.problem import Compiled
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.marginals import marginals
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.build import build_model
from tests import naive


def _short(corpus: bytes, tokens: int) -> Corpus:
    """A corpus of the first tokens of each sentence: few enough to go through every labelling."""
    sentences = [b"\n".join(s.split(b"\n")[:tokens]) for s in corpus.strip().split(b"\n\n")]
    return read_conll([b"\n\n".join(sentences) + b"\n"], max_line_bytes=1 << 16)


def _twin(compiled: Compiled, weights: Weights, corpus: Corpus) -> list[np.ndarray]:
    """p(y_t) of every sentence, by enumeration over the weights that the model was made from."""
    problem = compiled.problem_of(corpus)
    d = problem.data
    rich = len(d.edge_starts) > 0
    expected = []
    for begin, end in pairwise(d.offsets.tolist()):
        sentence = naive.Sentence(
            [[(a, 1.0) for a in d.rows[d.starts[t] : d.starts[t + 1]].tolist()] for t in range(begin, end)],
            [0] * (end - begin),
            [d.edge_rows[d.edge_starts[t] : d.edge_starts[t + 1]].tolist() for t in range(begin, end)]
            if rich
            else None,
        )
        rows = np.concatenate([weights.transitions, *weights.edge_blocks]).astype(float)
        emissions = sentence.emissions(weights.attribute_rows.astype(float))
        expected.append(naive.marginals(emissions, sentence.transitions(rows))[0])
    return expected


@pytest.mark.parametrize("scale", [1.0, 30.0], ids=["near", "too far apart for sums"])
def test_marginals_equal_enumeration(compiled: Compiled, weights: Weights, scale: float):
    scaled = Weights(weights.problem, weights.values * np.float32(scale))
    corpus = _short(b"".join(generate("references", 12, 5)), 3)
    tagger = Tagger(build_model(compiled, scaled))
    found = marginals(tagger, tagger.code_corpus(corpus))
    expected = np.concatenate(_twin(compiled, scaled, corpus))
    assert found.shape == expected.shape
    assert (expected.max(axis=1) < 0.999).any()
    np.testing.assert_allclose(found, expected, atol=2e-4 if scale > 1 else 1e-5)


def test_marginals_of_nothing_are_nothing(compiled: Compiled, weights: Weights):
    tagger = Tagger(build_model(compiled, weights))
    assert marginals(tagger, tagger.code([])).shape == (0, len(tagger.labels))
    assert marginals(tagger, tagger.code([[], [["a", "CAP"]], []])).sum() == pytest.approx(1, abs=1e-5)
