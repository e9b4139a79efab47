"""Models of other programs tag as those programs do."""

import random
from pathlib import Path
from typing import Any

import pycrfsuite
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.corpus.conll import read_conll
from core.corpus.generate import generate
from core.errors import Invalid
from core.model.file import CorruptModel
from core.model.importing import import_model
from core.model.tagger import Tagger

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
    with pytest.raises(CorruptModel, match="no model of Tagsmith"):
        import_model(tmp_path / "theirs", tmp_path / "ours")
