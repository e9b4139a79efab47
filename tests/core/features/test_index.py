"""The index against features expanded as strings."""

from collections import Counter

import numpy as np
import pytest

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.features import preview
from tagsmith.core.features.columns.coder import Coder
from tagsmith.core.features.columns.codes import UNKNOWN, boundary_code, boundary_row
from tagsmith.core.features.index import build, edge_slots_of, slots_of
from tagsmith.core.features.resolved import Features
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.trainers.sizes import sizes_of

TEXT = b"""\
The DT O
Cat NN B
sat VB O

the DT O
CAT NN B
2nd NN I

Ox NN B
"""

TEMPLATES = """\
U00:%x[-2,0]
U01:%x[0,0]
U02:%x[1,0]
U03:%x[-1,0]/%x[0,0]
U04:%x[0,1]/%x[1,1]/%x[2,1]
U05:%x[0,low]
U06:%x[0,pre]/%x[1,shape]
U:%x[-1,1]
U:%x[1,1]
U07:constant
B
"""
DERIVED = {"low": {"kind": "lower"}, "pre": {"kind": "prefix", "n": 3}, "shape": {"kind": "shape"}}
SHAPES = {"The": "Aaa", "Cat": "Aaa", "sat": "aaa", "the": "aaa", "CAT": "AAA", "2nd": "0aa", "Ox": "Aa"}


def _corpus(text: bytes = TEXT) -> Corpus:
    return read_conll([text], max_line_bytes=1000)


def _features(cutoff: int = 1) -> Features:
    spec = FeatureSpec.model_validate({"templates": TEMPLATES, "derived": DERIVED, "cutoff": cutoff})
    return spec.resolve(2)


def _expanded(corpus: Corpus, features: Features) -> list[list[str]]:
    """Every token's features as strings, from the text alone."""
    out = []
    for begin, end in zip(corpus.offsets, corpus.offsets[1:], strict=False):
        words, tags = (
            [column.vocabulary[i] for i in column.ids[begin:end].tolist()] for column in corpus.columns
        )
        derived = {
            "low": [w.lower() for w in words],
            "pre": [w[:3] if len(w) >= 3 else None for w in words],
            "shape": [SHAPES[w] for w in words],
        }
        n = len(words)
        for t in range(n):
            names = []
            for template in features.unigrams:
                values: list[str | None] = []
                for slot in template.slots:
                    p = t + slot.row
                    column = (
                        derived[slot.column] if isinstance(slot.column, str) else (words, tags)[slot.column]
                    )
                    values.append(f"_B{p}" if p < 0 else f"_B+{p - n + 1}" if p >= n else column[p])
                if None not in values:
                    names.append(template.joined([value or "" for value in values]))
            out.append(names)
    return out


def _built(features: Features, corpus: Corpus):
    coder = Coder.of(features, corpus)
    codes = coder.code_corpus(corpus)
    return coder, *build(slots_of(features, coder.vocabularies), codes, corpus.offsets, features.cutoff)


def _per_token(attributes) -> list[list[int]]:
    return [
        attributes.rows[a:b].tolist() for a, b in zip(attributes.starts, attributes.starts[1:], strict=False)
    ]


def test_tokens_share_an_attribute_exactly_when_they_share_a_feature_string():
    corpus, features = _corpus(), _features()
    _, index, attributes = _built(features, corpus)
    expanded = _expanded(corpus, features)
    rows = _per_token(attributes)
    name_of: dict[int, str] = {}
    for names, numbers in zip(expanded, rows, strict=True):
        assert len(names) == len(numbers)
        for name, number in zip(names, numbers, strict=True):
            assert name_of.setdefault(number, name) == name
    assert len(set(name_of.values())) == len(name_of) == index.size
    assert index.size == len({name for names in expanded for name in names})


def test_attributes_are_numbered_by_frequency_and_counted():
    corpus, features = _corpus(), _features()
    _, index, attributes = _built(features, corpus)
    counts = Counter(attributes.rows.tolist())
    assert [counts[i] for i in range(index.size)] == index.counts.tolist()
    assert sorted(index.counts.tolist(), reverse=True) == index.counts.tolist()


