"""CoNLL-2000 chunking compared with python-crfsuite: a training pass, file to model, and tagging.

    python -m benchmarks.chunking --data ../shared/data [--rounds 5]

Same text, same templates (CRF++'s 19 and label bigrams), one thread each, contenders alternated in one run. Tagsmith
trains `sgd-l1` (cumulative penalty, l1 0.5, exponential schedule), python-crfsuite `l2sgd`. Tagsmith has a weight for
every pair of attribute and label (7.4 M), crfsuite only for pairs seen in the data (0.46 M), which is less work per
pass.
"""

import argparse
import tempfile
import time
from pathlib import Path

import pycrfsuite

from benchmarks import common, crfsuite, learners
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.model.file import save
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.train import TrainResult

PASSES = 30
#: Every pair of attribute and label has a weight.
FEATURES = FeatureSpec(preset="chunking")


def ours(raw: bytes, passes: int = PASSES) -> TrainResult:
    """From the file's bytes to a trained model."""
    trainer = {"kind": "sgd-l1", "l1": 0.5, "passes": passes, "schedule": {"kind": "exponential"}}
    return learners.trained(trainer, FEATURES, learners.corpus(raw), objective="estimate")


def theirs(raw: bytes, model: Path, passes: int = PASSES) -> crfsuite.Timed:
    """From the file's bytes to a trained model, in Python as users of python-crfsuite do."""
    parsed = crfsuite.templates()
    data = crfsuite.sentences(raw)
    features = [crfsuite.expand(sentence, parsed) for sentence in data]
    labels = [[row[-1] for row in sentence] for sentence in data]
    return crfsuite.trained(
        features,
        labels,
        model,
        "l2sgd",
        {"c2": 1.0, "max_iterations": passes, "period": passes + 1, "delta": 0},
    )


def measure_training(raw: bytes, folder: Path, rounds: int) -> dict[str, object]:
    """Whole runs, from bytes to model, and the passes within them."""
    runs: dict[str, list[float]] = {"tagsmith": [], "python-crfsuite l2sgd": []}
    passes: dict[str, list[float]] = {"tagsmith": [], "python-crfsuite l2sgd": []}
    for _ in range(rounds):
        began = time.perf_counter()
        result = ours(raw)
        save(result.model, folder / "ours")
        runs["tagsmith"].append(time.perf_counter() - began)
        passes["tagsmith"].append(result.train_seconds / result.passes)
        began = time.perf_counter()
        trainer = theirs(raw, folder / "theirs")
        runs["python-crfsuite l2sgd"].append(time.perf_counter() - began)
        seconds = trainer.iteration_seconds()[-PASSES:]
        passes["python-crfsuite l2sgd"].append(sum(seconds) / len(seconds))
    return {
        "a_pass": common.summary(passes, "tagsmith"),
        f"file_to_model_{PASSES}_passes": common.summary(runs, "tagsmith"),
    }


def measure_tagging(raw_test: bytes, folder: Path, rounds: int) -> dict[str, object]:
    """Token lists to tags, in process."""
    tagger = Tagger.open(folder / "ours")
    peer = pycrfsuite.Tagger()
    peer.open(str(folder / "theirs"))
    parsed = crfsuite.templates()
    data = [[row[:-1] for row in sentence] for sentence in crfsuite.sentences(raw_test)]
    tokens = sum(map(len, data))
    tagger.tag(data[:10])
    contenders = {
        "tagsmith": lambda: common.timed(lambda: tagger.tag(data)),
        "python-crfsuite": lambda: common.timed(
            lambda: [peer.tag(crfsuite.expand(sentence, parsed)) for sentence in data]
        ),
        "python-crfsuite, features ready": lambda: _ready_made(peer, data, parsed),
    }
    seconds = common.alternate(contenders, rounds)
    result = common.summary(seconds, "tagsmith")
    for name, values in seconds.items():
        result[name]["tokens_per_second"] = round(tokens / sorted(values)[len(values) // 2])
    return {"tagging": result}


def _ready_made(
    peer: pycrfsuite.Tagger, data: list[crfsuite.Sentence], parsed: list[crfsuite.Template]
) -> float:
    features = [crfsuite.expand(sentence, parsed) for sentence in data]
    return common.timed(lambda: [peer.tag(xseq) for xseq in features])


def scores(raw_test: bytes, folder: Path) -> dict[str, object]:
    """Span F1 on the official test set, of both models."""
    test = learners.corpus(raw_test)
    data = crfsuite.sentences(raw_test)
    tagger = Tagger.open(folder / "ours")
    peer = pycrfsuite.Tagger()
    peer.open(str(folder / "theirs"))
    parsed = crfsuite.templates()
    predicted = {
        "tagsmith": tagger.tag([[row[:-1] for row in sentence] for sentence in data]),
        "python-crfsuite l2sgd": [peer.tag(crfsuite.expand(sentence, parsed)) for sentence in data],
    }
    out: dict[str, dict[str, object]] = {}
    for name, tags in predicted.items():
        metrics = learners.score(test, tags)
        out[name] = {"f1": round(metrics.f1, 2), "accuracy": round(metrics.accuracy, 2)}
    out["tagsmith"]["active_features"] = tagger.model.active_features
    return {"test": out}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    raw = common.read(options.data / "conll2000" / "train.txt")
    raw_test = common.read(options.data / "conll2000" / "test.txt")
    warm.training()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result: dict[str, object] = measure_training(raw, folder, options.rounds)
        result |= measure_tagging(raw_test, folder, max(options.rounds, 7))
        result |= scores(raw_test, folder)
    path = common.record("chunking", result)
    print(path.read_text())


if __name__ == "__main__":
    main()
