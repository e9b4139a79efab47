"""Table 1 of Tsuruoka, Tsujii and Ananiadou (2009) on CoNLL-2000: L1 by OWL-QN and by four kinds of SGD.

    python -m benchmarks.tsuruoka --data ../shared/data [--part tuned]

All have the same features (CRF++'s templates, pairs seen in the data) and the same l1, and use one thread. Objectives
are exact, over the whole training set, and given per sequence (-F / N) as in the paper. Computing them and testing
after each pass is not in the training time.

- tuned: as in the paper, without use of the test set. l1 is the value with which OWL-QN gives 1,000 held-out sentences
  of the training set the highest likelihood. Then, for each kind of SGD, eta0 is the value of {1, 0.5, 0.2, 0.1} with
  the lowest objective after the last pass. The naive row uses that of clipping, which has the same curve.
- untuned: l1 0.5, the default, and rates found by calibration (`eta0: "auto"`), whose time is included.
"""

import argparse
from pathlib import Path
from typing import Any

from benchmarks import common, learners
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.trainers.batch.owlqn import OwlqnSpec
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.train import TrainResult

#: The row of the paper: passes, objective per sequence, active features, F1.
PAPER = {
    "OWL-QN": (160, -1.583, 18_109, 93.62),
    "SGD-L1 (naive)": (30, -1.671, 455_651, 93.64),
    "SGD-L1 (clipping)": (30, -1.671, 87_792, 93.65),
    "SGD-L1 (cumulative)": (30, -1.653, 28_189, 93.68),
    "SGD-L1 (cumulative + exponential decay)": (30, -1.622, 23_584, 93.66),
}


#: The values that tuning tries.
ETAS = (1.0, 0.5, 0.2, 0.1)
STRENGTHS = (0.3, 0.5, 0.7, 1.0, 1.4, 2.0)
HELD_OUT = 1000

PARTS = ("tuned", "untuned")


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
    """Check that the order is that of the paper, which is the target."""
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


def held_out_loss(train: Corpus, l1: float) -> float:
    """Return -log p per held-out sentence, trained by OWL-QN on the others."""
    others, held_out = train.split(HELD_OUT / train.sentences, 1)
    compiled = compile_corpus(learners.CHUNKING.resolve(len(train.columns)), others)
    trainer = OwlqnSpec(l1=l1).make(1)
    state = trainer.start(compiled.problem)
    for _ in trainer.passes(compiled.problem, state, 1):
        pass
    weights, problem = trainer.weights(compiled.problem, state), compiled.problem_of(held_out)
    if len(problem.labels) > len(compiled.problem.labels):
        raise SystemExit("the held-out sentences have a label that the others lack: no likelihood")
    return sum(weights.loss(problem)) / held_out.sentences


def tuned(train: Corpus, passes: int) -> tuple[float, dict[str, dict[str, Any]], dict[str, Any]]:
    """Return l1, the rows with their rates, and the results by which they were chosen."""
    losses = {l1: held_out_loss(train, l1) for l1 in STRENGTHS}
    print("held-out loss a sentence", losses, flush=True)
    l1 = min(losses, key=lambda strength: losses[strength])
    specs = trainers(l1, passes)
    objectives: dict[str, dict[float, float]] = {}
    for name in list(specs)[2:]:
        objectives[name] = {}
        for eta0 in ETAS:
            specs[name]["schedule"]["eta0"] = eta0
            objectives[name][eta0] = learners.trained(specs[name], learners.CHUNKING, train).objective
        specs[name]["schedule"]["eta0"] = min(objectives[name], key=lambda eta0: objectives[name][eta0])
        print(name, objectives[name], flush=True)
    naive, clipping = list(specs)[1:3]
    specs[naive]["schedule"]["eta0"] = specs[clipping]["schedule"]["eta0"]
    return l1, specs, {"held_out_loss": losses, "objective_by_eta0": objectives}


def measure(train: Corpus, test: Corpus, part: str, passes: int) -> dict[str, Any]:
    l1, choice = 0.5, {}
    specs = trainers(l1, passes)
    if part == "tuned":
        l1, specs, choice = tuned(train, passes)
    table, curves = {}, {}
    for name, spec in specs.items():
        result = learners.trained(spec, learners.CHUNKING, train, test)
        table[name] = row(result, train.sentences) | {"eta0": spec.get("schedule", {}).get("eta0", "auto")}
        curves[name] = learners.points(result)
        print(f"{name:42}", table[name], flush=True)
    checks = verdict(table)
    for what, holds in checks.items():
        print("pass" if holds else "FAIL", what)
    learners.draw_all(
        [learners.Curve(name, points) for name, points in curves.items()],
        f"CoNLL-2000 chunking, L1 = {l1:g}, {part}, 1 thread",
        common.RESULTS / f"tsuruoka_{part}.png",
    )
    measured = {"l1": l1, "table": table, "verdict": checks, "curves": curves} | choice
    return measured | {"measured": common.moment()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--passes", type=int, default=30, help="passes of the SGD rows")
    parser.add_argument("--part", choices=("both", *PARTS), default="both", help="keep the other part")
    options = parser.parse_args()
    warm.training()
    train, test = learners.conll2000(options.data)
    for part in PARTS if options.part == "both" else (options.part,):
        measured = measure(train, test, part, options.passes)
        common.record("tsuruoka", common.recorded("tsuruoka") | {"paper": PAPER, part: measured})


if __name__ == "__main__":
    main()
