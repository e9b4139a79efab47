"""Columns that look at sentences and lexicons: in training, on other text, and in a model by itself."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from tagsmith.core.base import flat_file
from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.segmented import read_segmented
from tagsmith.core.features.columns.coder import Coder
from tagsmith.core.features.columns.matched.kinds import MatchedSpec
from tagsmith.core.features.lexicon.lexicon import Lexicon
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs import kinds
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model import file as model_file
from tagsmith.core.model.file import CorruptModel, load, save
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.build import build_model

ID, CLUSTERS, RAW_TEXT = ("lex_" + digit * 40 for digit in "012")
NAMES = Lexicon(
    "typed",
    ("New York", "New York Times", "York", "Zürich", "Times Square", "paris", "York"),
    ("LOC", "ORG", "LOC", "LOC", "LOC", "LOC", "PER"),
)
TEXT = "the New York Times of York\nZÜRICH Paris New York Times Square\n"
#: Twelve in full-width digits.
WIDE = "\uff11\uff12"
SEGMENTED = f"我们 在 上海市 工作\n上海市 很 大\n我们 去 {WIDE} 个 上海\n他们 去 上海\n我们 去 上海\n"


def conll(text: str) -> Corpus:
    lines = "\n\n".join("\n".join(f"{word} O" for word in line.split()) for line in text.strip().split("\n"))
    return read_conll([(lines + "\n").encode()], max_line_bytes=1000)


def segmented(text: str) -> Corpus:
    return read_segmented([text.encode()], max_line_bytes=1000)


def spec(**columns: dict[str, Any]) -> FeatureSpec:
    templates = "\n".join(f"U{name}:%x[0,{name}]" for name in columns)
    return FeatureSpec.model_validate({"templates": f"U:%x[0,0]\n{templates}\nB", "derived": columns})


def values(coder: Coder, codes: np.ndarray, name: str) -> list[str | None]:
    at, column = next((i, c) for i, c in enumerate(coder.matched) if c.name == name)
    row = codes[len(coder.base) + len(coder.derived) + at].tolist()
    return [column.vocabulary[code] if code >= 0 else None for code in row]


def trained_values(corpus: Corpus, known: Lexicon | None = None, /, **column: Any) -> list[str | None]:
    lexicons = {} if known is None else {ID: known}
    coder, codes = Coder.trained(spec(x=column).resolve(corpus.names), corpus, lexicons)
    return values(coder, codes, "x")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "O B-ORG I-ORG I-ORG O B-LOC+PER O O B-ORG I-ORG I-ORG O"),
        ({"match": "backward"}, "O B-ORG I-ORG I-ORG O B-LOC+PER O O B-LOC I-LOC B-LOC I-LOC"),
        ({"type": "LOC"}, "O B-LOC I-LOC O O B-LOC O O B-LOC I-LOC B-LOC I-LOC"),
        ({"fold_case": True, "type": "LOC"}, "O B-LOC I-LOC O O B-LOC B-LOC B-LOC B-LOC I-LOC B-LOC I-LOC"),
        ({"coding": "bmes", "prefix": 1}, "O B-O M-O E-O O S-L+P O O B-O M-O E-O O"),
    ],
)
def test_entries_are_found_by_longest_match(options: dict[str, Any], expected: str) -> None:
    found = trained_values(conll(TEXT), NAMES, kind="lexicon", lexicon=ID, **options)
    assert found == expected.split()


def test_a_list_without_types_says_where_entries_begin_and_go_on_and_can_match_characters() -> None:
    words = Lexicon("words", ("上海", "上海市", "市工"), ())
    column = {"kind": "lexicon", "lexicon": ID, "unit": "character"}
    assert trained_values(segmented("在 上海市 工作"), words, **column) == ["O", "B", "I", "I", "O", "O"]
    column["match"] = "backward"
    assert trained_values(segmented("在 上海市 工作"), words, **column) == ["O", "B", "I", "B", "I", "O"]


def test_clusters_are_cut_to_the_length_asked_for() -> None:
    clusters = Lexicon("clusters", ("New", "york", "Times"), ("00101", "0011", "1"))
    found = trained_values(conll("New York Times of"), clusters, kind="cluster", lexicon=ID, n=3)
    assert found == ["001", None, "1", None]
    found = trained_values(conll("NEW York"), clusters, kind="cluster", lexicon=ID, fold_case=True)
    assert found == ["00101", "0011"]


def test_statistics_of_text_are_given_to_the_characters_they_start_at() -> None:
    text = Lexicon("text", ("上海好", "大上海人", "去上海"), ())
    found = trained_values(segmented("在 上海市"), text, kind="text", lexicon=ID, measure="right-variety")
    assert found == [None, "1", None, None]  # 3 accessors after 上海: 好, 人 and the end


def test_training_sentences_see_only_words_of_others_and_other_text_all() -> None:
    corpus = segmented(SEGMENTED)
    column = {"kind": "word", "n": 2}
    coder, codes = Coder.trained(spec(x=column).resolve(corpus.names), corpus)
    found = values(coder, codes, "x")
    # 工作 and 他们 occur in one sentence each, so not there; 上海 inside of 上海市 is a word elsewhere.
    assert found[:8] == ["我们", None, None, "上海", None, None, None, None]
    assert found[8:13] == ["上海", None, None, None, None]
    other = values(coder, coder.code_corpus(segmented("工作 上海市 他们")), "x")
    assert other == [None, None, "上海", None, None, None, None], "words never seen as values make no feature"


def test_words_of_several_lengths_are_told_by_the_longest() -> None:
    corpus = segmented(SEGMENTED)
    # 上海市 is in two sentences, 工作 in this one only.
    for side, expected in (("start", "20030000"), ("end", "02002300"), ("inside", "00003000")):
        found = trained_values(corpus, kind="word-length", side=side)
        assert "".join(map(str, found[:8])) == expected


def test_word_bigrams_are_found_where_the_second_word_starts() -> None:
    corpus = segmented("我们 上海 很好\n大 我们 上海\n上海 我们\n")
    found = trained_values(corpus, kind="word-pair")
    assert [place for place, value in enumerate(found) if value] == [2, 9]
    assert found[2] == found[9] == "我们 上海"
    assert not any(trained_values(corpus, kind="word-pair", rank=1))


def test_full_width_forms_are_read_as_the_plain_ones_when_asked() -> None:
    corpus = segmented(f"去 {WIDE} 个\n有 {WIDE} 个\n")
    coder, _ = Coder.trained(
        spec(x={"kind": "word", "n": 2, "fold_width": True}).resolve(corpus.names), corpus
    )
    assert values(coder, coder.code_corpus(segmented("12 个")), "x") == ["12", None, None]
    assert trained_values(corpus, kind="word", n=2)[1] == WIDE


def test_repeats_are_seen_also_of_characters_never_seen_before() -> None:
    corpus = segmented("好 好 看看\n")
    coder, codes = Coder.trained(spec(x={"kind": "same"}).resolve(corpus.names), corpus)
    assert values(coder, codes, "x") == ["same", "other", "same", None]
    tagger_text = segmented("嗡 嗡 叫")
    assert values(coder, coder.code_corpus(tagger_text), "x") == ["same", "other", None]


ALL = {
    "names": {"kind": "lexicon", "lexicon": ID, "unit": "character", "fold_case": True},
    "back": {"kind": "lexicon", "lexicon": ID, "unit": "character", "fold_case": True, "match": "backward"},
    "word": {"kind": "word", "n": 2, "fold_width": True},
    "pair": {"kind": "word-pair", "shortest": 1, "fold_width": True},
    "long": {"kind": "word-length", "side": "inside", "fold_width": True},
    "same": {"kind": "same"},
    "cluster": {"kind": "cluster", "lexicon": CLUSTERS, "n": 2},
    "text": {"kind": "text", "lexicon": RAW_TEXT, "measure": "right-variety"},
}
LEXICONS = {
    ID: Lexicon("words", ("上海", "Ab"), ()),
    CLUSTERS: Lexicon("clusters", ("上", "海", "我"), ("001", "0011", "1")),
    RAW_TEXT: Lexicon("text", ("上海好", "大上海人", "去上海"), ()),
}


def test_every_kind_of_matched_column_is_tested_here() -> None:
    kinds = {get_args(each.model_fields["kind"].annotation)[0] for each in get_args(MatchedSpec)}
    assert kinds == {column["kind"] for column in ALL.values()}


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = segmented(SEGMENTED)
    compiled = compile_corpus(spec(**ALL).resolve(corpus.names), corpus, LEXICONS)
    problem = compiled.problem
    weights = np.random.default_rng(1).normal(size=(problem.attributes + len(problem.labels)) * problem.width)
    path = tmp_path_factory.mktemp("model") / "model"
    save(build_model(compiled, Weights(problem, weights.astype(np.float32))), path)
    return path


def test_a_model_by_itself_sees_in_lists_of_strings_what_it_sees_in_a_corpus(model_path: Path) -> None:
    tagger = Tagger.open(model_path)
    text = f"他们 在 上海市 工作 {WIDE} 个 12 个\naB 嗡嗡 上海\n我们 去 上海\n"
    corpus = segmented(text)
    lines = [list(line.replace(" ", "")) for line in text.strip().split("\n")]
    assert np.array_equal(tagger.code(lines).codes, tagger.model.coder.code_corpus(corpus))
    codes = tagger.model.coder.code_corpus(corpus)
    assert all((codes[i] >= 0).any() for i in range(len(codes)))


def test_matchers_are_shared_and_stored_once(model_path: Path) -> None:
    matched = {column.name: column.matcher for column in load(model_path).coder.matched}
    assert matched["names"] is matched["back"]
    assert matched["word"] is matched["pair"] is matched["long"]
    assert matched["same"] is None


def test_saving_what_was_loaded_gives_the_same_bytes(model_path: Path, tmp_path: Path) -> None:
    save(load(model_path), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == model_path.read_bytes()


@pytest.mark.parametrize(
    "part",
    [
        *("matcher.0.of_base", "matcher.0.rows", "matcher.1.entries", "matched.0.value_of"),
        *("matcher.2.kinds", "matcher.3.kinds"),
    ],
)
def test_a_file_whose_lexicon_leads_nowhere_is_refused(model_path: Path, tmp_path: Path, part: str) -> None:
    source = flat_file.FlatFile.open(model_path, model_file.MAGIC)
    arrays = source.arrays()
    arrays[part] = arrays[part].copy()
    arrays[part][arrays[part] >= 0] = 1 << 29
    header = {key: value for key, value in source.header.items() if key not in ("arrays", "sha256")}
    flat_file.save(tmp_path / "bad", model_file.MAGIC, header, arrays)
    with pytest.raises(CorruptModel):
        load(tmp_path / "bad")


@pytest.mark.parametrize(
    ("column", "lexicon", "code"),
    [
        ({"kind": "lexicon", "lexicon": "lex_" + "1" * 40}, NAMES, "lexicon_not_found"),
        ({"kind": "cluster", "lexicon": ID}, NAMES, "wrong_lexicon_kind"),
        ({"kind": "text", "lexicon": ID, "measure": "information"}, NAMES, "wrong_lexicon_kind"),
        ({"kind": "word"}, NAMES, "not_segmented"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    column: dict[str, Any], lexicon: Lexicon, code: str
) -> None:
    with pytest.raises(Invalid) as caught:
        trained_values(conll(TEXT), lexicon, **column)
    assert caught.value.code == code
    assert str(caught.value.faults[0].pointer).startswith("/features/derived/x")


@pytest.mark.parametrize(
    ("column", "pointer"),
    [
        ({"kind": "lexicon"}, "/features/derived/x/lexicon"),
        ({"kind": "lexicon", "lexicon": "lex_1"}, "/features/derived/x/lexicon"),
        ({"kind": "word", "n": 17}, "/features/derived/x/n"),
        ({"kind": "word-pair", "shortest": 3, "longest": 2}, "/features/derived/x"),
        ({"kind": "word-length"}, "/features/derived/x/side"),
        ({"kind": "text", "lexicon": ID, "measure": "information", "n": 1}, "/features/derived/x"),
        ({"kind": "nothing"}, "/features/derived/x/kind"),
        ({"kind": "same", "of": 3}, "/features/derived/x/of"),
    ],
)
def test_a_column_said_wrongly_is_refused_with_its_place(column: dict[str, Any], pointer: str) -> None:
    body = {
        "kind": "train",
        "model": "m",
        "corpus": "crp_1",
        "features": {"templates": "U:%x[0,x]", "derived": {"x": column}},
    }
    with pytest.raises(Invalid) as caught:
        kinds.parse_job(body).features.resolve(["0"])
    assert [fault.pointer for fault in caught.value.faults] == [pointer]
