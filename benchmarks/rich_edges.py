"""Rich edges on JNLPBA 2004: every template also joined with the label pair (Sun, Li, Wang and Lu 2014, section 4.1).

    python -m benchmarks.rich_edges --data ../shared/data [--part scale | scores]

Tokens, prefixes and suffixes of one to four characters, and shapes, each as a feature of the label and of the label
pair, all pairs. The corpus has no part-of-speech column, which the templates of the paper use. The figures of the paper
are therefore for orientation: the task is not the same.

`scale`: processor seconds per pass on a quarter, a half and all of the corpus, and peak memory. `scores`: F1 on the
test set after each pass, with and without rich edges. Each run has its own process and one thread.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks import common, learners
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.trainers.sizes import sizes_of
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.build import build_model
from tagsmith.core.pipeline.train import train

#: Sun's Table 4 on Bio-NER, 53 million features: F1 at convergence, and the passes it took.
PAPER = {"SGD": (71.79, 91), "Avg-Perc": (70.61, 37), "ADF": (72.25, 35)}
PASSES = 4
SHARES = (0.25, 0.5, 1.0)
WANTED_PARAMETERS = 20_000_000
#: Maximum increase of the cost per token from a quarter of the corpus to all of it that counts as linear. The weights
#: no longer fit in the caches, which is not a property of the algorithm.
LINEAR_WITHIN = 1.5

LINES = (
    *(f"W{row:+d}:%x[{row},0]" for row in range(-2, 3)),
    "WW-:%x[-1,0]/%x[0,0]",
    "WW+:%x[0,0]/%x[1,0]",
    *(f"P{n}:%x[0,prefix{n}]" for n in range(1, 5)),
    *(f"S{n}:%x[0,suffix{n}]" for n in range(1, 5)),
    *(f"H{row:+d}:%x[{row},shape]" for row in range(-1, 2)),
    "HH:%x[-1,collapsed]/%x[0,collapsed]/%x[1,collapsed]",
)
DERIVED = {
    **{f"{kind}{n}": {"kind": kind, "n": n} for kind in ("prefix", "suffix") for n in range(1, 5)},
    "shape": {"kind": "shape"},
    "collapsed": {"kind": "collapsed-shape"},
}
#: Automatic rates, and fewer passes than in the paper.
TRAINERS = {
    "Avg-Perc": {"kind": "averaged-perceptron", "passes": 8},
    "ADF": {"kind": "adf", "l2": 1 / 25, "passes": 8},
    "SGD": {"kind": "sgd", "l2": 1.0, "passes": 8},
}


def features(rich: bool, pairs: str = "all") -> FeatureSpec:
    lines = ["U" + line for line in LINES] + ["B"] + ["B" + line for line in LINES if rich]
    return FeatureSpec.model_validate({"templates": "\n".join(lines), "derived": DERIVED, "pairs": pairs})


def jnlpba(data: Path) -> tuple[Corpus, Corpus]:
    """Training and test part."""
    folder = data / "jnlpba2004"
    return tuple(  # type: ignore[return-value]
        learners.corpus(common.read(folder / f"{name}.iob2")) for name in ("Genia4ERtask1", "Genia4EReval1")
    )


def run(
    data: Path, trainer: dict[str, Any], share: float, rich: bool, pairs: str, scored: bool
) -> dict[str, Any]:
    """One run, in its own process."""
    spec = _spec(trainer, rich, pairs, scored)
    warm.trainer(spec.trainer)
    whole, test = jnlpba(data)
    corpus = whole.subset(range(round(share * whole.sentences))) if share < 1 else whole
    measured = scored_run(spec, corpus, test) if scored else timed_run(spec, corpus)
    return {
        "sentences": corpus.sentences,
        "tokens": corpus.tokens,
        **measured,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "measured": common.moment(),
    }


def timed_run(spec: TrainSpec, corpus: Corpus) -> dict[str, Any]:
    """Passes of the trainer alone, in seconds and in processor seconds, and the model they end in."""
    compiled = compile_corpus(spec.features.resolve(len(corpus.columns)), corpus)
    trainer = spec.trainer.make(1)
    state = trainer.start(compiled.problem)
    wall, processor = [], []
    began = (perf_counter(), process_time())
    for report in trainer.passes(compiled.problem, state, 1):
        if report.pass_done:
            now = (perf_counter(), process_time())
            wall.append(now[0] - began[0])
            processor.append(now[1] - began[1])
            began = now
            if report.pass_number == spec.trainer.passes:
                break
    model = build_model(compiled, trainer.weights(compiled.problem, state))
    # Without the first pass, which touches its memory for the first time.
    return {
        "edge_attributes": compiled.problem.edge_attributes,
        "parameters": sizes_of(compiled.problem).parameters,
        "active_features": model.active_features,
        "seconds_a_pass": round(median(wall[1:]), 3),
        "processor_seconds_a_pass": round(median(processor[1:]), 3),
        "processor_microseconds_a_token": round(1e6 * median(processor[1:]) / corpus.tokens, 3),
    }


def scored_run(spec: TrainSpec, corpus: Corpus, test: Corpus) -> dict[str, Any]:
    """A job, with F1 on the test set after each pass."""
    result = finished(train(spec, corpus, test))
    return {
        "active_features": result.active_features,
        "train_seconds": round(result.train_seconds, 1),
        "f1": [round(point["dev_score"], 2) for point in result.curve],
    }


def _spec(trainer: dict[str, Any], rich: bool, pairs: str, scored: bool) -> TrainSpec:
    return TrainSpec.model_validate(
        {
            "kind": "train",
            "model": "benchmark",
            "corpus": "crp_benchmark",
            "dev": {"corpus": "crp_test"} if scored else None,
            "features": features(rich, pairs),
            "trainer": trainer,
            "objective": "estimate",
        }
    )


def apart(data: Path, **what: Any) -> dict[str, Any]:
    """Call `run` in a new process."""
    command = [sys.executable, "-m", "benchmarks.rich_edges", "--data", str(data), "--run", json.dumps(what)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(what), json.dumps({key: found[key] for key in found if key != "measured"}), flush=True)
    return found


def scale(data: Path) -> dict[str, Any]:
    """Seconds per pass by corpus size."""
    fixed = {"kind": "sgd", "passes": PASSES, "schedule": {"eta0": 0.1}}
    plain = {"rich": False, "pairs": "all", "scored": False}
    out: dict[str, Any] = {
        str(share): apart(data, trainer=fixed, share=share, **{**plain, "rich": True}) for share in SHARES
    }
    out["without rich edges"] = apart(data, trainer=fixed, share=1.0, **plain)
    least, most = (out[str(share)]["processor_microseconds_a_token"] for share in (SHARES[0], SHARES[-1]))
    out["cost_a_token_at_1_against_1/4"] = round(most / least, 2)
    return out


def scores(data: Path, result: dict[str, Any]) -> None:
    """F1 after each pass, recorded run by run."""
    found = result.setdefault("scores", {})
    for name, trainer in TRAINERS.items():
        for rich in (True, False):
            kind = "rich edges" if rich else "label bigrams alone"
            found[f"{name}, {kind}"] = apart(
                data, trainer=trainer, share=1.0, rich=rich, pairs="all", scored=True
            )
            common.record("rich_edges", result)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--part", choices=["scale", "scores"], help="only this; the other stays as recorded")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.data, **json.loads(options.run))))
        return
    result = {**common.recorded("rich_edges"), "paper": PAPER}
    if options.part != "scores":
        result["scale"] = scale(options.data)
        common.record("rich_edges", result)
    if options.part != "scale":
        scores(options.data, result)
    whole = result["scale"]["1.0"]
    result["verdict"] = {
        "more than 20 million parameters": whole["parameters"] > WANTED_PARAMETERS,
        "cost a token of all within 1.5 times that of a quarter": result["scale"][
            "cost_a_token_at_1_against_1/4"
        ]
        < LINEAR_WITHIN,
    }
    for what, holds in result["verdict"].items():
        print("pass" if holds else "FAIL", what)
    common.record("rich_edges", result)


if __name__ == "__main__":
    main()
