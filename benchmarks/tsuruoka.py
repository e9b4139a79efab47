"""Table 1 of Tsuruoka, Tsujii & Ananiadou (2009) on CoNLL-2000: L1 by OWL-QN and by four kinds of SGD.

    python -m benchmarks.tsuruoka --data ../shared/data [--passes 30] [--l1 0.5]

Same features for all (CRF++'s templates, pairs seen in the data), same l1, one thread. Objectives are exact, over the
whole training set, and given a sequence (-F / N) as in the paper. Neither they nor the test after each pass count as
training time. The paper tuned its rates by hand; ours are found by calibration (`eta0: "auto"`), whose time counts.
"""

import argparse
from pathlib import Path
from typing import Any

from benchmarks import common, learners
from core import warm
from core.corpus.corpus import Corpus
from core.learn.loop import TrainResult

#: The paper's row: passes, objective a sequence, active features, F1.
PAPER = {
    "OWL-QN": (160, -1.583, 18_109, 93.62),
    "SGD-L1 (naive)": (30, -1.671, 455_651, 93.64),
    "SGD-L1 (clipping)": (30, -1.671, 87_792, 93.65),
    "SGD-L1 (cumulative)": (30, -1.653, 28_189, 93.68),
    "SGD-L1 (cumulative + exponential decay)": (30, -1.622, 23_584, 93.66),
}


def trainers(l1: float, passes: int) -> dict[str, dict[str, Any]]:
    """The rows of the table as trainer specs."""

    def sgd(penalty: str, schedule: str) -> dict[str, Any]:
        return {
            "kind": "sgd-l1",
            "l1": l1,
            "passes": passes,
            "penalty": penalty,
            "schedule": {"kind": schedule},
        }

    specs = (
        {"kind": "owlqn", "l1": l1, "tolerance": 1e-4},
        sgd("naive", "inverse"),
        sgd("clipping", "inverse"),
        sgd("cumulative", "inverse"),
        sgd("cumulative", "exponential"),
    )
    return dict(zip(PAPER, specs, strict=True))


def row(result: TrainResult, sentences: int) -> dict[str, Any]:
    return {
        "passes": result.passes,
        "objective": round(result.objective, 2),
        "objective_per_sequence": round(-result.objective / sentences, 4),
        "active_features": result.active_features,
        "seconds": round(result.train_seconds, 2),
        "f1": round(result.metrics["dev"]["f1"], 2),
    }


def verdict(table: dict[str, dict[str, Any]]) -> dict[str, bool]:
    """The order of the paper, as the bar demands it."""
    owlqn, naive, clipping, cumulative, exponential = table.values()
    scores = [row["f1"] for row in table.values()]
    return {
        "cumulative's active features within 2 times OWL-QN's": cumulative["active_features"]
        <= 2 * owlqn["active_features"],
        "with exponential decay too": exponential["active_features"] <= 2 * owlqn["active_features"],
        "clipping's well above (at least 1.5 times cumulative's)": clipping["active_features"]
        >= 1.5 * cumulative["active_features"],
        "naive's above clipping's": naive["active_features"] > clipping["active_features"],
        "F1 within 0.3 of each other": max(scores) - min(scores) <= 0.3,
        "F1 at least 93.5": min(scores) >= 93.5,
    }


def measure(train: Corpus, test: Corpus, l1: float, passes: int) -> dict[str, Any]:
    table, curves = {}, {}
    for name, spec in trainers(l1, passes).items():
        result = learners.trained(spec, learners.CHUNKING, train, test)
        table[name] = row(result, train.sentences)
        curves[name] = learners.points(result)
        print(f"{name:42}", table[name], flush=True)
    return {"l1": l1, "table": table, "verdict": verdict(table), "paper": PAPER, "curves": curves}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--passes", type=int, default=30, help="passes of the SGD rows")
    parser.add_argument("--l1", type=float, default=0.5)
    options = parser.parse_args()
    warm.training()
    train, test = learners.conll2000(options.data)
    result = measure(train, test, options.l1, options.passes)
    for what, holds in result["verdict"].items():
        print("pass" if holds else "FAIL", what)
    learners.draw_all(
        [learners.Curve(name, points) for name, points in result["curves"].items()],
        f"CoNLL-2000 chunking, L1 = {options.l1:g}, 1 thread",
        common.RESULTS / "tsuruoka.png",
    )
    common.record("tsuruoka", result)


if __name__ == "__main__":
    main()
