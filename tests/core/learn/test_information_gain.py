"""Templates chosen by information gain, against a twin that counts strings."""

import math
from collections import Counter
from itertools import pairwise

import pytest

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features import preview
from tagsmith.core.features.resolve import only
from tagsmith.core.features.spec import FeatureSpec, InformationGain
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.problem.information_gain import compile_selected, rank, record
from tagsmith.core.learn.problem.problem import compile_corpus
from tests.training import train

SPEC = FeatureSpec.model_validate(
    {
        "templates": [
            {"grams": 2, "columns": ["word", "1", "end"], "window": 1},
            {"join": ["word[-2]"], "name": "near"},
            {"join": ["word[2]"], "name": "near"},
            {"join": ["1"], "edge": True, "name": "rich"},
            {"edge": True},
        ],
        "derived": {"end": {"kind": "suffix", "n": 6}},
        "cutoff": 2,
    }
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_conll(generate("references", 40, 3), max_line_bytes=1 << 16)


def naive_gain(spec: FeatureSpec, corpus: Corpus, name: str, *, edge: bool) -> float:
    """Eq. 16 with labels, from the names of features as they would be written."""
    features = spec.resolve(corpus.names)
    chosen = {t for t in features.templates if t.name == name and (t.kind == "B") == edge and t.slots}
    made = preview.names(only(features, chosen), corpus)
    assert corpus.labels is not None
    labels = [corpus.labels.vocabulary[i] for i in corpus.labels.ids.tolist()]
    firsts = {begin for begin, end in pairwise(corpus.offsets.tolist()) if end > begin}
    joins = [
        (label if not edge else None if t in firsts else (labels[t - 1], label))
        for t, label in enumerate(labels)
    ]
    tokens = sum(join is not None for join in joins)
    by_join = Counter(join for join in joins if join is not None)
    pairs = Counter((f, joins[t]) for t, names in enumerate(made) for f in names)
    by_feature = Counter(f for names in made for f in names)
    return math.fsum(
        n / tokens * math.log2(n * tokens / (by_feature[f] * by_join[join]))
        for (f, join), n in pairs.items()
        if by_feature[f] >= spec.cutoff
    )


def test_gains_are_those_of_counted_strings(corpus: Corpus) -> None:
    ranked = rank(compile_corpus(SPEC.resolve(corpus.names), corpus), 5)
    assert len(ranked) == 15 + 2 + 1
    for each in ranked:
        expected = naive_gain(SPEC, corpus, each.template.name, edge=each.template.kind == "B")
        assert each.gain == pytest.approx(expected, rel=1e-9)


def test_the_best_templates_stay_and_those_that_make_the_same_features_count_as_one(corpus: Corpus) -> None:
    ranked = rank(compile_corpus(SPEC.resolve(corpus.names), corpus), 16)
    (dropped,) = [each for each in ranked if not each.kept]
    assert dropped.gain == min(each.gain for each in ranked)
    near = [each for each in ranked if each.template.name == "near"]
    assert near[0].gain == near[1].gain
    worse = rank(compile_corpus(SPEC.resolve(corpus.names), corpus), 1)
    assert {each.gain for each in worse if each.kept} == {max(each.gain for each in worse)}


def test_what_is_compiled_has_only_the_templates_kept_and_the_pair_of_labels(corpus: Corpus) -> None:
    spec = SPEC.model_copy(update={"select": InformationGain(kind="information-gain", templates=4)})
    compiled, ranked = compile_selected(spec, corpus)
    kept = {each.template for each in ranked if each.kept}
    assert {t for t in compiled.features.templates if t.slots} == kept
    assert len({template.feature_group for template in kept}) == 4
    assert compiled.features.edges
    alone = compile_corpus(only(SPEC.resolve(corpus.names), {*kept, *_plain(SPEC, corpus)}), corpus)
    assert compiled.problem.attributes == alone.problem.attributes
    assert compile_selected(SPEC, corpus)[1] == []


def _plain(spec: FeatureSpec, corpus: Corpus) -> set[object]:
    return {template for template in spec.resolve(corpus.names).templates if not template.slots}


def test_a_budget_beyond_all_templates_keeps_them_all(corpus: Corpus) -> None:
    assert all(each.kept for each in rank(compile_corpus(SPEC.resolve(corpus.names), corpus), 4096))


def test_equal_gains_go_by_the_order_of_the_spec() -> None:
    text = b"a x A\nb y B\n\n" * 3
    corpus = read_conll([text], max_line_bytes=100)
    compiled = compile_corpus(FeatureSpec(templates="U1:%x[0,1]\nU0:%x[0,0]").resolve(2), corpus)
    assert [each.kept for each in rank(compiled, 1)] == [True, False]
    assert [each.gain for each in rank(compiled, 1)] == [1.0, 1.0]


def test_a_version_records_the_ranking_and_serves_what_was_kept(corpus: Corpus) -> None:
    features = SPEC.model_dump() | {"select": {"kind": "information-gain", "templates": 3}}
    spec = TrainSpec.model_validate(
        {
            "kind": "train",
            "model": "m",
            "corpus": "crp_x",
            "features": features,
            "trainer": {"kind": "averaged-perceptron", "passes": 2},
        }
    )
    first, second = (finished(train(spec, corpus, None)) for _ in range(2))
    assert first.metrics["filter"] == second.metrics["filter"]
    kept = [each["name"] for each in first.metrics["filter"]["templates"] if each["kept"]]
    assert len(set(kept)) == 3
    assert [t.name for t in first.model.features.templates if t.slots] == kept
    _, ranked = compile_selected(spec.features, corpus)
    assert first.metrics["filter"] == record(ranked)
