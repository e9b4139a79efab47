"""Real values end to end: the objective of python-crfsuite, every learner, one token at a time."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.crfsuite import read_crfsuite
from tagsmith.core.corpus.formats.ndjson import read_ndjson
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.trainers.registry import EXAMPLES
from tagsmith.core.model.file import CorruptModel, load, save
from tagsmith.core.model.marginals import marginals
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.train import TrainResult
from tagsmith.core.pipeline.warm_start import weights_of
from tests.training import train

LINE = 1 << 16
LABELS = ["A", "B", "C"]


def samples(sentences: int = 30, seed: int = 1) -> list[tuple[list[dict[str, Any]], list[str]]]:
    """Tokens whose real values tell the label, with a chain in it."""
    r = random.Random(seed)
    out = []
    for _ in range(sentences):
        tokens: list[dict[str, Any]] = []
        labels: list[str] = []
        for _ in range(r.randint(1, 8)):
            label = r.choice(LABELS if not labels or r.random() < 0.4 else [labels[-1]])
            tokens.append(
                {
                    "x": round(LABELS.index(label) - 1 + r.gauss(0, 0.6), 3),
                    "size": round(r.random() * 3, 3),
                    "word": f"{label}{r.randint(0, 5)}" if r.random() < 0.5 else "other",
                    "flag": r.random() < 0.5,
                }
            )
            labels.append(label)
        out.append((tokens, labels))
    return out


def corpus_of(data: list[tuple[list[dict[str, Any]], list[str]]]) -> Corpus:
    lines = (json.dumps({"tokens": tokens, "labels": labels}) + "\n" for tokens, labels in data)
    return read_ndjson((line.encode() for line in lines), max_line_bytes=LINE)


def run(corpus: Corpus, trainer: dict[str, Any], **features: Any) -> TrainResult:
    body = {"kind": "train", "model": "m", "corpus": "crp_m", "trainer": trainer, "features": features}
    return finished(train(TrainSpec.model_validate(body), corpus, None))


def test_the_objective_with_real_values_is_python_crfsuites(tmp_path: Path) -> None:
    data = samples()
    trainer = pycrfsuite.Trainer(
        verbose=False,
        algorithm="lbfgs",
        params={
            "c2": 0.5,
            # It counts by value, and would drop what sums to less than nothing.
            "feature.minfreq": -1e6,
            "max_iterations": 1000,
            "epsilon": 1e-9,
            "delta": 1e-12,
            "feature.possible_states": True,
            "feature.possible_transitions": True,
        },
    )
    for tokens, labels in data:
        trainer.append(tokens, labels)
    trainer.train(str(tmp_path / "model"))
    theirs = trainer.logparser.last_iteration["loss"]
    # Their penalty is c2 |w|^2, ours l2 / 2 |w|^2.
    ours = run(corpus_of(data), {"kind": "lbfgs", "l2": 1.0, "passes": 1000, "tolerance": 1e-6})
    assert ours.objective == pytest.approx(theirs, rel=1e-4)
    tagger, peer = Tagger(ours.model), pycrfsuite.Tagger()
    peer.open(str(tmp_path / "model"))
    unseen = [tokens for tokens, _ in samples(10, seed=2)]
    assert tagger.tag(unseen) == [peer.tag(tokens) for tokens in unseen]
    table = marginals(tagger, tagger.code(unseen))
    at = 0
    for tokens in unseen:
        peer.set(tokens)
        for t in range(len(tokens)):
            for y, name in enumerate(tagger.labels):
                assert table[at, y] == pytest.approx(peer.marginal(name, t), abs=1e-3)
            at += 1


@pytest.mark.parametrize("kind", sorted({spec.model_fields["kind"].default for spec in EXAMPLES}))
def test_every_learner_learns_from_values(kind: str) -> None:
    data = samples(60)
    result = run(corpus_of(data), {"kind": kind, "passes": 8})
    tags = Tagger(result.model).tag([tokens for tokens, _ in data])
    right = [
        a == b for found, (_, gold) in zip(tags, data, strict=True) for a, b in zip(found, gold, strict=True)
    ]
    assert np.mean(right) > 0.7
    again = run(corpus_of(data), {"kind": kind, "passes": 8})
    assert again.model.attributes.weights.tolist() == result.model.attributes.weights.tolist()


def test_independent_tokens_are_learned_as_sentences_of_one() -> None:
    data = samples(40)
    apart = [
        ([token], [label]) for tokens, labels in data for token, label in zip(tokens, labels, strict=True)
    ]
    together = run(corpus_of(data), {"kind": "lbfgs", "passes": 200}, structure="independent")
    alone = run(corpus_of(apart), {"kind": "lbfgs", "passes": 200})
    assert together.objective == pytest.approx(alone.objective, rel=1e-6)
    assert not together.model.transitions.any()
    tokens = [each for each, _ in samples(10, seed=3)]
    singly = Tagger(alone.model).tag([[token] for sentence in tokens for token in sentence])
    assert [tag for each in Tagger(together.model).tag(tokens) for tag in each] == [t for (t,) in singly]


def test_a_model_over_bags_comes_back_from_its_file_and_starts_another(tmp_path: Path) -> None:
    corpus = corpus_of(samples())
    model = run(corpus, {"kind": "lbfgs", "passes": 30}).model
    digest = save(model, tmp_path / "a")
    again = load(tmp_path / "a")
    assert save(again, tmp_path / "b") == digest
    tokens = [each for each, _ in samples(10, seed=4)]
    assert Tagger(again).tag(tokens) == Tagger(model).tag(tokens)
    names = {again.attribute_name(i) for i in range(again.attributes.size)}
    assert {"x", "size", "flag", "word:other"} <= names
    compiled = compile_corpus(TrainSpec.model_fields["features"].default.resolve(0), corpus)
    carried = weights_of(again, compiled)
    assert np.count_nonzero(carried.attribute_rows) == len(model.attributes.weights)


def test_a_damaged_bag_is_not_opened(tmp_path: Path) -> None:
    model = run(corpus_of(samples()), {"kind": "lbfgs", "passes": 5}).model
    save(model, tmp_path / "good")
    raw = bytearray((tmp_path / "good").read_bytes())
    rng = np.random.default_rng(1)
    for place in rng.integers(0, len(raw), 40).tolist():
        changed = bytearray(raw)
        changed[place] ^= 0x55
        (tmp_path / "bad").write_bytes(changed)
        with pytest.raises(CorruptModel):
            load(tmp_path / "bad")


@pytest.mark.parametrize(
    ("token", "pointer"),
    [
        ({"a": float("nan")}, "/sentences/1/0/a"),
        ({"a": 1e13}, "/sentences/1/0/a"),
        ({"a": None}, "/sentences/1/0/a"),
        ({"a": {"b": [1]}}, "/sentences/1/0/a/b/0"),
        ("word", "/sentences/1/0"),
    ],
)
def test_a_wrong_attribute_is_refused_with_its_place(token: Any, pointer: str) -> None:
    model = run(corpus_of(samples(5)), {"kind": "perceptron", "passes": 1}).model
    with pytest.raises(Invalid) as caught:
        Tagger(model).tag([[{"x": 1}], [token]])
    assert [fault.pointer for fault in caught.value.faults] == [pointer]


def test_objects_do_not_fit_a_model_over_columns() -> None:
    corpus = read_ndjson([b'{"tokens": ["a", "b"], "labels": ["x", "y"]}'], max_line_bytes=LINE)
    model = run(corpus, {"kind": "perceptron", "passes": 1}).model
    with pytest.raises(Invalid) as caught:
        Tagger(model).tag([[{"a": 1}]])
    assert caught.value.faults[0].pointer == "/sentences/0/0"


def test_crfsuite_data_and_json_lines_give_the_same_model() -> None:
    as_json = b'{"tokens": [{"a": 2.5, "b": "c"}, {"a": -1}], "labels": ["X", "Y"]}'
    as_text = b"X\ta:2.5\tb\\:c\nY\ta:-1\n"
    one = run(read_ndjson([as_json], max_line_bytes=LINE), {"kind": "lbfgs"})
    two = run(read_crfsuite([as_text], max_line_bytes=LINE), {"kind": "lbfgs"})
    assert one.model.attributes.weights.tolist() == two.model.attributes.weights.tolist()
