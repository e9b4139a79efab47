"""Partial labels on CoNLL-2000: what a CRF learns if only some tokens are labelled.

    python -m benchmarks.partial --data ../shared/data [--share 0.2] [--masks 5]

Each mask labels a random share of the training tokens. Three ways to train on them, with the same features (CRF++'s
chunking templates) and the same trainer at its defaults:

- partial: the sentences as they are, with all completions of the unknown labels.
- fragments: the runs of labelled tokens as sentences of their own. Their features still see the whole sentence.
- outside: the unknown labels are `O`.

Scores are F1 on the test set. The interval is that of the mean difference partial - fragments over the masks (Student's
t, 95 %).
"""

import argparse
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import common
from tagsmith.core.base.jit import readonly
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.labels import partial
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Compiled, Problem, compile_corpus
from tagsmith.core.learn.run.loop import learn
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.learn.trainers.sgd.sgd_l1 import SgdL1Spec

#: 97.5 % quantiles of Student's t by degrees of freedom.
_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
FEATURES = FeatureSpec(preset="chunking")
LEARNING = Learning(features=FEATURES, trainer=SgdL1Spec(), seed=1)


def masked(corpus: Corpus, known: NDArray[np.bool_], unknown: str) -> Corpus:
    """Return the corpus with `unknown` as the label of all tokens that are not known."""
    assert corpus.labels is not None
    names = corpus.labels.vocabulary.strings()
    numbers = {name: i for i, name in enumerate([*names, *([] if unknown in names else [unknown])])}
    ids = np.where(known, corpus.labels.ids, np.int32(numbers[unknown])).astype(np.int32)
    labels = Column(corpus.labels.name, Vocabulary.from_strings(list(numbers)), ids)
    return replace(corpus, labels=labels, partial=unknown == partial.ANY)


def fragments(problem: Problem) -> Problem:
    """Return the problem of the runs of labelled tokens."""
    data = problem.data
    known = data.gold >= 0
    # A run ends where a sentence ends, and before and after an unknown label.
    breaks = np.concatenate([[True], ~(known[1:] & known[:-1]), [True]])
    breaks[data.offsets] = True
    offsets = np.flatnonzero(breaks)
    cut = replace(
        problem,
        data=data._replace(
            offsets=readonly(offsets, np.int64), complete=readonly(known[offsets[:-1]], np.bool_)
        ),
    )
    found = cut.subset(np.flatnonzero(known[offsets[:-1]]))
    return replace(found, data=found.data._replace(partial=False))


def f1(compiled: Compiled, problem: Problem, test: Corpus) -> float:
    """Train, and score on the test set."""
    learned = finished(learn(LEARNING, problem, compiled.problem_of(test)))
    assert learned.dev is not None
    return float(learned.dev.f1)


def measure(train: Corpus, test: Corpus, share: float, seed: int) -> dict[str, float]:
    """Compare the three ways on one mask."""
    known = np.random.default_rng(seed).random(train.tokens) < share
    open_labels = compile_corpus(FEATURES.resolve(2), masked(train, known, partial.ANY))
    outside = compile_corpus(FEATURES.resolve(2), masked(train, known, "O"))
    return {
        "partial": f1(open_labels, open_labels.problem, test),
        "fragments": f1(open_labels, fragments(open_labels.problem), test),
        "outside": f1(outside, outside.problem, test),
    }


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--masks", type=int, default=5, choices=range(2, 11))
    options = parser.parse_args()
    train, test = (
        read_conll([common.read(options.data / "conll2000" / f"{part}.txt")], max_line_bytes=1 << 16)
        for part in ("train", "test")
    )
    rows = []
    for seed in range(1, options.masks + 1):
        rows.append({"seed": seed, **measure(train, test, options.share, seed)})
        print(rows[-1], flush=True)
    common.record("partial", summary(rows, options.share))


def summary(rows: list[dict[str, Any]], share: float) -> dict[str, Any]:
    """Add the mean of each way and the interval of the difference."""
    gains = [row["partial"] - row["fragments"] for row in rows]
    half = _T[len(rows) - 1] * stdev(gains) / len(rows) ** 0.5
    return {
        "share": share,
        "trainer": LEARNING.trainer.model_dump(mode="json"),
        "means": {
            way: round(mean(row[way] for row in rows), 2) for way in ("partial", "fragments", "outside")
        },
        "gain": {
            "mean": round(mean(gains), 3),
            "low": round(mean(gains) - half, 3),
            "high": round(mean(gains) + half, 3),
        },
        "masks": rows,
    }


if __name__ == "__main__":
    main()
