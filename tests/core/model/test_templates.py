"""Templates of a model: those without a weight are removed, and the weights of the others are listed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.problem.problem import Compiled, compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.file import load, save
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.model.templates import template_sizes
from tagsmith.core.pipeline.build import build_model
from tests.training import train

SPEC = FeatureSpec.model_validate(
    {
        "templates": [
            "word[-1]",
            "word[0]",
            "end",
            "1[0]",
            {"join": ["word[-2]"], "name": "near"},
            {"join": ["word[2]"], "name": "near"},
            "inside",
            "parts",
            {"join": ["word"], "edge": True, "name": "rich word"},
            {"join": ["1"], "edge": True, "name": "rich tag"},
            {"edge": True},
        ],
        "derived": {
            "end": {"kind": "suffix", "n": 2},
            "inside": {"kind": "substrings", "n": 3},
            "parts": {"kind": "substrings", "n": 4},
        },
    }
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_conll(generate("references", 30, 5), max_line_bytes=1 << 16)


@pytest.fixture(scope="module")
def compiled(corpus: Corpus) -> Compiled:
    return compile_corpus(SPEC.resolve(corpus.names), corpus)


def weights_without(compiled: Compiled, names: set[str]) -> Weights:
    """Random weights, none for the templates named."""
    problem, features, index = compiled.problem, compiled.features, compiled.index
    values = np.zeros((problem.rows, problem.width), np.float32)
    values[:, : len(problem.labels)] = np.random.default_rng(1).normal(
        size=(problem.rows, len(problem.labels))
    )
    named = np.array([template.name in names for template in features.unigrams])
    values[: index.size][named[index.seen_at % len(named)]] = 0
    for template, bag in zip(features.bag_templates, compiled.bags, strict=True):
        if template.name in names:
            values[bag.attributes] = 0
    weights = Weights(problem, values.reshape(-1))
    assert compiled.edge_index is not None
    rich = np.array([template.name in names for template in features.rich])
    weights.edge_matrices[rich[compiled.edge_index.seen_at % len(rich)]] = 0
    return weights


@pytest.mark.parametrize(
    "dropped",
    [
        set(),
        {"word[-1]"},
        {"end[0]", "inside[0]"},
        {"1[0]", "rich tag"},
        {"near", "parts[0]"},
        {"rich word", "rich tag"},
        {"word[-1]", "word[0]", "near", "end[0]", "inside[0]", "parts[0]", "rich word"},
        {"word[-1]", "word[0]", "end[0]", "1[0]", "near", "inside[0]", "parts[0]", "rich word", "rich tag"},
    ],
    ids=lambda dropped: f"without {len(dropped)}",
)
def test_a_model_without_templates_tags_as_the_weights_do(
    compiled: Compiled, corpus: Corpus, tmp_path: Path, dropped: set[str]
) -> None:
    weights = weights_without(compiled, dropped)
    model = build_model(compiled, weights)
    templates = (*model.features.templates, *model.features.bag_templates)
    given = (*compiled.features.templates, *compiled.features.bag_templates)
    assert [t.name for t in templates] == [t.name for t in given if t.name not in dropped]
    save(model, tmp_path / "model")
    other = read_conll(generate("references", 15, 77), max_line_bytes=1 << 16)
    tagger = Tagger.open(tmp_path / "model")
    for text, problem in ((corpus, compiled.problem), (other, compiled.problem_of(other))):
        assert tagger.decode(tagger.code_corpus(text)).tolist() == weights.decode(problem).tolist()


def test_columns_that_no_template_left_looks_at_are_gone(compiled: Compiled, tmp_path: Path) -> None:
    model = build_model(compiled, weights_without(compiled, {"1[0]", "rich tag", "end[0]"}))
    assert (model.features.columns, model.features.derived, model.coder.derived) == (1, (), ())
    save(model, tmp_path / "model")
    assert Tagger.open(tmp_path / "model").tag([["a", "b"]])[0][0] in model.labels
    # Nothing is computed for them: one slot a place that is left, one row of codes a column.
    assert len(model.slots.seeds) == 4
    assert len(model.coder.vocabularies) == 1


def test_what_a_template_has_adds_up_to_the_model(compiled: Compiled, tmp_path: Path) -> None:
    weights = weights_without(compiled, {"word[0]"})
    model = build_model(compiled, weights)
    sizes = template_sizes(model)
    assert [(size.name, size.edge) for size in sizes] == [
        ("word[-1]", False), ("end[0]", False), ("1[0]", False), ("near", False), ("inside[0]", False),
        ("parts[0]", False), ("rich word", True), ("rich tag", True), ("B", True),
    ]  # fmt: skip
    assert sum(size.active_features for size in sizes) == model.active_features
    norm = float(np.linalg.norm(weights.values.astype(np.float64)))
    assert sum(size.norm**2 for size in sizes) == pytest.approx(norm**2, rel=1e-6)
    assert model.edges is not None
    assert sum(size.attributes for size in sizes) == model.attributes.size + model.edges.attributes.size
    save(model, tmp_path / "model")
    total = sum(size.size_bytes for size in sizes)
    assert 0.3 * (tmp_path / "model").stat().st_size < total < (tmp_path / "model").stat().st_size
    assert template_sizes(load(tmp_path / "model")) == sizes


def test_the_norm_of_one_template_is_that_of_its_rows(compiled: Compiled) -> None:
    weights = weights_without(compiled, set())
    number = [template.name for template in compiled.features.unigrams].index("end[0]")
    rows = compiled.index.seen_at % len(compiled.features.unigrams) == number
    own = weights.attribute_rows[: compiled.index.size][rows]
    (size,) = [each for each in template_sizes(build_model(compiled, weights)) if each.name == "end[0]"]
    assert (size.attributes, size.active_features) == (len(own), np.count_nonzero(own))
    assert size.norm == pytest.approx(float(np.linalg.norm(own.astype(np.float64))), rel=1e-6)


def _trained(corpus: Corpus, features: dict[str, Any], l1: float) -> Any:
    spec = {
        "kind": "train", "model": "m", "corpus": "crp_x", "features": features,
        "trainer": {"kind": "sgd-l1", "l1": l1, "passes": 5},
    }  # fmt: skip
    return finished(train(TrainSpec.model_validate(spec), corpus, None))


def test_a_plain_l1_model_drops_the_templates_that_it_has_no_use_for_and_says_so(corpus: Corpus) -> None:
    features = {"templates": [{"grams": 3, "window": 4}, "1[0]", {"edge": True}]}
    result = _trained(corpus, features, 10.0)
    dropped = [each["name"] for each in result.metrics["dropped_templates"]]
    left = [template.name for template in result.model.features.templates]
    assert (len(dropped) > 3, len(left) > 1) == (True, True)
    assert set(dropped).isdisjoint(left)
    assert len(dropped) + len(left) == 9 + 8 + 7 + 1 + 1
    assert "dropped_templates" not in _trained(corpus, {"templates": ["word", "1"]}, 0.01).metrics
