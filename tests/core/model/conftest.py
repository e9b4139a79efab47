import numpy as np
import pytest

from core.corpus.conll import read_conll
from core.corpus.corpus import Corpus
from core.corpus.generate import generate
from core.features.spec import FeatureSpec
from core.learn.evaluation import Weights
from core.learn.problem import Compiled, compile_corpus
from core.model.build import build_model
from core.model.model import Model


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return read_conll(generate("references", 60, 3), max_line_bytes=1 << 16)


@pytest.fixture(scope="session")
def compiled(corpus: Corpus) -> Compiled:
    return compile_corpus(FeatureSpec().resolve(len(corpus.columns)), corpus)


@pytest.fixture(scope="session")
def weights(compiled: Compiled) -> Weights:
    """Sparse random weights: 4 attributes in 5 have none."""
    problem = compiled.problem
    rng = np.random.default_rng(7)
    count, labels = problem.attributes + len(problem.labels), len(problem.labels)
    values = np.zeros((count, problem.width), np.float32)
    values[:, :labels] = rng.normal(size=(count, labels)) * (rng.random((count, labels)) < 0.3)
    values[:-labels][rng.random(count - labels) < 0.8] = 0
    return Weights(problem, values.reshape(-1))


@pytest.fixture(scope="session")
def model(compiled: Compiled, weights: Weights) -> Model:
    return build_model(compiled, weights)
