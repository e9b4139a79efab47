"""L-BFGS and OWL-QN compared with `lbfgs` of python-crfsuite on CoNLL-2000: objectives, and seconds per iteration.

    python -m benchmarks.quasi_newton --data ../shared/data [--part iterations] [--rounds 7] [--long]

Same text, same templates, the same 456,468 features (pairs seen in the data), contenders alternated in one run.

- optimum: L2 (c2 = 1, ours l2 = 2) and L1 (c1 = l1 = 0.5). crfsuite stops by its default rule, a relative change of F
  below 1e-5 over 10 iterations. Ours continues until its objective is as low as the final one of crfsuite and the same
  rule is met, which is a tolerance of 1e-6 per iteration here. The iteration at which the rule alone would have
  stopped is also reported. `--long` runs both until they no longer change. Seconds of crfsuite are those of its
  iterations; ours include creating the parameters.
- iterations: blocks of 25 iterations from zero, L1. The time of a block is its median iteration, by the same clock.
  The ratio is the median over the rounds of the ratio within a round. With one thread also by processor time, which a
  busy machine disturbs less.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import common, crfsuite, learners
from tagsmith.core.learn.problem.problem import Problem, compile_corpus
from tagsmith.core.learn.trainers.batch.lbfgs import LbfgsSpec
from tagsmith.core.learn.trainers.batch.owlqn import OwlqnSpec
from tagsmith.core.learn.trainers.batch.quasi_newton import PERIOD
from tagsmith.core.pipeline import warm

BLOCK = 25
L1 = {"c1": 0.5, "c2": 0.0}
L2 = {"c1": 0.0, "c2": 1.0}
#: crfsuite's default: relative change over ten iterations.
DEFAULT = {"delta": 1e-5, "epsilon": 1e-5, "period": 10, "max_iterations": 100_000}
LONG = {"delta": 1e-7, "epsilon": 1e-7, "period": 10, "max_iterations": 3000}
BARS = {"one_thread": 2.5, "two_threads": 4.0, "same_objective": 3.0, "objective": 1e-5}


def ours(
    problem: Problem,
    spec: LbfgsSpec | OwlqnSpec,
    threads: int,
    tolerance: float = 0.0,
    target: float = -1.0,
) -> list[dict[str, Any]]:
    """Return the curve of a run from zero, until its passes are done or the rule and `target` are reached."""
    began, last, used = time.perf_counter(), time.perf_counter(), time.process_time()
    trainer = spec.make(threads)
    state = trainer.start(problem)
    out: list[dict[str, Any]] = []
    for report in trainer.passes(problem, state, 1):
        if not report.pass_done:
            continue
        now = time.perf_counter()
        out.append(
            {
                "pass": report.pass_number,
                "seconds": now - began,
                "took": now - last,
                "processor": time.process_time() - used,
                "objective": report.objective,
                "active_features": int((state["w"] != 0).sum()),
            }
        )
        last, used = time.perf_counter(), time.process_time()
        if report.pass_number == spec.passes or (
            out[-1]["objective"] <= target and _stop(out, tolerance) < len(out)
        ):
            break
    return out


def _stop(curve: list[dict[str, Any]], tolerance: float) -> int:
    """Return the iteration at which the rule of Andrew and Gao ends a run."""
    values = [point["objective"] for point in curve]
    for i in range(PERIOD, len(values)):
        if (values[i - PERIOD] - values[i]) / PERIOD < tolerance * values[i]:
            return i + 1
    return len(values)


def measure_optimum(
    problem: Problem, peer: crfsuite.Peer, tolerance: float, rule: dict[str, Any], rounds: int = 1
) -> dict[str, Any]:
    """Final objectives by the same stop rule, and the time until ours reaches their final one."""
    out: dict[str, Any] = {}
    for name, params, spec in (
        ("l1", L1, OwlqnSpec(l1=L1["c1"], tolerance=0.0, passes=3000)),
        ("l2", L2, LbfgsSpec(l2=2 * L2["c2"], tolerance=0.0, passes=3000)),
    ):
        faster, by_processor = [], []
        for _ in range(rounds):
            theirs = peer.run("lbfgs", {**params, **rule})
            target = min(point["objective"] for point in theirs)
            whole = ours(problem, spec, 1, tolerance, target)
            mine = whole[: _stop(whole, tolerance)]
            reached = next((point for point in whole if point["objective"] <= target), None)
            faster.append(theirs[-1]["seconds"] / reached["seconds"] if reached else 0.0)
            used = _processor(whole[: reached["pass"]]) if reached else float("inf")
            by_processor.append(_processor(theirs) / used)
        relative = whole[-1]["objective"] / target - 1.0
        out[name] = {
            "python-crfsuite": _end(theirs),
            "tagsmith, by the same rule": _end(mine),
            "tagsmith, to its end": _end(whole),
            "tagsmith, as low as python-crfsuite": reached and _end(whole[: reached["pass"]]),
            "relative_difference": relative,
            "times_faster_to_the_same_objective": [round(times, 2) for times in faster],
            "times_faster_by_processor_time": [round(times, 2) for times in by_processor],
            "passed": {
                "objective": relative <= BARS["objective"],
                "time": median(faster) >= BARS["same_objective"],
            },
            "curves": {"python-crfsuite": _thin(theirs), "tagsmith": _thin(whole)},
        }
        print(name, {key: value for key, value in out[name].items() if key != "curves"}, flush=True)
    return out


def _processor(curve: list[dict[str, Any]]) -> float:
    """Return processor time, which a busy machine disturbs less."""
    return float(sum(point["processor"] for point in curve))


def _end(curve: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "iterations": len(curve),
        "objective": round(curve[-1]["objective"], 4),
        "seconds": round(curve[-1]["seconds"], 2),
        "processor_seconds": round(_processor(curve), 2),
        "active_features": curve[-1]["active_features"],
    }


def _thin(curve: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "pass": point["pass"],
            "seconds": round(point["seconds"], 3),
            "objective": round(point["objective"], 2),
            "active_features": point["active_features"],
        }
        for point in curve
    ]


def measure_iterations(problem: Problem, peer: crfsuite.Peer, rounds: int) -> dict[str, Any]:
    """Seconds of the median iteration of a block, contenders alternated."""
    spec = OwlqnSpec(l1=L1["c1"], tolerance=0.0, passes=BLOCK)
    processor: dict[str, list[float]] = {"tagsmith, 1 thread": [], "python-crfsuite": []}

    def block(curve: list[dict[str, Any]], name: str) -> float:
        if name in processor:
            processor[name].append(median(point["processor"] for point in curve))
        return median(point["took"] for point in curve)

    contenders = {
        "tagsmith, 1 thread": lambda: block(ours(problem, spec, 1), "tagsmith, 1 thread"),
        "tagsmith, 2 threads": lambda: block(ours(problem, spec, 2), "tagsmith, 2 threads"),
        "python-crfsuite": lambda: block(
            peer.run("lbfgs", {**L1, **DEFAULT, "max_iterations": BLOCK}), "python-crfsuite"
        ),
    }
    seconds = common.alternate(contenders, rounds)
    one, two, theirs = seconds.values()
    by_one = _times(theirs, one)
    by_two = _times(theirs, two)
    return {
        "block": BLOCK,
        "seconds": _listed(seconds),
        "processor_seconds": _listed(processor),
        "times_faster_on_1_thread": by_one,
        "times_faster_on_1_thread_by_processor_time": _times(
            processor["python-crfsuite"], processor["tagsmith, 1 thread"]
        ),
        "times_faster_on_2_threads": by_two,
        "passed": {"1 thread": by_one >= BARS["one_thread"], "2 threads": by_two >= BARS["two_threads"]},
    }


def _times(theirs: list[float], mine: list[float]) -> float:
    """The median of the ratios within a round."""
    return round(median(t / m for t, m in zip(theirs, mine, strict=True)), 2)


def _listed(seconds: dict[str, list[float]]) -> dict[str, Any]:
    return {
        name: {"median": round(median(values), 4), "all": [round(value, 4) for value in values]}
        for name, values in seconds.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--rounds", type=int, default=7, help="blocks of iterations a contender")
    parser.add_argument("--whole", type=int, default=1, help="runs to the end a contender")
    parser.add_argument(
        "--part", choices=("both", "iterations", "optimum"), default="both", help="keep the other part"
    )
    parser.add_argument("--long", action="store_true", help="also run both until they stand still")
    options = parser.parse_args()
    warm.training()
    raw = common.read(options.data / "conll2000" / "train.txt")
    train = learners.corpus(raw)
    problem = compile_corpus(learners.CHUNKING.resolve(len(train.columns)), train).problem
    result = common.recorded("quasi_newton")
    with tempfile.TemporaryDirectory() as folder:
        peer = crfsuite.Peer(raw, Path(folder) / "model")
        if options.part in ("both", "iterations"):
            ours(problem, OwlqnSpec(passes=3), 2)
            before = common.moment()
            result["iterations"] = {"measured": before, **measure_iterations(problem, peer, options.rounds)}
            result["iterations"]["load_average_after"] = common.moment()["load_average"]
            common.record("quasi_newton", result)
            print(result["iterations"], flush=True)
        if options.part in ("both", "optimum"):
            before = common.moment()
            result["optimum"] = {
                "measured": before,
                **measure_optimum(problem, peer, 1e-6, DEFAULT, options.whole),
            }
            common.record("quasi_newton", result)
            draw(result["optimum"])
        if options.long:
            result["optimum_long"] = {
                "measured": common.moment(),
                **measure_optimum(problem, peer, 1e-8, LONG),
            }
            common.record("quasi_newton", result)


def draw(optimum: dict[str, Any]) -> None:
    """The curves of both contenders."""
    for name, penalty in (("l1", "L1, c1 = 0.5"), ("l2", "L2, c2 = 1")):
        curves = optimum[name]["curves"]
        if name == "l2":  # crfsuite reports no count here: every weight is active
            curves = {
                who: [{**p, "active_features": 456_468} for p in curve] for who, curve in curves.items()
            }
        learners.draw_all(
            [learners.Curve(who, curve) for who, curve in curves.items()],
            f"CoNLL-2000 chunking, {penalty}: L-BFGS / OWL-QN, 1 thread",
            common.RESULTS / f"quasi_newton_{name}.png",
        )


if __name__ == "__main__":
    main()
