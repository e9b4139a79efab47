"""The sparse model says the same as the weights it was made from, before and after its file."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Compiled, compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.file import MAGIC, CorruptModel, save
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.build import build_model


def _rows(corpus: Corpus) -> list[list[list[str]]]:
    columns = [[column.vocabulary[i] for i in column.ids.tolist()] for column in corpus.columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [rows[a:b] for a, b in pairwise(corpus.offsets.tolist())]


@pytest.fixture
def path(model: SparseModel, tmp_path: Path) -> Path:
    save(model, tmp_path / "model")
    return tmp_path / "model"


def test_only_weights_that_are_not_zero_are_kept(model: SparseModel, weights: Weights):
    assert model.active_features == np.count_nonzero(weights.values)
    live = np.flatnonzero(weights.attribute_rows.any(axis=1))
    assert model.attributes.size == len(live) < len(weights.attribute_rows)


def test_tagging_equals_decoding_with_the_trained_weights(
    path: Path, compiled: Compiled, weights: Weights, corpus: Corpus
):
    tagged = Tagger.open(path).tag(_rows(corpus))
    expected = [compiled.problem.labels[y] for y in weights.decode(compiled.problem).tolist()]
    assert [tag for sentence in tagged for tag in sentence] == expected


def test_unseen_words_are_tagged_by_their_derived_columns(path: Path, compiled: Compiled, weights: Weights):
    other = read_conll(generate("references", 30, 99), max_line_bytes=1 << 16)
    known = set(compiled.coder.base[0].strings())
    assert sum(word not in known for word in other.columns[0].vocabulary.strings()) > 20
    expected = [compiled.problem.labels[y] for y in weights.decode(compiled.problem_of(other)).tolist()]
    tagged = Tagger.open(path).tag(_rows(other))
    assert [tag for sentence in tagged for tag in sentence] == expected


def test_vocabularies_keep_only_what_features_use():
    corpus = read_conll([b"a X O\nb Y B\n\nc X O\nd Y B\n"], max_line_bytes=100)
    compiled = compile_corpus(FeatureSpec(templates="U0:%x[0,0]\nU1:%x[0,1]").resolve(2), corpus)
    values = np.zeros((compiled.problem.attributes + 2, compiled.problem.width), np.float32)
    row = compiled.problem.data.rows[int(compiled.problem.data.starts[2])]  # "c"
    values[row, 1] = 2.5
    model = build_model(compiled, Weights(compiled.problem, values.reshape(-1)))
    # The second column has no weight, so that its template and the column itself are gone too.
    assert [vocabulary.strings() for vocabulary in model.coder.base] == [["c"]]
    assert model.attribute_name(0) == "U0:c"
    assert model.attributes.weights.tolist() == [2.5]


def test_names_of_attributes_are_rebuilt_as_the_template_writes_them(model: SparseModel, corpus: Corpus):
    names = [model.attribute_name(i) for i in range(model.attributes.size)]
    assert len(set(names)) == len(names)
    words = corpus.columns[0].vocabulary.strings()
    assert any(name == f"UW+0:{word}" for word in words for name in names)
    assert any(name.startswith("UWW-:_B-1/") for name in names)


def test_edge_attributes_have_names_and_only_those_with_weights_are_kept(
    model: SparseModel, weights: Weights
):
    live = np.flatnonzero(weights.edge_matrices.any(axis=1))
    if model.edges is None:
        assert not len(live)
        return
    b = model.edges.attributes
    assert b.size == len(live) < len(weights.edge_matrices)
    assert len(b.weights) == np.count_nonzero(weights.edge_blocks)
    names = [model.edge_attribute_name(i) for i in range(b.size)]
    assert len(set(names)) == len(names)
    assert {name.split(":")[0] for name in names} == {"BW", "BWW", "BE"}
    # The first token has no token before it: the token there is, is never two before one that has an edge.
    assert any(name.startswith("BWW:_B-1/") for name in names)
    assert not any(name.startswith("BWW:_B-2/") for name in names)
    first = b.labels[0]
    before, after = divmod(int(first), len(model.labels))
    assert b.weights[0] == weights.edge_blocks[live[0], before, after]


def test_the_same_model_gives_the_same_bytes(
    model: SparseModel, compiled: Compiled, weights: Weights, tmp_path: Path
):
    first = save(model, tmp_path / "a")
    second = save(build_model(compiled, weights), tmp_path / "b")
    assert first == second
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_saved_again_after_loading_is_the_same(path: Path, tmp_path: Path):
    save(Tagger.open(path).model, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_opening_checks_that_the_file_is_the_published_one(path: Path, model: SparseModel, tmp_path: Path):
    sha256 = save(model, tmp_path / "other")
    assert Tagger.open(path, sha256).labels == list(model.labels)
    with pytest.raises(CorruptModel, match="published"):
        Tagger.open(path, "0" * 64)


def test_a_file_changed_anywhere_is_refused(path: Path):
    original = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in [0, 7, 8, 12, 16, 40, *rng.integers(0, len(original), 60).tolist(), len(original) - 1]:
        damaged = bytearray(original)
        damaged[at] ^= 0x41
        path.write_bytes(damaged)
        with pytest.raises(Invalid):
            Tagger.open(path)


@pytest.mark.parametrize("size", [0, 1, 8, 15, 16, 100, 1000])
def test_a_file_cut_short_is_refused(path: Path, size: int):
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(Invalid):
        Tagger.open(path)


@pytest.mark.parametrize(
    "header", [b"null", b"[]", b"{}", b"[" * 100_000, b'{"arrays": {}, "sha256": 3}', b"\xff\xfe"]
)
def test_a_header_of_another_shape_is_refused(tmp_path: Path, header: bytes):
    (tmp_path / "m").write_bytes(MAGIC + len(header).to_bytes(8, "little") + header)
    with pytest.raises(Invalid):
        Tagger.open(tmp_path / "m")


def test_a_forged_file_with_a_right_checksum_but_wild_indices_is_refused(model: SparseModel, tmp_path: Path):
    """Whoever makes a file can make its checksum: what kernels follow unchecked must be checked on its own."""
    from dataclasses import replace

    a = model.attributes
    forged = [
        replace(model, attributes=replace(a, labels=a.labels + np.int16(1000))),
        replace(model, attributes=replace(a, starts=a.starts[::-1].copy())),
        replace(model, attributes=replace(a, templates=a.templates - np.int16(99))),
        replace(model, table=replace(model.table, rows=model.table.rows + np.int32(10**6))),
        replace(model, table=replace(model.table, keys=np.ones_like(model.table.keys))),
        replace(model, table=replace(model.table, keys=model.table.keys[:-1], rows=model.table.rows[:-1])),
        replace(model, transitions=model.transitions[:-1]),
        replace(model, transitions=model.transitions * np.float32(np.nan)),
        replace(model, attributes=replace(a, weights=a.weights * np.float32(np.inf))),
    ]
    if model.edges is not None:
        edges, b = model.edges, model.edges.attributes
        wrong = [
            replace(edges, attributes=replace(b, labels=b.labels + np.int32(len(model.labels) ** 2))),
            replace(edges, attributes=replace(b, starts=b.starts[::-1].copy())),
            replace(edges, attributes=replace(b, templates=b.templates + np.int16(3))),
            replace(edges, attributes=replace(b, weights=b.weights * np.float32(np.nan))),
            replace(edges, table=replace(edges.table, rows=edges.table.rows + np.int32(10**6))),
        ]
        forged += [replace(model, edges=each) for each in wrong]
    for number, wrong in enumerate(forged):
        save(wrong, tmp_path / str(number))
        with pytest.raises(CorruptModel):
            Tagger.open(tmp_path / str(number))


def test_rows_with_too_few_columns_are_named(path: Path):
    tagger = Tagger.open(path)
    assert tagger.columns == 2
    with pytest.raises(Invalid) as raised:
        tagger.tag([[["a", "CAP"]], [["b", "CAP"], ["c"]]])
    assert [fault.pointer for fault in raised.value.faults] == ["/sentences/1/1"]
    with pytest.raises(Invalid) as raised:
        tagger.tag([["a", "b"]])
    assert [fault.pointer for fault in raised.value.faults] == ["/sentences/0/0", "/sentences/0/1"]


def test_no_sentences_and_empty_sentences_are_tagged(path: Path):
    tagger = Tagger.open(path)
    assert tagger.tag([]) == []
    assert tagger.tag([[], [["a", "CAP"]], []]) == [[], tagger.tag([[["a", "CAP"]]])[0], []]


@pytest.mark.parametrize("word", ["", "a\nb", "\x00", "\ud800", "é" * 1000, " "])
def test_any_string_is_a_word(path: Path, word: str):
    tagger = Tagger.open(path)
    tags = tagger.tag([[["The", "CAP"], [word, "CAP"], ["end", "LOW"]]])
    assert len(tags[0]) == 3
    assert set(tags[0]) <= set(tagger.labels)


@pytest.mark.parametrize("sentences", ["Ada lives", ["Ada lives"], [["Ada"], "lives"]])
def test_a_string_is_no_sentence(path: Path, sentences: list[list[str]]) -> None:
    with pytest.raises(Invalid, match="Use tag_text for text"):
        Tagger.open(path).tag(sentences)
