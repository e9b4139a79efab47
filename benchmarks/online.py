"""Online learners compared with those of python-crfsuite on CoNLL-2000: seconds per pass, and F1 after ten passes.

    python -m benchmarks.online --data ../shared/data [--part scores] [--rounds 5]

Same text, same templates, the same 456,468 features (pairs seen in the data), one thread each.

- passes: blocks of five passes from zero, contenders alternated in one run. The time of a block is its median pass, by
  the same clock. `times_ours` is the median over the rounds of the ratio within a round. The search for the initial
  rate and reading the weights are not counted. The learners differ: `pa` and `arow` of python-crfsuite update only on
  sentences with wrong labels, ours on all that violate the margin, so ours makes more updates. Our `pa` with `update:
  "prediction"` makes the same updates as theirs.
- scores: every online learner of both, with defaults except for ten passes, on the test set.
- switch: when `asgd` should start to average. F1 on a fifth of the training set, trained on the rest, for runs of
  several lengths, with `sgd` for comparison. The test set is not used.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import pycrfsuite

from benchmarks import common, crfsuite, learners
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.pipeline import warm

PASSES, BLOCK = 10, 5
BAR = 4.0
#: Run lengths, and shares of a run before averaging, that `switch` tries.
RUNS, SWITCHES = (1, 5, 10, 20), (0.25, 0.5, 0.75)
#: Our learners, each with the algorithm and parameters of python-crfsuite.
PAIRS: tuple[tuple[dict[str, Any], str, dict[str, Any]], ...] = (
    ({"kind": "averaged-perceptron"}, "ap", {}),
    ({"kind": "pa"}, "pa", {}),
    ({"kind": "pa", "update": "prediction"}, "pa", {}),
    ({"kind": "arow"}, "arow", {}),
    ({"kind": "sgd"}, "l2sgd", {"period": PASSES + 1}),
)
LEARNERS: tuple[dict[str, Any], ...] = (
    {"kind": "perceptron"},
    {"kind": "averaged-perceptron"},
    {"kind": "pa"},
    {"kind": "pa", "variant": "II"},
    {"kind": "pa", "update": "prediction"},
    {"kind": "mira"},
    {"kind": "dca"},
    {"kind": "dca", "loss": "svm"},
    {"kind": "cw"},
    {"kind": "arow"},
    {"kind": "sgd"},
    {"kind": "asgd"},
    {"kind": "adf"},
    {"kind": "madf"},
)


def name_of(trainer: dict[str, Any]) -> str:
    return " ".join(str(value) for value in trainer.values())


def pass_seconds(problem: Problem, trainer_spec: dict[str, Any]) -> list[float]:
    """Seconds of each pass of a block from zero."""
    spec = TrainSpec.model_validate(
        {"kind": "train", "model": "m", "corpus": "crp_a", "trainer": {**trainer_spec, "passes": PASSES}}
    )
    trainer = spec.trainer.make(1)
    state = trainer.start(problem)
    out: list[float] = []
    began = time.perf_counter()
    for report in trainer.passes(problem, state, 1):
        now = time.perf_counter()
        if report.phase == "calibrate":
            began = now
        if report.pass_done:
            out.append(now - began)
            began = now
            if report.pass_number == BLOCK:
                break
    return out


def measure_passes(problem: Problem, peer: crfsuite.Peer, rounds: int) -> dict[str, Any]:
    """Measure each learner and its peer, alternated."""
    out: dict[str, Any] = {}
    for trainer, algorithm, params in PAIRS:
        pass_seconds(problem, trainer)  # loads kernels and pages

        def ours(trainer: dict[str, Any] = trainer) -> float:
            return median(pass_seconds(problem, trainer))

        def theirs(algorithm: str = algorithm, params: dict[str, Any] = params) -> float:
            return median(p["took"] for p in peer.run(algorithm, {"max_iterations": BLOCK, **params}))

        seconds = common.alternate({"tagsmith": ours, "python-crfsuite": theirs}, rounds)
        made = common.summary(seconds, "tagsmith")
        times = made["python-crfsuite"]["times_ours"]
        name = name_of(trainer)
        out[name] = {"peer": algorithm, **made, "times_faster": times, "passed": times >= BAR}
        print(f"{name:20} {made['tagsmith']['seconds_median']:.4f} s, {times} times faster", flush=True)
    return out


def scores(train: Corpus, test: Corpus, peer: crfsuite.Peer, raw_test: bytes) -> dict[str, Any]:
    """F1 on the test set after ten passes: ours and the peer's."""
    out: dict[str, Any] = {"tagsmith": {}, "python-crfsuite": {}}
    for trainer in LEARNERS:
        result = learners.trained({**trainer, "passes": PASSES}, learners.CHUNKING, train, test)
        name = name_of(trainer)
        out["tagsmith"][name] = {
            "f1": round(result.metrics["dev"]["f1"], 2),
            "seconds": round(result.train_seconds, 2),
            "active_features": result.active_features,
            "f1_by_pass": [round(point["dev_score"], 2) for point in result.curve],
        }
        print(f"{name:20}", out["tagsmith"][name], flush=True)
    for algorithm, params in {algorithm: params for _, algorithm, params in PAIRS}.items():
        peer.run(algorithm, {"max_iterations": PASSES, **params})
        out["python-crfsuite"][algorithm] = {"f1": _peer_f1(peer.model, test, raw_test)}
        print(f"python-crfsuite {algorithm}", out["python-crfsuite"][algorithm], flush=True)
    return out


