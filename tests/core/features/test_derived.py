"""Derived columns: the functions, chains of them, and the place of a token."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.features import preview
from tagsmith.core.features.columns.coder import Coder
from tagsmith.core.features.columns.derived import Derived
from tagsmith.core.features.presets import PRESETS
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.model.file import load, save
from tagsmith.core.model.tagger import Tagger
from tests.training import train


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ({"kind": "lower"}, {"ÉTÉ": "été", "a1": "a1"}),
        ({"kind": "digits"}, {"12-3a": "##-#a"}),
        ({"kind": "shape"}, {"IL-2b": "AA-0a"}),
        ({"kind": "collapsed-shape"}, {"IL-22bb": "A-0a"}),
        ({"kind": "prefix", "n": 2}, {"abc": "ab", "a": None}),
        ({"kind": "suffix", "n": 2}, {"abc": "bc", "ab": "ab", "a": None}),
        (
            {"kind": "char-classes"},
            {"IL-2": "digit+punctuation+upper", "漢字": "han", "カな": "kana", "$": "symbol", "한": "hangul", "": ""},
        ),
        (
            {"kind": "orthography"},
            {
                "12": "TwoDigits", "1998": "FourDigits", "123": "AllDigits", "1,000": "DigitsAndComma",
                "3.5": "DigitsAndPeriod", "1/2": "DigitsAndSlash", "10:30": "DigitsAndColon", "1-2": "DigitsAndDash",
                "IV": "RomanNumeral", "USA": "AllCaps", "U.S.": "CapsWithPeriods", "A": "SingleCap", "J.": "Initial",
                "Rome": "InitCap", "Al-Ani": "MixedWithHyphen", "Jean-luc": "InitCapWithHyphen", "word": "Lowercase",
                "e-mail": "LowerWithHyphen", "McNeil": "MixedCaps", "iPod": "MixedCaps", "IL2": "CapsAndDigits",
                "p53": "LettersAndDigits", "$5": "OtherNumber", "...": "Punctuation", "Élan": "InitCap",
            },
        ),
        ({"kind": "length"}, {"a": "1", "abcd": "4", "abcdef": "5", "a" * 12: "9", "a" * 100: "21"}),
        ({"kind": "regex", "pattern": "^[A-Z]"}, {"Rome": "true", "rome": "false"}),
        ({"kind": "regex", "pattern": "[0-9]+", "take": "match"}, {"a12b3": "12", "ab": None}),
        ({"kind": "regex", "pattern": "\\d*$", "take": "match", "dialect": "wapiti"}, {"a12": "12", "ab": ""}),
    ],
)  # fmt: skip
def test_functions_of_one_value(spec: dict[str, Any], values: dict[str, str | None]) -> None:
    derived = Derived.model_validate(spec)
    assert dict(zip(values, derived.values(list(values)), strict=True)) == values


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"kind": "regex"}, "needs a pattern"),
        ({"kind": "lower", "pattern": "a"}, "takes no pattern"),
        ({"kind": "lower", "take": "test"}, "takes neither take nor dialect"),
        ({"kind": "regex", "pattern": "a**"}, "A repeat cannot be repeated"),
        ({"kind": "nose"}, "Input should be"),
    ],
)
def test_fields_stand_where_they_mean_something(spec: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Derived.model_validate(spec)


TEXT = b"The DT O\nIL-2 NN B\n\nCats NN B\nsat VB O\n"


def _names(spec: dict[str, Any]) -> list[list[str]]:
    corpus = read_conll([TEXT], max_line_bytes=1000)
    return preview.names(FeatureSpec.model_validate(spec).resolve(corpus.names), corpus)


def test_columns_derive_from_derived_columns() -> None:
    derived = {
        "low": {"kind": "lower"},
        "end": {"kind": "suffix", "n": 2, "of": "low"},
        "tag": {"kind": "prefix", "n": 1, "of": 1},
    }
    assert _names({"templates": ["end", "tag[1]"], "derived": derived}) == [
        ["end[0]=he", "tag[1]=N"],
        ["end[0]=-2", "tag[1]=_B+1"],
        ["end[0]=ts", "tag[1]=V"],
        ["end[0]=at", "tag[1]=_B+1"],
    ]


def test_only_the_first_token_of_a_sentence_is_first() -> None:
    names = _names({"templates": ["first", "first[-1]"], "derived": {"first": {"kind": "first"}}})
    assert [token[0] for token in names] == ["first[0]=true", "first[0]=false"] * 2
    assert [token[1] for token in names] == ["first[-1]=_B-1", "first[-1]=true"] * 2


@pytest.mark.parametrize(
    ("derived", "pointer", "reason"),
    [
        (
            {"a": {"kind": "lower", "of": "b"}, "b": {"kind": "shape", "of": "a"}},
            "a",
            "derived from each other: a, b, a",
        ),
        ({"a": {"kind": "lower", "of": "nose"}}, "a", "no column nose"),
        ({"a": {"kind": "lower", "of": 7}}, "a", "no column 7. The corpus has 2 attribute columns"),
        ({"f": {"kind": "first"}, "a": {"kind": "lower", "of": "f"}}, "a", "cannot be derived from 'f'"),
    ],
)
def test_where_a_column_comes_from_is_checked(derived: dict[str, Any], pointer: str, reason: str) -> None:
    with pytest.raises(Invalid) as raised:
        FeatureSpec.model_validate({"templates": "U:%x[0,0]", "derived": derived}).resolve(2)
    assert raised.value.faults[0].pointer == f"/features/derived/{pointer}/of"
    assert reason in raised.value.faults[0].reason


def test_columns_of_the_corpus_go_by_their_names() -> None:
    features = FeatureSpec(templates=[["form[0]", "upos[0]"]]).resolve(["form", "lemma", "upos"])
    assert features.names == ("form", "lemma", "upos")
    assert [place.column for place in features.slots[0]] == [0, 2]
    with pytest.raises(Invalid) as raised:
        FeatureSpec(templates=["xpos"]).resolve(["form", "upos"])
    assert "numbered from 0 and named form, upos" in raised.value.faults[0].reason


def test_a_derived_column_is_computed_once_a_distinct_value(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(Derived, "values", lambda _, texts: calls.extend(texts) or texts)
    corpus = read_conll([b"a X O\nb X O\na X O\n\n" * 50], max_line_bytes=1000)
    features = FeatureSpec.model_validate(
        {"templates": ["low"], "derived": {"low": {"kind": "lower"}}}
    ).resolve(2)
    Coder.of(features, corpus).code_corpus(corpus)
    assert sorted(calls) == ["a", "b"]


WAPITI = 'u:%x[0,0]\nu1:%t[-1,0,"^\\u"]/%M[0,0,"^.?.?"]\nu2:%x[@1,1]\nu3:%x[0,first]/%X[0,low]\nb'


def test_a_model_with_patterns_tags_the_same_from_its_file(tmp_path: Path) -> None:
    derived = {"first": {"kind": "first"}, "low": {"kind": "collapsed-shape"}}
    spec = TrainSpec.model_validate(
        {
            "kind": "train",
            "model": "m",
            "corpus": "crp_x",
            "features": {"syntax": "wapiti", "templates": WAPITI, "derived": derived},
            "trainer": {"kind": "sgd-l1", "l1": 0.01, "passes": 3},
        }
    )
    corpus = read_conll([TEXT * 5], max_line_bytes=1000)
    model = finished(train(spec, corpus, None)).model
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.features == model.features
    assert [again.attribute_name(i) for i in range(again.attributes.size)] == [
        model.attribute_name(i) for i in range(model.attributes.size)
    ]
    sentences = [[["The", "DT"], ["Il-3", "NN"]], [["Dogs", "NN"], ["sat", "VB"], ["new", "XX"]]]
    tagger = Tagger(again)
    assert tagger.tag(sentences) == Tagger(model).tag(sentences) == [["O", "B"], ["B", "O", "O"]]
    # The coder of a corpus and that of requests read the same codes.
    other = read_conll([b"The DT O\nIl-3 NN B\n\nDogs NN O\nsat VB O\nnew XX O\n"], max_line_bytes=1000)
    np.testing.assert_array_equal(again.coder.code_corpus(other), tagger.code(sentences).codes)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_name_every_column_they_derive(preset: Any) -> None:
    _, derived = PRESETS[preset](2)
    features = FeatureSpec(preset=preset).resolve(2)
    assert {name for name, _ in (*features.derived, *features.matched)} == set(derived)


#: The classes of numbers as they were first written: with repeats that can be divided in many ways.
NUMBERS = {
    "DigitsAndComma": r"[+-]?\d[\d.]*,[\d.,]*",
    "DigitsAndPeriod": r"[+-]?\d*\.\d[\d.]*|[+-]?\d+\.",
    "DigitsAndSlash": r"\d[\d/]*/[\d/]*",
    "DigitsAndColon": r"\d[\d:]*:[\d:]*",
    "DigitsAndDash": r"\d[\d-]*-[\d-]*|-\d+",
}


@given(st.text(st.sampled_from("12.,/:-+x"), min_size=1, max_size=8))
def test_numbers_are_classified_by_their_first_pattern(word: str) -> None:
    (found,) = Derived(kind="orthography").values([word])
    expected = next((name for name, pattern in NUMBERS.items() if re.fullmatch(pattern, word)), None)
    if found in NUMBERS or expected is not None:
        assert found == ("AllDigits" if word.isdigit() else expected) or word.isdigit()


def test_a_word_of_a_megabyte_is_classified_in_linear_time() -> None:
    # An hour, if every division of the slashes were tried.
    for sign in "/:-,.":
        (found,) = Derived(kind="orthography").values([f"1{sign * 1_000_000}x"])
        assert found is not None


def test_substrings_are_those_of_the_beginning_of_a_huge_word() -> None:
    column = Derived(kind="substrings", n=3)
    assert column.parts("abc") == ["a", "b", "c", "ab", "bc"]
    assert "z" not in column.parts("ab" * 1_000 + "z")