@pytest.mark.parametrize("cutoff", [2, 3, 100])
def test_rare_features_are_dropped(cutoff):
    corpus, features = _corpus(), _features(cutoff)
    _, index, attributes = _built(features, corpus)
    counts = Counter(name for names in _expanded(corpus, features) for name in names)
    assert index.size == sum(count >= cutoff for count in counts.values())
    assert len(attributes.rows) == sum(count for count in counts.values() if count >= cutoff)


def test_other_text_finds_the_same_attributes_and_skips_what_is_new():
    corpus, features = _corpus(), _features()
    coder, index, attributes = _built(features, corpus)
    again = index.look_up(coder.code_corpus(_corpus()), corpus.offsets)
    assert again.rows.tolist() == attributes.rows.tolist()
    other = _corpus(b"Ox NN B\nZebra ZZ O\n")
    found = index.look_up(coder.code_corpus(other), other.offsets)
    known = {name for names in _expanded(corpus, features) for name in names}
    SHAPES.setdefault("Zebra", "Aaaaa")
    expected = [sum(name in known for name in names) for names in _expanded(other, features)]
    assert np.diff(found.starts).tolist() == expected


def test_a_large_corpus_makes_the_table_grow():
    text = b"".join(b"w%d t%d O\n\n" % (i, i % 7) for i in range(3000))
    features = FeatureSpec(templates="U0:%x[0,0]\nU1:%x[0,0]/%x[0,1]\nU2:%x[-1,0]/%x[0,0]").resolve(2)
    _, index, _ = _built(features, _corpus(text))
    assert index.size == 9000
    assert np.count_nonzero(index.table.keys) == 9000
    assert len(index.table.keys) >= 18000


@pytest.mark.parametrize("row", [-64, -3, -1, 1, 4, 64])
def test_boundaries_keep_their_distance(row):
    assert boundary_row(boundary_code(row)) == row
    assert boundary_code(row) < UNKNOWN


def test_templates_of_the_label_pair_make_features_from_the_second_token_on():
    features = FeatureSpec(templates="U:%x[0,1]\nB\nB1:%x[0,1]\nB2:%x[-1,0]/%x[0,1]").resolve(2)
    assert features.edges
    corpus = _corpus()
    coder = Coder.of(features, corpus)
    slots = edge_slots_of(features, coder.vocabularies)
    index, attributes = build(slots, coder.code_corpus(corpus), corpus.offsets, 1)
    assert np.diff(attributes.starts).tolist() == [0, 2, 2, 0, 2, 2, 0]
    # B1:NN three times, not four or five: the first token of a sentence has no label before it.
    assert index.counts.tolist() == [3, 1, 1, 1, 1, 1]
    again = index.look_up(coder.code_corpus(corpus), corpus.offsets)
    assert again.rows.tolist() == attributes.rows.tolist()
    frequent, _ = build(slots, coder.code_corpus(corpus), corpus.offsets, 3)
    assert frequent.counts.tolist() == [3]


def test_templates_of_the_label_pair_alone_leave_the_pair_without_a_feature_of_its_own():
    assert not FeatureSpec(templates="U:%x[0,0]\nB1:%x[0,0]").resolve(1).edges


@pytest.mark.parametrize("pairs", ["all", "seen"])
def test_a_preview_names_and_counts_what_is_trained(pairs):
    spec = FeatureSpec(templates="U1:%x[0,1]\nB\nB1:%x[0,1]\nB2:%x[-1,0]/%x[0,1]", pairs=pairs)
    features, corpus = spec.resolve(2), _corpus()
    assert preview.names(features, corpus)[:2] == [["U1:DT"], ["U1:NN", "B1:NN", "B2:The/NN"]]
    counts = preview.count(features, corpus)
    problem = compile_corpus(features, corpus).problem
    assert counts.attributes == problem.attributes + problem.edge_attributes == 9
    assert counts.parameters == sizes_of(problem).parameters
    assert [(t.template, t.attributes, t.occurrences) for t in counts.templates] == [
        ("U1", 3, 7),
        ("B1", 2, 4),
        ("B2", 4, 4),
    ]
