"""Averages of margin learners in float32, compared with a float64 twin, over a million updates.

    python -m benchmarks.averages [--updates 1000000]

A margin learner adds (n - 1) s d to a sum a in float32, and its model is w - a / N. The twin is the averaged perceptron
in float64. The steps of a perceptron are integers, so both make the same updates bit for bit, and the means differ only
by the rounding of a. Other learners add in the same way, with other step sizes.

- error: the largest difference of a weight, relative to the largest weight.
- labels: the share of tokens that the two models label differently. accuracy: of both, in percent.
"""

import argparse
from typing import Any

import numpy as np

from benchmarks import common
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.learn.trainers.margin.averaged_perceptron import AveragedPerceptronSpec
from tagsmith.core.learn.weights.scoring import Weights

SENTENCES = 1000
#: Few and frequent features, whose weights change in every update; and the features of a typical model.
FEATURES = {
    "frequent": FeatureSpec(templates="U0:%x[0,1]\nU1:%x[-1,1]\nU2:%x[1,1]\nB"),
    "chunking": FeatureSpec(preset="chunking"),
}


def trained(problem: Problem, dtype: type, updates: int) -> Weights:
    """Return the mean after a number of updates."""
    trainer = AveragedPerceptronSpec().make(1)
    trainer.dtype = dtype
    state = trainer.start(problem)
    for report in trainer.passes(problem, state, 1):
        if report.pass_done and int(state["updates"][0]) >= updates:
            break
    return trainer.weights(problem, state)


def measure(problem: Problem, updates: int) -> dict[str, Any]:
    """Compare the two means."""
    ours, twin = (trained(problem, dtype, updates) for dtype in (np.float32, np.float64))
    # A model stores float32, whatever the type of the trainer.
    labels = ours.decode(problem)
    expected = Weights(problem, twin.values.astype(np.float32)).decode(problem)
    gold = problem.data.gold
    return {
        "updates": updates,
        "error": float(np.abs(ours.values - twin.values).max() / np.abs(twin.values).max()),
        "labels": int(np.count_nonzero(labels != expected)),
        "tokens": problem.tokens,
        "accuracy": [round(100 * float(np.mean(each == gold)), 4) for each in (labels, expected)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=1_000_000)
    options = parser.parse_args()
    corpus = read_conll(generate("references", SENTENCES, 1), max_line_bytes=1 << 16)
    result: dict[str, Any] = {"machine": common.machine(), "measured": common.moment()}
    for name, features in FEATURES.items():
        result[name] = measure(compile_corpus(features.resolve(2), corpus).problem, options.updates)
        print(name, result[name], flush=True)
    common.record("averages", result)


if __name__ == "__main__":
    main()
