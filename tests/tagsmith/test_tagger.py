"""Model files opened in process."""

import random
from pathlib import Path

import pycrfsuite
import pytest

from tagsmith import Tagger
from tagsmith.core.model.file import CorruptModel
from tests.core.model.strings import StringCrf
from tests.tagsmith.text_model import model_file


def test_a_file_of_ours_tags(tmp_path: Path) -> None:
    tagger = Tagger.open(str(model_file(tmp_path / "model")))
    assert tagger.tag([["Ada", "saw", "London"], ["Charles"]]) == [["B-PER", "O", "B-LOC"], ["B-PER"]]
    assert sorted(tagger.labels) == ["B-LOC", "B-PER", "I-PER", "O"]
    assert tagger.columns == 1


def test_a_file_of_crfsuite_tags(tmp_path: Path) -> None:
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append([{"w": "Ada"}, {"w": "saw"}], ["B-PER", "O"])
    trainer.train(str(tmp_path / "model"))
    assert Tagger.open(tmp_path / "model").tag([[{"w": "Ada"}, {"w": "saw"}]]) == [["B-PER", "O"]]


@pytest.mark.parametrize("program", ["crfpp", "wapiti"])
def test_a_file_of_crfpp_or_wapiti_tags(tmp_path: Path, program: str) -> None:
    templates = ["U:%x[0,0]", "B"] if program == "crfpp" else ["u:%x[0,0]", "b"]
    key = "U:a" if program == "crfpp" else "u:a"
    crf = StringCrf(["A", "B"], templates, {key: [-1.0, 2.0]}, {templates[1]: [0.5, 0.0, 0.0, 0.0]})
    path = tmp_path / "model"
    path.write_bytes(crf.crfpp().encode() if program == "crfpp" else crf.wapiti("2#"))
    sentences = [[random.Random(seed).choice(["a", "b"])] * (seed + 1) for seed in range(5)]
    rows = [[[word] for word in sentence] for sentence in sentences]
    assert Tagger.open(path).tag(sentences) == [crf.tag(each) for each in rows]


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("nothing of the kind")
    with pytest.raises(CorruptModel):
        Tagger.open(tmp_path / "model")
    with pytest.raises(FileNotFoundError):
        Tagger.open(tmp_path / "absent")
