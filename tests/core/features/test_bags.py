"""Templates over bags: attribute bags, and all substrings of a word."""

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.crfsuite import read_crfsuite
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.columns.derived import Derived
from tagsmith.core.features.preview import count, names
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Compiled, compile_corpus

LINE = 1 << 16
SUBSTRINGS = {"sub": Derived(kind="substrings", n=4)}


def references(sentences: int = 40, seed: int = 1) -> Corpus:
    return read_conll(generate("references", sentences, seed), max_line_bytes=LINE)


def naive_substrings(text: str, n: int) -> set[str]:
    return {text[a:b] for a in range(len(text)) for b in range(a + 1, len(text) + 1) if b - a < n}


def naive_names(corpus: Corpus, rows: dict[str, tuple[int, ...]], n: int) -> list[list[str]]:
    words = [corpus.columns[0].vocabulary[i] for i in corpus.columns[0].ids]
    return [
        sorted(
            f"{prefix}{part}"
            for prefix, places in rows.items()
            for row in places
            if begin <= token + row < end
            for part in naive_substrings(words[token + row], n)
        )
        for begin, end in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)
        for token in range(begin, end)
    ]


def compiled_names(compiled: Compiled) -> list[list[str]]:
    """The names of the attributes of every token, from the compiled problem."""
    of_attribute = {}
    for bag in compiled.bags:
        for entry, attribute in enumerate(bag.attributes.tolist()):
            if attribute >= 0:
                of_attribute[attribute] = bag.spec.name(bag.vocabulary[entry])
    data = compiled.problem.data
    return [
        sorted(of_attribute[row] for row in data.rows[data.starts[t] : data.starts[t + 1]].tolist())
        for t in range(compiled.problem.tokens)
    ]


def test_a_token_has_every_substring_under_n_of_the_words_looked_at() -> None:
    corpus = references()
    spec = FeatureSpec(templates="U1:%x[0,sub]\nU2:%x[-1,sub]\nU2:%x[1,sub]\nB", derived=SUBSTRINGS)
    features = spec.resolve(2)
    expected = naive_names(corpus, {"U1:": (0,), "U2:": (-1, 1)}, 4)
    assert compiled_names(compile_corpus(features, corpus)) == expected
    assert [sorted(each) for each in names(features, corpus)] == expected
    counted = count(features, corpus)
    distinct = {name for each in expected for name in each}
    assert counted.attributes == len(distinct)
    assert sum(each.occurrences for each in counted.templates) == sum(map(len, expected))


def test_the_cutoff_counts_occurrences_in_all_places() -> None:
    corpus = references()
    spec = FeatureSpec(templates="U:%x[0,sub]\nU:%x[1,sub]", derived=SUBSTRINGS, cutoff=5)
    compiled = compile_corpus(spec.resolve(2), corpus)
    every = [name for each in naive_names(corpus, {"U:": (0, 1)}, 4) for name in each]
    counts = {name: every.count(name) for name in set(every)}
    kept = {name for each in compiled_names(compiled) for name in each}
    assert kept == {name for name, times in counts.items() if times >= 5}


def test_another_corpus_is_read_with_the_same_attributes() -> None:
    train, other = references(), references(20, seed=2)
    spec = FeatureSpec(templates="U:%x[0,sub]\nU2:%x[0,0]\nB", derived=SUBSTRINGS)
    compiled = compile_corpus(spec.resolve(2), train)
    problem = compiled.problem_of(other)
    (bag,) = compiled.bags
    word = [other.columns[0].vocabulary[i] for i in other.columns[0].ids]
    for token in range(0, other.tokens, 7):
        rows = set(problem.data.rows[problem.data.starts[token] : problem.data.starts[token + 1]].tolist())
        known = {bag.vocabulary.id_of(part) for part in naive_substrings(word[token], 4)} - {-1}
        assert rows >= {int(bag.attributes[i]) for i in known}
        assert len(rows - {int(bag.attributes[i]) for i in known}) <= 1


def test_bags_become_rows_with_their_values() -> None:
    corpus = read_crfsuite([b"A\tx:2\ty\nB\ty:-0.5\n\nA\tz\tx:0\n"], max_line_bytes=LINE)
    compiled = compile_corpus(FeatureSpec().resolve(0), corpus)
    data = compiled.problem.data
    assert compiled_names(compiled) == [["x", "y"], ["y"], ["z"]]
    by_name = [{compiled.bags[0].vocabulary[e]: float(v) for e, v in _pairs(compiled, t)} for t in range(3)]
    assert by_name == [{"x": 2.0, "y": 1.0}, {"y": -0.5}, {"z": 1.0}]
    assert compiled.problem.edges
    assert data.values.dtype == np.float32


def _pairs(compiled: Compiled, token: int) -> list[tuple[int, float]]:
    data, bag = compiled.problem.data, compiled.bags[0]
    entry = {int(a): e for e, a in enumerate(bag.attributes)}
    here = slice(data.starts[token], data.starts[token + 1])
    return [(entry[int(r)], float(v)) for r, v in zip(data.rows[here], data.values[here], strict=True)]


@pytest.mark.parametrize(
    ("spec", "pointer", "reason"),
    [
        ({"templates": "U:%x[0,sub]/%x[0,0]"}, "/features/templates", "Use it alone"),
        ({"templates": "B:%x[0,sub]"}, "/features/templates", "Use it alone"),
        ({"templates": "U:%x[0,s2]"}, "/features/derived/s2/of", "cannot be derived from 'sub'"),
    ],
)
def test_a_bag_column_is_refused_where_it_cannot_be_used(
    spec: dict[str, str], pointer: str, reason: str
) -> None:
    derived = (
        {**SUBSTRINGS, "s2": Derived(kind="lower", of="sub")} if "s2" in spec["templates"] else SUBSTRINGS
    )
    with pytest.raises(Invalid) as caught:
        FeatureSpec(templates=spec["templates"], derived=derived).resolve(2)
    assert any(fault.pointer == pointer and reason in fault.reason for fault in caught.value.faults)


def test_a_preset_or_a_column_is_refused_where_tokens_have_bags() -> None:
    for spec, pointer in (
        (FeatureSpec(preset="generic"), "/features/preset"),
        (FeatureSpec(templates="U:%x[0,0]"), "/features/templates"),
    ):
        with pytest.raises(Invalid) as caught:
            spec.resolve(0)
        assert caught.value.faults[0].pointer == pointer


def test_substrings_of_a_derived_column_are_those_of_its_values() -> None:
    derived = {"low": Derived(kind="lower"), "sub": Derived(kind="substrings", of="low", n=3)}
    corpus = references(10)
    compiled = compile_corpus(FeatureSpec(templates="U:%x[0,sub]", derived=derived).resolve(2), corpus)
    words = [corpus.columns[0].vocabulary[i].lower() for i in corpus.columns[0].ids]
    assert compiled_names(compiled) == [sorted(f"U:{p}" for p in naive_substrings(w, 3)) for w in words]
