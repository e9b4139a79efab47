"""A model has the templates that its weights come from, and the columns that these look at."""

from pathlib import Path

import numpy as np
import pytest

from core.corpus.conll import read_conll
from core.corpus.generate import generate
from core.features.spec import FeatureSpec
from core.inference.vector import zeros
from core.learn.evaluation import Weights
from core.learn.problem import Compiled, compile_corpus
from core.model.build import build_model
from core.model.file import save
from core.model.tagger import Tagger

TEMPLATES = [
    "word[0]",
    "low[-1]",
    "1[0]",
    "shape[1]",
    {"join": ["word[-1]"], "name": "near"},
    {"join": ["word[1]"], "name": "near"},
    {"join": ["1[0]"], "edge": True},
    "sub[0]",
    {"edge": True},
]
DERIVED = {
    "low": {"kind": "lower"},
    "shape": {"kind": "shape"},
    "sub": {"kind": "substrings", "n": 3},
}
SENTENCES = [[["Smith", "CAP"], [",", "PUNCT"], ["1999", "NUM"], ["unseen", "LOW"]]]


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    corpus = read_conll(generate("references", 60, 3), max_line_bytes=1 << 16)
    spec = FeatureSpec.model_validate({"templates": TEMPLATES, "derived": DERIVED})
    return compile_corpus(spec.resolve(2), corpus)


def weights_of(compiled: Compiled, kept: list[str]) -> Weights:
    """Random weights of the templates kept, and none of the others."""
    problem = compiled.problem
    assert problem.templates is not None
    numbers = [problem.templates.names.index(name) for name in kept]
    values = zeros(problem.rows * problem.width, np.float32)
    rows = np.isin(problem.templates.of_rows(len(problem.labels)), numbers)
    drawn = np.random.default_rng(1).normal(size=(int(rows.sum()), len(problem.labels)))
    values.reshape(-1, problem.width)[rows, : len(problem.labels)] = drawn
    return Weights(problem, values)


@pytest.mark.parametrize(
    ("kept", "columns"),
    [
        (["word[0]", "B"], ["0"]),
        (["low[-1]", "B"], ["0", "low"]),
        (["near"], ["0"]),
        (["1[0]", "shape[1]", "B"], ["0", "1", "shape"]),
        (["1[0] (2)", "word[0]"], ["0", "1"]),
        (["sub[0]=*", "1[0]"], ["0", "1"]),
        (["B"], ["0"]),
    ],
)
def test_what_has_no_weight_is_not_computed_and_changes_no_label(
    compiled: Compiled, tmp_path: Path, kept: list[str], columns: list[str]
):
    weights = weights_of(compiled, kept)
    model = build_model(compiled, weights)
    save(model, tmp_path / "model")
    tagger = Tagger.open(tmp_path / "model")
    features = tagger.model.features
    # Templates that make the same features are one.
    names = [t.name for t in features.templates] + [f"{t.name}=*" for t in features.over_several]
    assert {name for name in names if name != "B"} == {name.removesuffix(" (2)") for name in kept} - {"B"}
    assert names.count("near") == 2 * ("near" in kept)
    assert (tagger.model.edges is not None) == ("1[0] (2)" in kept)
    made = [column.name for column in tagger.model.coder.made]
    assert [str(i) for i in range(len(tagger.model.coder.base))] + made == columns
    corpus = read_conll(generate("references", 30, 9), max_line_bytes=1 << 16)
    expected = weights.decode(compiled.problem_of(corpus))
    assert tagger.decode(tagger.code_corpus(corpus)).tolist() == expected.tolist()
    # A model that looks at fewer columns than there are takes text that has them all.
    assert len(tagger.tag(SENTENCES)[0]) == 4
