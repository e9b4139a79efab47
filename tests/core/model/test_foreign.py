"""Models of other programs tag as those programs do."""

import random
from pathlib import Path
from typing import Any

import pycrfsuite
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.model.file import CorruptModel
from tagsmith.core.model.importing import import_model
from tagsmith.core.model.tagger import Tagger
from tests.core.model.strings import StringCrf, expanded

Sentence = list[dict[str, Any]]


def _sentences(count: int, seed: int) -> tuple[list[Sentence], list[list[str]]]:
    """Generated references, as the feature dicts that people give to python-crfsuite."""
    corpus = read_conll(generate("references", count, seed), max_line_bytes=1 << 16)
    words = [corpus.columns[0].vocabulary[i] for i in corpus.columns[0].ids.tolist()]
    assert corpus.labels is not None
    labels = [corpus.labels.vocabulary[i] for i in corpus.labels.ids.tolist()]
    bounds = list(zip(corpus.offsets[:-1].tolist(), corpus.offsets[1:].tolist(), strict=True))

    def attributes(at: int, begin: int) -> dict[str, Any]:
        word = words[at]
        return {
            "bias": 1.0,
            "word": word.lower(),
            "ends": [word[-3:], word[-2:]],
            "shape": {"title": word.istitle(), "digits": sum(map(str.isdigit, word)) / len(word)},
            "before": words[at - 1] if at > begin else "<é>",
        }

    inputs = [[attributes(at, begin) for at in range(begin, end)] for begin, end in bounds]
    return inputs, [labels[begin:end] for begin, end in bounds]


def _trained(path: Path, algorithm: str, params: dict[str, Any]) -> pycrfsuite.Tagger:
    trainer = pycrfsuite.Trainer(algorithm=algorithm, params=params, verbose=False)
    for inputs, labels in zip(*_sentences(80, 5), strict=True):
        trainer.append(inputs, labels)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


@pytest.mark.parametrize(
    ("algorithm", "params"),
    [
        ("lbfgs", {"c1": 0.1, "c2": 0.01, "max_iterations": 30}),
        (
            "lbfgs",
            {"max_iterations": 10, "feature.possible_states": True, "feature.possible_transitions": True},
        ),
        ("ap", {"max_iterations": 5}),
    ],
    ids=["l1", "dense", "perceptron"],
)
def test_a_crfsuite_model_tags_as_python_crfsuite_does(
    tmp_path: Path, algorithm: str, params: dict[str, Any]
) -> None:
    theirs = _trained(tmp_path / "theirs", algorithm, params)
    found = import_model(tmp_path / "theirs", tmp_path / "ours")
    assert found.format == "crfsuite"
    assert sorted(found.model.labels) == sorted(theirs.labels())
    info = theirs.info()
    assert found.model.active_features == len(info.state_features) + len(info.transitions)
    inputs, _ = _sentences(120, 77)
    assert Tagger.open(tmp_path / "ours").tag(inputs) == [theirs.tag(sentence) for sentence in inputs]


def test_weights_and_names_are_those_of_the_crfsuite_model(tmp_path: Path) -> None:
    info = _trained(tmp_path / "theirs", "lbfgs", {"c1": 0.5, "max_iterations": 20}).info()
    model = import_model(tmp_path / "theirs", tmp_path / "ours").model
    a = model.attributes
    weights = {
        (model.attribute_name(i), model.labels[a.labels[k]]): float(a.weights[k])
        for i in range(a.size)
        for k in range(a.starts[i], a.starts[i + 1])
    }
    # Their figures come from a dump with six decimals.
    assert weights == pytest.approx(info.state_features, abs=1e-6)
    pairs = {
        (before, after): float(model.transitions[i, j])
        for i, before in enumerate(model.labels)
        for j, after in enumerate(model.labels)
        if model.transitions[i, j]
    }
    assert pairs == pytest.approx(info.transitions, abs=1e-6)


@pytest.fixture(scope="module")
def crfsuite_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("crfsuite") / "model"
    _trained(path, "ap", {"max_iterations": 2})
    return path.read_bytes()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), cut=st.booleans(), head=st.booleans())
def test_a_damaged_crfsuite_file_is_refused_or_tags(
    crfsuite_file: bytes, tmp_path: Path, seed: int, cut: bool, head: bool
) -> None:
    chosen = random.Random(seed)
    data = bytearray(crfsuite_file)
    for _ in range(chosen.randint(1, 4)):
        at = chosen.randrange(48 if head else len(data))
        data[at] = chosen.choice([0, 1, 255, chosen.randrange(256)])
    (tmp_path / "theirs").write_bytes(data[: chosen.randrange(len(data))] if cut else data)
    (tmp_path / "ours").unlink(missing_ok=True)
    try:
        found = import_model(tmp_path / "theirs", tmp_path / "ours", "crfsuite")
    except Invalid:
        return
    inputs, _ = _sentences(2, 3)
    tagged = Tagger(found.model).tag(inputs)
    assert [len(tags) for tags in tagged] == [len(sentence) for sentence in inputs]