def measure_switch(train: Corpus) -> dict[str, Any]:
    """F1 on held-out sentences, by number of passes and by the share before averaging."""
    others, held_out = train.split(0.2, 1)
    out: dict[str, Any] = {}
    for passes in RUNS:
        specs: dict[str, dict[str, Any]] = {
            "sgd": {"kind": "sgd"},
            "asgd after one pass": {"start": 1.0},
        }
        specs |= {f"asgd after {part:g} of the passes": {"start": part * passes} for part in SWITCHES}
        if passes == 1:
            del specs["asgd after one pass"]
        out[str(passes)] = {}
        for name, own in specs.items():
            spec = {"kind": "asgd", "passes": passes, **own}
            result = learners.trained(spec, learners.CHUNKING, others, held_out, objective="estimate")
            out[str(passes)][name] = round(result.metrics["dev"]["f1"], 2)
        print(passes, out[str(passes)], flush=True)
    return out


def _peer_f1(model: Path, test: Corpus, raw_test: bytes) -> float:
    tagger, parsed = pycrfsuite.Tagger(), crfsuite.templates()
    tagger.open(str(model))
    found = [tagger.tag(crfsuite.expand(sentence, parsed)) for sentence in crfsuite.sentences(raw_test)]
    return round(learners.score(test, found).f1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--part", choices=("all", "passes", "scores", "switch"), default="all", help="keep the other parts"
    )
    options = parser.parse_args()
    warm.training()
    train, test = learners.conll2000(options.data)
    raw, raw_test = (common.read(options.data / "conll2000" / f"{part}.txt") for part in ("train", "test"))
    result = common.recorded("online")
    with tempfile.TemporaryDirectory() as folder:
        peer = crfsuite.Peer(raw, Path(folder) / "model")
        if options.part in ("all", "passes"):
            problem = compile_corpus(learners.CHUNKING.resolve(len(train.columns)), train).problem
            result["passes"] = {"measured": common.moment()}
            result["passes"] |= measure_passes(problem, peer, options.rounds)
            common.record("online", result)
        if options.part in ("all", "scores"):
            result["scores"] = {"measured": common.moment(), **scores(train, test, peer, raw_test)}
            common.record("online", result)
        if options.part in ("all", "switch"):
            result["switch"] = {"measured": common.moment(), **measure_switch(train)}
            common.record("online", result)


if __name__ == "__main__":
    main()
