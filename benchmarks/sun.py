"""Base NP chunking of Sun, Li, Wang and Lu (2014): ADF, SGD, perceptrons and L-BFGS after 1, 5 and 10 passes.

    python -m benchmarks.sun --data ../shared/data

CoNLL-2000 with its labels reduced to base NPs (B-NP, I-NP, O), the templates of Table 3 of the paper and label
bigrams, all pairs of attribute and label. The paper also joins every template with the label pair ("rich edges"),
which this benchmark omits (see `rich_edges`), so its figures are of a richer model. Penalties are those of the paper
(4.5): sigma 5 for ADF, 1 for SGD and L-BFGS.

The rates of ADF and SGD are chosen as c in the paper, by 4-fold cross-validation on the training set. Both use the same
list, which contains the four values of the paper. The choice is by F1 after the first pass for the figures of one pass,
and after the tenth for the others. SGD uses the exponential schedule, as in the paper. One thread; F1 is that of the
test set. The same runs are repeated with automatic rates (`"auto"`).
"""

import argparse
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib import pyplot as plt

from benchmarks import common, crfsuite, learners
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.pipeline import warm

PASSES, FOLDS = 10, 4
AT = (1, 5, 10)
#: The paper's four values of c, and larger ones.
RATES = (0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
#: The paper's Table 4: F1 at convergence, and the passes it took; with rich edges.
PAPER = {
    "L-BFGS": (94.33, 105),
    "SGD": (94.26, 56),
    "Perc": (93.48, 200),
    "Avg-Perc": (94.19, 12),
    "ADF": (94.52, 17),
}
FEATURES = FeatureSpec(
    templates="\n".join(
        [f"U0{i}:%x[{row},0]" for i, row in enumerate(range(-2, 3))]
        + ["U05:%x[-1,0]/%x[0,0]", "U06:%x[0,0]/%x[1,0]"]
        + [f"U1{i}:%x[{row},1]" for i, row in enumerate(range(-1, 2))]
        + [f"U2{i}:%x[{row},1]/%x[{row + 1},1]" for i, row in enumerate(range(-2, 2))]
        + [f"U3{i}:%x[{row},1]/%x[{row + 1},1]/%x[{row + 2},1]" for i, row in enumerate(range(-2, 1))]
        + ["B"]
    )
)


def base_np(raw: bytes) -> Corpus:
    """CoNLL-2000 with O instead of every label that is not of an NP."""
    lines = []
    for sentence in crfsuite.sentences(raw):
        lines += [f"{word} {tag} {label if label.endswith('-NP') else 'O'}" for word, tag, label in sentence]
        lines.append("")
    return learners.corpus(("\n".join(lines) + "\n").encode())


def adf(rate: float | str, passes: int = PASSES) -> dict[str, Any]:
    return {"kind": "adf", "l2": 1 / 25, "c": rate, "passes": passes}


def sgd(rate: float | str, passes: int = PASSES) -> dict[str, Any]:
    return {"kind": "sgd", "l2": 1.0, "passes": passes, "schedule": {"kind": "exponential", "eta0": rate}}


RATED = {"ADF": adf, "SGD": sgd}


def scores(trainer: dict[str, Any], train: Corpus, test: Corpus) -> list[dict[str, Any]]:
    """F1 and seconds after each pass."""
    result = learners.trained(trainer, FEATURES, train, test, objective="estimate")
    return [
        {"pass": p["pass"], "score": round(p["dev_score"], 2), "seconds": round(p["seconds"], 3)}
        for p in result.curve
    ]


def cross_validated(train: Corpus) -> dict[str, Any]:
    """Mean F1 over the folds after each pass for each rate, and the best rates after one and after ten passes."""
    parts = list(learners.folds(train, FOLDS))
    out: dict[str, Any] = {}
    for name, spec in RATED.items():
        means: dict[float, list[float]] = {}
        for rate in RATES:
            curves = [[point["score"] for point in scores(spec(rate), *part)] for part in parts]
            means[rate] = [round(mean(each), 3) for each in zip(*curves, strict=True)]
            print(
                f"{name} rate {rate:g}: {means[rate][0]} after one pass, {means[rate][-1]} after {PASSES}",
                flush=True,
            )
        chosen = {str(at): max(means, key=lambda rate, at=at: means[rate][at - 1]) for at in (1, PASSES)}
        out[name] = {"chosen": chosen, "f1_by_rate": means}
    return out


def measure(train: Corpus, test: Corpus) -> dict[str, Any]:
    rates = cross_validated(train)
    curves: dict[str, Any] = {}
    for name, spec in RATED.items():
        chosen = rates[name]["chosen"]
        curves[f"{name}, rate tuned for 1 pass"] = scores(spec(chosen["1"]), train, test)
        curves[f"{name}, rate tuned for 10 passes"] = scores(spec(chosen[str(PASSES)]), train, test)
        curves[f"{name}, automatic rate"] = scores(spec("auto"), train, test)
        # Calibration depends on the number of passes, so a run of one pass gets a different rate.
        curves[f"{name}, automatic rate, run of 1 pass"] = scores(spec("auto", 1), train, test)
    curves["Avg-Perc"] = scores({"kind": "averaged-perceptron", "passes": PASSES}, train, test)
    curves["Perc"] = scores({"kind": "perceptron", "passes": PASSES}, train, test)
    for kind in ("madf", "asgd"):
        curves[f"{kind.upper()}, automatic rate"] = scores({"kind": kind, "passes": PASSES}, train, test)
        curves[f"{kind.upper()}, automatic rate, run of 1 pass"] = scores(
            {"kind": kind, "passes": 1}, train, test
        )
    lbfgs = scores({"kind": "lbfgs", "l2": 1.0, "passes": 200}, train, test)
    table = {
        name: {str(at): points[at - 1]["score"] for at in AT if at <= len(points)}
        for name, points in curves.items()
    }
    for name, row in table.items():
        print(f"{name:26}", row, flush=True)
    ahead = {
        f"ADF ahead of {other} after one pass": table["ADF, rate tuned for 1 pass"]["1"] > table[key]["1"]
        for other, key in (("SGD", "SGD, rate tuned for 1 pass"), ("the averaged perceptron", "Avg-Perc"))
    }
    ahead["so with automatic rates, against SGD"] = (
        table["ADF, automatic rate, run of 1 pass"]["1"] > table["SGD, automatic rate, run of 1 pass"]["1"]
    )
    end = {"L-BFGS": {"passes": len(lbfgs), "f1": lbfgs[-1]["score"]}}
    return {"rates": rates, "table": table, "converged": end, "verdict": ahead, "curves": curves}


def draw(curves: dict[str, Any], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8.5, 6), constrained_layout=True)
    lines = [learners.Curve(name, points) for name, points in curves.items() if len(points) > 1]
    learners.draw(axes, lines, "pass", "score")
    for line in axes.get_lines():
        line.set_marker("o")
        line.set_markersize(3)
    ends = [curve.points[-1]["score"] for curve in lines]
    axes.set_ylim(min(ends) - 2.0, max(ends) + 0.3)
    axes.set_xlabel("passes")
    axes.set_ylabel("F1 on the test set")
    axes.set_title("Base NPs of CoNLL-2000, templates of Sun et al. without rich edges", fontsize=10)
    axes.legend(fontsize=8, loc="lower right")
    learners.save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    options = parser.parse_args()
    warm.training()
    train, test = (
        base_np(common.read(options.data / "conll2000" / f"{part}.txt")) for part in ("train", "test")
    )
    moment = common.moment()
    result = {"paper": PAPER, "measured": moment, **measure(train, test)}
    for what, holds in result["verdict"].items():
        print("pass" if holds else "FAIL", what)
    common.record("sun", result)
    draw(result["curves"], common.RESULTS / "sun.png")


if __name__ == "__main__":
    main()
