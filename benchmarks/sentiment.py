"""Sentiment of reviews by maximum entropy: Sun et al. (2014), table 6.

    python -m benchmarks.sentiment --data ../shared/data [--values counts,presence] [--train all,domain] [--folds 5]

The reviews of four domains (Blitzer et al. 2007) as CRFsuite's data, a document a sentence of one token, labelled
independently. The settings are the paper's: l2 = 1 (sigma 1), c = 0.005 for ADF, as many passes as it needed. The paper
does not say how it split the data, nor what the values are: it gives one accuracy over all domains and 9.4e5 features,
which is what all domains have together (473,852 attributes, two labels). So a fold is trained on all domains, or on its
own alone; values are the counts of the data, or 1 for what is present. A fold holds out a fifth of each domain.
"""

import argparse
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks import common
from core.corpus.corpus import Corpus
from core.corpus.crfsuite import read_crfsuite
from core.experiments import folds
from core.features.spec import FeatureSpec
from core.learn import loop
from core.learn.problem import compile_corpus
from core.specs import Learning
from core.steps import finished

DOMAINS = ("books", "dvd", "electronics", "kitchen")
#: Table 6: accuracy, passes.
PAPER = {"sgd": (87.13, 44), "averaged-perceptron": (85.04, 46), "adf": (87.89, 30)}
SETTINGS: dict[str, dict[str, Any]] = {
    "sgd": {"l2": 1.0},
    "averaged-perceptron": {},
    "adf": {"l2": 1.0, "c": 0.005},
}
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
            fields.append(f"{escaped}:{count}" if values == "counts" else escaped)
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


def accuracies(
    corpus: Corpus, domains: int, trainer: dict[str, Any], count: int
) -> tuple[list[float], float]:
    """(accuracy of each domain over the folds, seconds of training a fold)."""
    whole = compile_corpus(FEATURES.resolve(0), corpus).problem
    size = corpus.sentences // domains
    right: list[list[float]] = [[] for _ in range(domains)]
    seconds = []
    for part in folds.parts(size, count, SEED):
        held_out = np.concatenate([part + size * domain for domain in range(domains)])
        fold = folds.fold_of(whole, held_out, FEATURES)
        learning = Learning.model_validate({"features": FEATURES, "trainer": trainer, "seed": SEED})
        learned = finished(loop.learn(learning, fold.train, None))
        seconds.append(learned.seconds)
        good = learned.weights.decode(fold.held_out) == fold.held_out.data.gold
        for domain, each in enumerate(np.split(good, domains)):
            right[domain].append(100.0 * float(np.mean(each)))
    return [fmean(each) for each in right], fmean(seconds)


def measured(data: Path, values: str, trained_on: str, count: int) -> dict[str, Any]:
    """The table for one way to read the paper."""
    groups = [DOMAINS] if trained_on == "all" else [(domain,) for domain in DOMAINS]
    corpora = [corpus_of(data, group, values) for group in groups]
    table = {}
    for name, settings in SETTINGS.items():
        paper, passes = PAPER[name]
        trainer = {"kind": name, "passes": passes, **settings}
        found, seconds = [], 0.0
        for group, corpus in zip(groups, corpora, strict=True):
            accuracy, taken = accuracies(corpus, len(group), trainer, count)
            found += accuracy
            seconds += taken
        table[name] = {
            "trainer": trainer,
            "accuracy": {domain: round(a, 2) for domain, a in zip(DOMAINS, found, strict=True)},
            "mean": round(fmean(found), 2),
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
    parser.add_argument("--values", default="counts,presence")
    parser.add_argument("--train", default="all,domain")
    parser.add_argument("--folds", type=int, default=5)
    asked = parser.parse_args()
    for trained_on in asked.train.split(","):
        for values in asked.values.split(","):
            result = common.recorded("sentiment")
            result[f"{values}, trained on {trained_on}"] = measured(
                asked.data, values, trained_on, asked.folds
            )
            common.record("sentiment", result)


if __name__ == "__main__":
    main()
