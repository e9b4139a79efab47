"""Tagging a corpus in slices."""

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.model.constraints import Constraints
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import evaluation
from tests.training import train

CORPUS = read_conll([b"a X\nb Y\n\na X\n\nb Y\n\nb Y\na X\n\na X\n\na X\nb Y\n"], max_line_bytes=100)


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    spec = {
        "kind": "train",
        "model": "m",
        "corpus": "crp_a",
        "features": {"templates": "U:%x[0,0]"},
        "trainer": {"kind": "averaged-perceptron", "passes": 2},
    }
    return Tagger(finished(train(TrainSpec.model_validate(spec), CORPUS, None)).model)


@pytest.fixture(autouse=True)
def slices_of_two_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "SLICE_TOKENS", 2)


def test_sentences_without_a_labelling_are_numbered_within_the_corpus(tagger: Tagger) -> None:
    every = [(x, y) for x in tagger.labels for y in tagger.labels]
    corpus = CORPUS.subset([1, 2, 4, 3])  # only the last has two tokens, and so a pair of labels
    with pytest.raises(Invalid) as raised:
        finished(evaluation.tagged_corpus(tagger, corpus, constraints=Constraints(forbid=every)))
    assert raised.value.code == "no_sequence_allowed"
    assert [fault.pointer for fault in raised.value.faults] == ["/sentences/3"]


def test_fixed_labels_belong_to_the_sentences_of_the_corpus(tagger: Tagger) -> None:
    tags = [None, None, ["X"], [None, "Y"], None, None]
    tagged = finished(evaluation.tagged_corpus(tagger, CORPUS, constraints=Constraints(tags=tags)))
    assert tagged.labels is not None
    names = tagged.labels.vocabulary.strings()
    assert [names[i] for i in tagged.labels.ids] == ["X", "Y", "X", "X", "Y", "Y", "X", "X", "Y"]