def test_a_file_of_no_known_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(CorruptModel, match="not a model of Tagsmith"):
        import_model(tmp_path / "theirs", tmp_path / "ours")


#: Words with the signs that templates put between values: a text can then be taken apart in several ways.
WORDS = ["New", "york", "1/2", "a/b/c", "/", "Zürich", "_B-1x", "0", "B:", "Ärger"]
CRFPP = [
    "U00:%x[-2,0]",
    "U01:%x[0,0]",
    "U02:%x[-1,0]/%x[0,0]",
    "U03:%x[-1,1]/%x[0,1]/%x[1,0]",
    "U:%x[-1,1]",
    "U:%x[1,1]",
    "U09",
    "B",
    "B1:%x[0,1]",
    "B2:%x[-1,0]/%x[0,0]",
]
WAPITI = [
    "u:%x[-5,0]",
    "u1:%X[0,0]/%x[1,1]",
    'u2:%t[0,0,"^\\u"]/%t[-1,0,"\\d"]',
    'u3:%m[0,0,"^.."]/%x[0,1]',
    "u4:%x[@1,0]%x[@-1,1]",
    "*",
    "*5:%x[-1,1]/%x[0,0]",
    "b6:%x[6,0]",
]


def _rows(chosen: random.Random) -> list[list[str]]:
    return [[chosen.choice(WORDS), chosen.choice("XY/")] for _ in range(chosen.randint(1, 8))]


def _weighed(lines: list[str], syntax: str, sentences: list[list[list[str]]], seed: int) -> StringCrf:
    """Random weights for what the templates make of sentences; a third of the strings has none."""
    chosen, labels = random.Random(seed), ["B-é", "I", "O"]
    crf = StringCrf(labels, lines, {}, {}, syntax)
    for rows in sentences:
        for t in range(len(rows)):
            for line in lines:
                text = expanded(line, rows, t, syntax)
                for weights, kinds, count in ((crf.singles, "Uu*", 3), (crf.pairs, "Bb*", 9)):
                    if line[0] in kinds and text not in weights:
                        live = chosen.random() < 0.67
                        weights[text] = [chosen.gauss(0, 1) if live else 0.0 for _ in range(count)]
    return crf


