"""What training keeps about the use of a model: tokenizer, columns, an example that works."""

from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.base import flat_file
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tagsmith.core.jobs import kinds
from tagsmith.core.model import file
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.model.use.signature import signature_of
from tagsmith.core.pipeline.train import TrainResult
from tagsmith.core.pipeline.usage import joined
from tests.app import samples
from tests.training import train

PEOPLE = 'Mrs. B-PER\nO\'Brien I-PER\nof O\nthe O\nU.S. B-LOC\nsaid O\n" O\nso O\n" O\n. O\n\nso O\n\n'
ROWS = "Ada NNP B-PER\nsaid VBD O\n\n"
BAGS = "B-PER\tw=Ada\tcapital\nO\tw=said\n\n"
TRAINER = {"kind": "sgd", "passes": 2}


def trained(
    text: str, name: str = "conll", options: dict[str, Any] | None = None, **spec: Any
) -> TrainResult:
    corpus = formats.read([text.encode()], name, max_line_bytes=1000, options=options)
    columns = "".join(f"U{i}:%x[0,{i}]\n" for i in range(len(corpus.columns)))
    features = {"features": {"templates": columns}} if columns else {"features": {}}
    return finished(
        train(kinds.parse_job(samples.spec("crp_x", **{**features, "trainer": TRAINER, **spec})), corpus)
    )


def header(result: TrainResult, path: Path) -> dict[str, Any]:
    file.save(result.model, path / "model")
    with (path / "model").open("rb") as source:
        return flat_file.header_of(iter(lambda: source.read(100), b""), file.MAGIC)


def test_a_model_of_words_takes_text_and_has_an_example_as_written(tmp_path: Path) -> None:
    result = trained(PEOPLE)
    assert result.warnings == ()
    found = signature_of(header(result, tmp_path))
    assert (found.text, found.columns, found.labels) == (True, ["0"], ["B-LOC", "B-PER", "I-PER", "O"])
    assert found.tokenizer == {"kind": "words", "version": 2}
    assert found.example == {"text": 'Mrs. O\'Brien of the U.S. said "so".', "output": "spans"}
    tagged = Tagger.open(tmp_path / "model").tag_text(found.example["text"])
    assert tagged.tokens == ["Mrs.", "O'Brien", "of", "the", "U.S.", "said", '"', "so", '"', "."]
    assert tagged.calibrated is True


@pytest.mark.parametrize(
    ("text", "name", "columns", "sentence"),
    [
        (ROWS, "conll", ["0", "1"], [["Ada", "NNP"], ["said", "VBD"]]),
        (BAGS, "crfsuite", [], [{"w=Ada": 1.0, "capital": 1.0}, {"w=said": 1.0}]),
    ],
)
def test_other_models_have_an_example_of_tokens(
    tmp_path: Path, text: str, name: str, columns: list[str], sentence: list[Any]
) -> None:
    found = signature_of(header(trained(text, name), tmp_path))
    assert (found.text, found.tokenizer, found.columns) == (False, None, columns)
    assert found.example == {"sentences": [sentence], "output": "spans"}
    assert len(Tagger.open(tmp_path / "model").tag(found.example["sentences"])[0]) == 2


def test_the_tokenizer_of_the_corpus_is_kept_and_a_bad_fit_is_a_warning(tmp_path: Path) -> None:
    result = trained("a=1 O\nb=2 X\n\n", options={"tokenizer": "words"})
    assert result.model.usage.tokenizer == Tokenizer()
    (warning,) = result.warnings
    assert "100.0 % of the training tokens" in warning
    assert "'a=1' becomes 'a' '=' '1'" in warning
    found = signature_of(header(result, tmp_path))
    assert found.example == {"sentences": [["a=1", "b=2"]]}
    pattern = trained("a=1 O\nb=2 X\n\n", options={"tokenizer": '{"pattern": "[a-z]=[0-9]"}'})
    assert (pattern.warnings, pattern.model.usage.text) == ((), "a=1 b=2")


def test_models_of_margin_trainers_are_not_calibrated() -> None:
    assert (
        trained(PEOPLE, trainer={"kind": "averaged-perceptron", "passes": 1}).model.usage.calibrated is False
    )


def test_a_file_without_usage_keeps_the_first_version(tmp_path: Path) -> None:
    found = header(trained(PEOPLE), tmp_path)
    del found["usage"]
    old = signature_of(found)
    assert old.tokenizer == {"kind": "words", "version": 1}
    assert old.example == {"text": "Ada Lovelace wrote to Charles Babbage in London.", "output": "spans"}
    segmenter = signature_of({**found, "labels": ["B", "M", "E", "S"]})
    assert segmenter.tokenizer == {"kind": "characters", "version": 1}


@pytest.mark.parametrize("usage", [{"tokenizer": "none"}, {"columns": 1}, {"example": [1]}, {"text": 5}, 7])
def test_a_file_with_wrong_usage_is_corrupt(tmp_path: Path, usage: Any) -> None:
    model = trained(ROWS).model
    description = {**file._description(model), "usage": usage}
    flat_file.save(tmp_path / "model", file.MAGIC, description, file._arrays(model))
    with pytest.raises(file.CorruptModel):
        Tagger.open(tmp_path / "model")


def test_a_text_is_joined_only_if_it_gives_the_tokens_again() -> None:
    assert joined(["(", "Ada", ")", ",", "he"], Tokenizer()) == "(Ada), he"
    assert joined(["end", ".Next"], Tokenizer()) is None
    assert joined(["共", "同"], Tokenizer("characters")) == "共同"


def test_a_corpus_with_one_label_is_a_warning() -> None:
    (warning,) = trained("Ada O\nsaid O\n\n").warnings
    assert warning == "There is one label only, O: nothing can be learned from it."
