import numpy as np
import pytest

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Compiled, compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.model import SparseModel
from tagsmith.core.pipeline.build import build_model


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return read_conll(generate("references", 60, 3), max_line_bytes=1 << 16)


#: Templates joined with the label pair, beside some that are not.
RICH = FeatureSpec.model_validate(
    {
        "templates": "UW+0:%x[0,0]\nUWW-:%x[-1,0]/%x[0,0]\nUS:%x[0,end]\nB\n"
        "BW:%x[0,0]\nBWW:%x[-2,0]/%x[0,1]\nBE:%x[0,end]",
        "derived": {"end": {"kind": "suffix", "n": 2}},
    }
)


@pytest.fixture(scope="session", params=[FeatureSpec(), RICH], ids=["generic", "rich"])
def compiled(corpus: Corpus, request: pytest.FixtureRequest) -> Compiled:
    return compile_corpus(request.param.resolve(len(corpus.columns)), corpus)


@pytest.fixture(scope="session")
def weights(compiled: Compiled) -> Weights:
    """Sparse random weights: 4 attributes in 5 have none."""
    problem = compiled.problem
    rng = np.random.default_rng(7)
    count, labels = problem.rows, len(problem.labels)
    values = np.zeros((count, problem.width), np.float32)
    values[:, :labels] = rng.normal(size=(count, labels)) * (rng.random((count, labels)) < 0.3)
    values[: problem.attributes][rng.random(problem.attributes) < 0.8] = 0
    weights = Weights(problem, values.reshape(-1))
    weights.edge_matrices[rng.random(problem.edge_attributes) < 0.8] = 0
    return weights


@pytest.fixture(scope="session")
def model(compiled: Compiled, weights: Weights) -> SparseModel:
    return build_model(compiled, weights)
