"""Sentiment of reviews by maximum entropy: Sun et al. (2014), table 6.

    python -m benchmarks.sentiment --data ../shared/data [--values counts,logarithms] [--train all,domain] [--folds 5]

The reviews of four domains (Blitzer et al. 2007) as CRFsuite's data, a document a sentence of one token, labelled
independently. From the paper: sigma 1 (l2 = 1), as many passes as it needed, and how c of ADF is found, by 4-fold
cross-validation on the training part from four values; SGD's first rate, of which the paper says nothing, is found in
the same way from the same four. The paper calls the values real: they are the counts of the data, log(1 + count), or 1
for what is present. How it split the data it does not say; it gives one accuracy over all domains and 9.4e5 features,
which is what all domains have together (473,852 attributes, two labels). So a fold is trained on all domains, or on its
own alone. A fold holds out a fifth of each domain. L-BFGS ends near the one optimum there is: where it differs from the
paper's, data, values or split do.
"""

import argparse
from collections.abc import Iterator
from math import log1p
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import common
from core.corpus.corpus import Corpus
from core.corpus.crfsuite import read_crfsuite
from core.experiments import folds
from core.features.spec import FeatureSpec
from core.learn import loop
from core.learn.problem import Problem, compile_corpus
from core.specs import Learning
from core.steps import finished

DOMAINS = ("books", "dvd", "electronics", "kitchen")
#: Table 6: accuracy, passes.
PAPER = {
    "sgd": (87.13, 44),
    "averaged-perceptron": (85.04, 46),
    "adf": (87.89, 30),
    "lbfgs": (87.00, 86),
}
RATES = (0.005, 0.01, 0.05, 0.1)
#: What each trainer may be set to; where there are several, cross-validation on the training part chooses.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "sgd": [{"l2": 1.0, "schedule": {"kind": "exponential", "eta0": eta0}} for eta0 in RATES],
    "averaged-perceptron": [{}],
    "adf": [{"l2": 1.0, "c": c} for c in RATES],
    "lbfgs": [{"l2": 1.0}],
}
#: Folds of the cross-validation within a training part.
INNER = 4
#: How an attribute's value is written: its count, log(1 + count), or nothing, which is 1.
VALUES = {"counts": ":{count}", "logarithms": ":{:.6f}", "presence": ""}
FEATURES = FeatureSpec(structure="independent")
SEED, LONGEST = 1, 1 << 20
#: Two dozen reviews hold this control character, which no text should.
STRAY = "\x1a"


def converted(text: str, label: str, values: str) -> bytes:
    """The reviews of one label as CRFsuite's data."""
    lines = []
    for review in text.replace(STRAY, "").strip("\n").split("\n"):
        *counts, last = review.split()
        assert last == f"#label#:{label}"
        fields = [label]
        for each in counts:
            name, _, count = each.rpartition(":")
            escaped = name.replace("\\", "\\\\").replace(":", "\\:")
            fields.append(escaped + VALUES[values].format(log1p(int(count)), count=count))
        lines.append("\t".join(fields) + "\n\n")
    return "".join(lines).encode()


def corpus_of(data: Path, domains: tuple[str, ...], values: str) -> Corpus:
    """The reviews of these domains, the negative ones of each first."""
    return read_crfsuite(
        (
            converted(common.read(data / "sentiment" / domain / f"{label}.review").decode(), label, values)
            for domain in domains
            for label in ("negative", "positive")
        ),
        max_line_bytes=LONGEST,
    )


def in_folds(problem: Problem, domains: int, count: int) -> Iterator[folds.Fold]:
    """Folds that hold out the same part of every domain; `problem` has the domains one after the other."""
    size = problem.sentences // domains
    for part in folds.parts(size, count, SEED):
        held_out = np.concatenate([part + size * domain for domain in range(domains)])
        yield folds.fold_of(problem, held_out, FEATURES)


def accuracy(fold: folds.Fold, domains: int, trainer: dict[str, Any]) -> tuple[NDArray[np.float64], float]:
    """(percent of each domain that is right, seconds of training)."""
    learning = Learning.model_validate({"features": FEATURES, "trainer": trainer, "seed": SEED})
    learned = finished(loop.learn(learning, fold.train, None))
    right = learned.weights.decode(fold.held_out) == fold.held_out.data.gold
    return 100.0 * right.reshape(domains, -1).mean(axis=1), learned.seconds


def chosen(training: Problem, domains: int, trainers: list[dict[str, Any]]) -> tuple[dict[str, Any], float]:
    """The trainer that is best by cross-validation within a training part, and its accuracy there."""
    inner = list(in_folds(training, domains, INNER))
    means = [
        fmean(float(accuracy(fold, domains, trainer)[0].mean()) for fold in inner) for trainer in trainers
    ]
    return trainers[means.index(max(means))], max(means)


def measured(data: Path, values: str, trained_on: str, count: int) -> dict[str, Any]:
    """The table for one way to read the paper."""
    groups = [DOMAINS] if trained_on == "all" else [(domain,) for domain in DOMAINS]
    problems = [
        compile_corpus(FEATURES.resolve(0), corpus_of(data, group, values)).problem for group in groups
    ]
    table = {}
    for name, settings in SETTINGS.items():
        paper, passes = PAPER[name]
        trainers = [{"kind": name, "passes": passes, **each} for each in settings]
        found, used, validated, seconds = [], [], [], 0.0
        for group, problem in zip(groups, problems, strict=True):
            by_fold = []
            for fold in in_folds(problem, len(group), count):
                trainer, mean = chosen(fold.train, len(group), trainers)
                percent, taken = accuracy(fold, len(group), trainer)
                by_fold.append(percent)
                used.append(trainer)
                validated.append(mean)
                seconds += taken / count
            found += np.mean(by_fold, axis=0).tolist()
        table[name] = {
            "trainers": [{**each, "folds": used.count(each)} for each in trainers if each in used],
            "accuracy": {domain: round(a, 2) for domain, a in zip(DOMAINS, found, strict=True)},
            "mean": round(fmean(found), 2),
            "cross_validated": round(fmean(validated), 2),
            "paper": paper,
            "difference": round(fmean(found) - paper, 2),
            "seconds_a_fold": round(seconds, 2),
        }
        print(values, trained_on, name, table[name], flush=True)
    return {**common.moment(), "folds": count, "table": table}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--values", default=",".join(VALUES))
    parser.add_argument("--train", default="all,domain")
    parser.add_argument("--folds", type=int, default=5)
    asked = parser.parse_args()
    for trained_on in asked.train.split(","):
        for values in asked.values.split(","):
            table = measured(asked.data, values, trained_on, asked.folds)
            reading = {f"{values}, trained on {trained_on}": table}
            common.record("sentiment", common.recorded("sentiment") | reading)


if __name__ == "__main__":
    main()