@pytest.mark.parametrize("seed", range(4))
def test_a_crfpp_text_model_tags_as_its_strings_say(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    crf = _weighed(CRFPP, "crf++", [_rows(chosen) for _ in range(30)], seed)
    (tmp_path / "theirs").write_text(crf.crfpp(), encoding="utf-8")
    found = import_model(tmp_path / "theirs", tmp_path / "ours")
    assert (found.format, found.model.labels) == ("crfpp", ("B-é", "I", "O"))
    others = [_rows(chosen) for _ in range(200)]
    assert Tagger.open(tmp_path / "ours").tag(others) == [crf.tag(rows) for rows in others]


@pytest.mark.parametrize("seed", range(4))
def test_a_wapiti_model_tags_as_its_strings_say(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    crf = _weighed(WAPITI, "wapiti", [_rows(chosen) for _ in range(30)], seed)
    (tmp_path / "theirs").write_bytes(crf.wapiti("" if seed == 3 else "2#"))
    found = import_model(tmp_path / "theirs", tmp_path / "ours")
    assert (found.format, found.model.labels) == ("wapiti", ("B-é", "I", "O"))
    others = [_rows(chosen) for _ in range(200)]
    assert Tagger.open(tmp_path / "ours").tag(others) == [crf.tag(rows) for rows in others]


def test_weights_of_a_wapiti_model_may_be_decimal(tmp_path: Path) -> None:
    text = """#mdl#2#6
#rdr#2/1/0
9:u:%x[0,0],
1:b,
#qrk#2
1:A,
1:B,
#qrk#2
3:u:a,
1:b,
0=5.243406e-02
1=-10
2=0.5
3=0x1.8p-1
4=+2.5E+1
5=-0X1p+1
"""
    (tmp_path / "theirs").write_text(text)
    model = import_model(tmp_path / "theirs", tmp_path / "ours").model
    assert model.attributes.weights.tolist() == [pytest.approx(5.243406e-02), -10.0]
    assert model.transitions.tolist() == [[0.5, 0.75], [25.0, -2.0]]


def test_a_wapiti_model_of_maximum_entropy_labels_every_token_by_itself(tmp_path: Path) -> None:
    chosen = random.Random(9)
    crf = _weighed(WAPITI[:5], "wapiti", [_rows(chosen) for _ in range(30)], 9)
    (tmp_path / "theirs").write_bytes(crf.wapiti("0#"))
    model = import_model(tmp_path / "theirs", tmp_path / "ours").model
    assert model.features.independent
    others = [_rows(chosen) for _ in range(100)]
    assert Tagger(model).tag(others) == [crf.tag(rows) for rows in others]


def test_the_cost_factor_of_crfpp_counts(tmp_path: Path) -> None:
    crf = StringCrf(["A", "B"], ["U:%x[0,0]", "B"], {"U:a": [0.25, -2.0]}, {"B": [1.0, 2.0, 3.0, 4.0]})
    (tmp_path / "theirs").write_text(crf.crfpp(2.0))
    model = import_model(tmp_path / "theirs", tmp_path / "ours").model
    assert model.attributes.weights.tolist() == [0.5, -4.0]
    assert model.transitions.tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert model.attribute_name(0) == "U:a"


SMALL = StringCrf(["A", "B"], ["U:%x[0,0]", "B"], {"U:a": [1.0, 2.0]}, {"B": [1.0, 2.0, 3.0, 4.0]})
BARE = StringCrf(["A", "B"], ["u:%x[0,0]", "b"], {"u:a": [1.0, 2.0]}, {"b": [1.0, 2.0, 3.0, 4.0]}, "wapiti")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("maxid: 6", "maxid: 7", "must have 7 weights"),
        ("maxid: 6", "max: 6", "no valid maxid"),
        ("cost-factor: 1.0", "cost-factor: 1.0.0", "cost-factor"),
        ("U:a", "X:a", "No template of the file makes the text 'X:a'"),
        ("4 U:a", "9 U:a", "belongs to no feature"),
        ("4 U:a", "U:a", "is not a feature"),
        ("\nA\n", "\nB\n", "distinct names"),
        ("U:%x[0,0]", "U:%x[0,0]\nU:%x[0,0]", "a template twice"),
        ("U:%x[0,0]", "U:%y[0,0]", "do not parse"),
        ("4.0000000000000000", "nan", "not a number"),
        ("4.0000000000000000", "1e300", "not a number"),
        ("4.0000000000000000", "four", "must have 6 weights"),
        ("\n\nU:%x", "\nU:%x", "five sections"),
    ],
)
def test_a_crfpp_model_that_is_not_whole_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = SMALL.crfpp()
    assert text.count(old) >= 1
    (tmp_path / "theirs").write_text(text.replace(old, new, 1))
    with pytest.raises(Invalid, match=reason):
        import_model(tmp_path / "theirs", tmp_path / "ours", "crfpp")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("#mdl#2#6", "#mdl#2#7", "7 weights, but has 6"),
        ("#mdl#2#6", "#mdl#1#6", "MEMM"),
        ("#rdr#2/2/0", "#rdr#3/2/0", "at byte"),
        ("9:u:%x[0,0],", "8:u:%x[0,0],", "does not have its stated length"),
        ("9:u:%x[0,0],", "9:x:%x[0,0],", "do not parse"),
        ("3:u:a,", "3:x:a,", "is not an observation"),
        ("3:u:a,", "3:u;a,", "No template of the file makes"),
        ("#qrk#2\n1:A,", "#qrk#2\n1:B,", "distinct names"),
        ("5=0x", "4=0x", "not in the order"),
        ("5=0x", "50=0x", "belongs to no feature"),
        ("5=0x", "5=zz", "is not a weight"),
        ("5=0x", "5=1_0", "is not a weight"),
        ("5=0x1.0000000000000p+2", "5=1.5.5", "is not a weight"),
        ("5=0x1.0000000000000p+2", "5=0x1.5.5", "is not a weight"),
        ("5=0x1.0000000000000p+2", "5=0x1p99999", "is not a weight"),
        ("5=0x1.0000000000000p+2", "5=1e300", "exceeds"),
        ("5=0x1.0000000000000p+2", "5=1e999", "not a number"),
        ("5=0x1.0000000000000p+2", "5=nan", "is not a weight"),
    ],
)
def test_a_wapiti_model_that_is_not_whole_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = BARE.wapiti().decode()
    assert text.count(old) >= 1
    (tmp_path / "theirs").write_text(text.replace(old, new, 1))
    with pytest.raises(Invalid, match=reason):
        import_model(tmp_path / "theirs", tmp_path / "ours", "wapiti")


def test_a_text_with_too_many_readings_is_refused(tmp_path: Path) -> None:
    line = "U:" + "/".join(["%x[0,0]"] * 30)
    for text in ("U:" + "/" * 200, "U:" + "a/" * 200 + "a"):
        crf = StringCrf(["A", "B"], [line], {text: [1.0, 2.0]}, {})
        (tmp_path / "theirs").write_text(crf.crfpp())
        with pytest.raises(CorruptModel, match=r"readings|too long"):
            import_model(tmp_path / "theirs", tmp_path / "ours")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), crfpp=st.booleans())
def test_a_damaged_text_model_is_refused_or_tags(tmp_path: Path, seed: int, crfpp: bool) -> None:
    chosen = random.Random(seed)
    data = bytearray(SMALL.crfpp().encode() if crfpp else BARE.wapiti())
    for _ in range(chosen.randint(1, 4)):
        data[chosen.randrange(len(data))] = chosen.choice([*b"0189:\n ,#%=[]-\xff", chosen.randrange(256)])
    (tmp_path / "theirs").write_bytes(data)
    (tmp_path / "ours").unlink(missing_ok=True)
    try:
        found = import_model(tmp_path / "theirs", tmp_path / "ours", "crfpp" if crfpp else "wapiti")
    except Invalid:
        return
    tagged = Tagger(found.model).tag([[["a"] * max(1, found.model.features.columns)] * 3])
    assert [len(tags) for tags in tagged] == [3]
