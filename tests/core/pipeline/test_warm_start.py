"""Weights carry over by name: of template, values and label."""

import numpy as np

from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.conllu import read_conllu
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Compiled, compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.model import SparseModel
from tagsmith.core.pipeline.build import build_model
from tagsmith.core.pipeline.warm_start import weights_of

ARCS = [
    ["head.form", "modifier.form"],
    ["head.upos", "between.upos", "distance"],
    ["modifier.low[1]", "direction"],
]
TEMPLATES = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[0,low]\nB\nB01:%x[0,1]\nB02:%x[-1,0]/%x[0,low]"
DERIVED = {"low": {"kind": "lower"}}


def _compiled(text: bytes, templates: str = TEMPLATES, derived=DERIVED) -> Compiled:
    corpus = read_conll([text], max_line_bytes=1 << 16)
    spec = FeatureSpec.model_validate({"templates": templates, "derived": derived})
    return compile_corpus(spec.resolve(2), corpus)


def _compiled_trees(text: bytes) -> Compiled:
    corpus = read_conllu([text], max_line_bytes=1 << 16, columns=("form", "upos"), label="tree")
    spec = FeatureSpec.model_validate(
        {"templates": ARCS, "derived": {"low": {"kind": "lower", "of": "form"}}}
    )
    return compile_corpus(spec.resolve(corpus.names, trees=True), corpus)


def _with_random_weights(compiled: Compiled) -> tuple[Weights, SparseModel]:
    problem = compiled.problem
    values = np.zeros((problem.rows, problem.width), np.float32)
    values[:, : len(problem.labels)] = np.random.default_rng(3).normal(
        size=(len(values), len(problem.labels))
    )
    weights = Weights(problem, values.reshape(-1))
    return weights, build_model(compiled, weights)


def _named(model: SparseModel) -> dict[tuple[str, str], float]:
    a = model.attributes
    out = {}
    for i in range(a.size):
        for k in range(a.starts[i], a.starts[i + 1]):
            out[model.attribute_name(i), model.labels[a.labels[k]]] = float(a.weights[k])
    for i, before in enumerate(model.labels):
        for j, after in enumerate(model.labels):
            out[before, after] = float(model.transitions[i, j])
    b = model.edges.attributes if model.edges else a
    for i in range(b.size if model.edges else 0):
        for k in range(b.starts[i], b.starts[i + 1]):
            before, after = divmod(int(b.labels[k]), len(model.labels))
            pair = f"{model.labels[before]} {model.labels[after]}"
            out[model.edge_attribute_name(i), pair] = float(b.weights[k])
    return {key: weight for key, weight in out.items() if weight}


def test_on_the_same_corpus_every_weight_carries_over():
    compiled = _compiled(b"".join(generate("references", 40, 1)))
    weights, model = _with_random_weights(compiled)
    np.testing.assert_array_equal(weights_of(model, compiled).values, weights.values)


def test_on_the_same_trees_every_weight_carries_over():
    compiled = _compiled_trees(b"".join(generate("crossing-trees", 40, 1)))
    weights, model = _with_random_weights(compiled)
    attributes = compiled.problem.attributes
    carried = weights_of(model, compiled).values.reshape(-1, compiled.problem.width)
    expected = weights.values.reshape(-1, compiled.problem.width)
    np.testing.assert_array_equal(carried[:attributes], expected[:attributes])


def test_on_other_trees_what_still_exists_carries_over_by_name():
    old, new = (_compiled_trees(b"".join(generate("crossing-trees", 40, seed))) for seed in (1, 2))
    _, model = _with_random_weights(old)
    given, carried = _named(model), _named(build_model(new, weights_of(model, new)))
    every = _named(_with_random_weights(new)[1])
    assert carried == {key: weight for key, weight in given.items() if key in every}
    assert 0 < len(carried) < len(given)


def test_on_another_corpus_what_still_exists_carries_over_by_name():
    old = _compiled(b"The DT B-X\ncat NN I-X\nsat VB O\n\nOx NN B-Y\n")
    _, model = _with_random_weights(old)
    new = _compiled(b"An DT B-Z\nox NN B-Y\nsat VB O\n\nThe DT B-X\ndog NN O\n")
    carried = build_model(new, weights_of(model, new))
    before, after = _named(model), _named(carried)
    assert after
    assert all(before[key] == weight for key, weight in after.items())
    labels = set(new.problem.labels)
    assert after[("U00:The", "B-X")] == before["U00:The", "B-X"]
    assert after[("B01:NN", "B-X O")] == before["B01:NN", "B-X O"]
    assert not any(name.startswith("B02:The/cat") for name, _ in after)
    assert ("U00:dog", "O") not in after
    assert not any("B-Z" in key or "B-Z" in key[1].split() for key in after)
    assert {key for key in before if key[0] in labels and key[1] in labels} <= set(after)


def test_a_template_that_is_new_or_gone_carries_nothing():
    text = b"The DT B\ncat NN I\n"
    old = _compiled(text, "U00:%x[0,0]\nU09:%x[0,1]\nB", {})
    _, model = _with_random_weights(old)
    new = _compiled(text, "U00:%x[0,0]\nU05:%x[0,1]", {})
    carried = _named(build_model(new, weights_of(model, new)))
    assert {name.split(":")[0] for name, _ in carried} == {"U00"}


def test_a_derived_column_of_another_meaning_carries_nothing():
    text = b"The DT B\ncat NN I\n"
    old = _compiled(text, "U00:%x[0,d]", {"d": {"kind": "prefix", "n": 2}})
    _, model = _with_random_weights(old)
    new = _compiled(text, "U00:%x[0,d]", {"d": {"kind": "suffix", "n": 2}})
    assert not weights_of(model, new).values.any()
