"""Figures 1 and 2 of Zhou, Qiu and Huang (2011): heuristic line search and two-stage training, on two corpora.

    python -m benchmarks.zhou --data ../shared/data [--corpus pku] [--part grid] [--figures-only]

- grid: SGD-L1 (cumulative, exponential schedule) with eta0 in {1, 0.5, 0.1} and alpha in {0.9, 0.85, 0.8}: without
  line search, with ours, and with the published acceptance rule (`sufficient` 0; see the module `line_search`). The
  spread is the largest minus the smallest exact objective after 30 passes. `--figures-only` runs the five settings of
  the paper's figures: three eta0 with alpha 0.85, three alpha with eta0 1.
- two-stage: the time until its objective is within 0.1 % of the final one of OWL-QN (tolerance 1e-4), compared with
  the time of OWL-QN. Runs alternate. Training time includes calibration, but not the objective that is computed after
  each pass of SGD for the figures.

`pku` is word segmentation of the People's Daily, January 1998, with the paper's templates (Table 1): c-1, c0, c1,
c-1c0, c0c1, c-1c1 and label bigrams. Six labels by position in the word (Huang and Zhao 2007): S alone; B first, C
second, D third, I further inside, E last. So words of one to six characters are S, BE, BCE, BCDE, BCDIE, BCDIIE.
Weights exist for pairs seen in the data; the 6 million features of the paper suggest that it used all pairs.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib import pyplot as plt

from benchmarks import common, learners
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.model.file import save
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.train import TrainResult

ETAS, ALPHAS = (1.0, 0.5, 0.1), (0.9, 0.85, 0.8)
#: The fixed values of figure 1 and figure 2.
FIXED_ALPHA, FIXED_ETA = 0.85, 1.0
#: Targets: tolerance around the objective of OWL-QN, and share of its time that two-stage may take.
CLOSE, PART = 1e-3, 0.7
PENALTY = {"conll2000": 0.5, "pku": 1.0}
SEARCHES: dict[str, dict[str, Any]] = {
    "none": {"line_search": "none"},
    "heuristic": {"line_search": "heuristic"},
    "published": {"line_search": "heuristic", "sufficient": 0.0},
}
SEGMENTATION = FeatureSpec(
    templates="""
        U00:%x[-1,0]
        U01:%x[0,0]
        U02:%x[1,0]
        U03:%x[-1,0]/%x[0,0]
        U04:%x[0,0]/%x[1,0]
        U05:%x[-1,0]/%x[1,0]
        B
    """.replace(" ", ""),
    pairs="seen",
)


def six_labels(length: int) -> str:
    """Return the labels of a word with this number of characters."""
    return "S" if length == 1 else ("BCD" + "I" * length)[: length - 1] + "E"


def words_of(line: str) -> list[str]:
    """The words of a line `word/tag  word/tag`; without the brackets around compounds."""
    words = []
    for item in line.split():
        word, slash, _ = item.rpartition("/")
        word = word if slash else item
        words.append(word[1:] if word.startswith("[") and len(word) > 1 else word)
    return words


def segmented(raw: bytes, *, tagged: bool) -> Iterator[list[str]]:
    for line in raw.decode("utf-8-sig").splitlines():
        words = words_of(line) if tagged else line.split()
        if words:
            yield words


def as_conll(sentences: list[list[str]]) -> bytes:
    """Return lines with a character and its label."""
    out = []
    for words in sentences:
        for word in words:
            out += [f"{c} {label}" for c, label in zip(word, six_labels(len(word)), strict=True)]
        out.append("")
    return ("\n".join(out) + "\n").encode()


def word_ends(labels: list[str]) -> set[tuple[int, int]]:
    """Return the words of a sentence as (start, stop). A word ends at S and E, and before B and S."""
    words, start = set(), 0
    for at, label in enumerate(labels):
        if label in "BS" and at > start:
            words.add((start, at))
            start = at
        if label in "ES":
            words.add((start, at + 1))
            start = at + 1
    if start < len(labels):
        words.add((start, len(labels)))
    return words


def word_f1(result: TrainResult, test: list[list[str]]) -> float:
    """F1 of words on the test set."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(result.model, path)
        tags = Tagger.open(path).tag([list("".join(words)) for words in test])
    right = wanted = found = 0
    for words, labels in zip(test, tags, strict=True):
        gold = word_ends([label for word in words for label in six_labels(len(word))])
        cut = word_ends(labels)
        right, wanted, found = right + len(gold & cut), wanted + len(gold), found + len(cut)
    return round(200.0 * right / (wanted + found), 2)


def settings(full: bool) -> list[tuple[float, float]]:
    """All pairs of eta0 and alpha, or those of the two figures."""
    pairs = [(eta0, alpha) for eta0 in ETAS for alpha in ALPHAS]
    return [pair for pair in pairs if full or pair[0] == FIXED_ETA or pair[1] == FIXED_ALPHA]


def measure_grid(
    train: Corpus, features: FeatureSpec, l1: float, passes: int, pairs: list[tuple[float, float]]
) -> Iterator[dict[str, Any]]:
    """Curves of the settings, and the spread of their final objectives, after each setting over those done so far.

    Small rates first: large ones, which the published search may double twice, drive weights apart until chains must
    be done in log space, and then take many times longer.
    """
    curves: dict[str, Any] = {search: {} for search in SEARCHES}
    for eta0, alpha in sorted(pairs):
        for search, kept in curves.items():
            result = learners.trained(
                {
                    "kind": "sgd-l1",
                    "l1": l1,
                    "passes": passes,
                    **SEARCHES[search],
                    "schedule": {"kind": "exponential", "eta0": eta0, "alpha": alpha},
                },
                features,
                train,
            )
            kept[_setting(eta0, alpha)] = learners.points(result)
            end = kept[_setting(eta0, alpha)][-1]
            print(f"eta0 {eta0:g} alpha {alpha:g} line search {search:9}", end, flush=True)
        yield _spreads(curves, passes, len(pairs))


def _spreads(curves: dict[str, Any], passes: int, asked: int) -> dict[str, Any]:
    ends = {search: [curve[-1]["objective"] for curve in kept.values()] for search, kept in curves.items()}
    spread = {search: round(max(values) - min(values), 2) for search, values in ends.items()}
    return {
        "passes": passes,
        "settings_asked": asked,
        "settings_done": list(curves["none"]),
        "best": {search: min(values) for search, values in ends.items()},
        "worst": {search: max(values) for search, values in ends.items()},
        "spread": spread,
        "passed": spread["heuristic"] < spread["none"] and asked == len(curves["none"]),
        "curves": curves,
    }


def _setting(eta0: float, alpha: float) -> str:
    return f"eta0 {eta0:g}, alpha {alpha:g}"


def measure_two_stage(train: Corpus, features: FeatureSpec, l1: float, rounds: int) -> dict[str, Any]:
    """Measure OWL-QN and two-stage, alternated."""
    runs, kept = [], {}
    for _ in range(rounds):
        owlqn = learners.trained({"kind": "owlqn", "l1": l1, "tolerance": 1e-4}, features, train)
        two_stage = learners.trained({"kind": "two-stage", "l1": l1}, features, train)
        target = owlqn.objective * (1 + CLOSE)
        kept = {"OWL-QN": owlqn, "two-stage": two_stage}
        run = {
            "OWL-QN": _end(owlqn, target),
            "two-stage": _end(two_stage, target),
        }
        reached = run["two-stage"]["seconds_to_target"]
        run["part_of_time"] = None if reached is None else round(reached / owlqn.train_seconds, 3)
        print(run, flush=True)
        runs.append(run)
    parts = [run["part_of_time"] for run in runs if run["part_of_time"] is not None]
    part = median(parts) if len(parts) == len(runs) else None
    return {
        "rounds": runs,
        "part_of_time": part,
        "passed": part is not None and part <= PART,
        "curves": {name: learners.points(result) for name, result in kept.items()},
        "results": kept,
    }


def _end(result: TrainResult, target: float) -> dict[str, Any]:
    reached = next((point for point in result.curve if point["objective"] <= target), None)
    return {
        "passes": result.passes,
        "objective": round(result.objective, 2),
        "active_features": result.active_features,
        "seconds": round(result.train_seconds, 2),
        "passes_to_target": reached and reached["pass"],
        "seconds_to_target": reached and round(reached["seconds"], 2),
    }


def draw_figures(name: str, grid: dict[str, Any], path: Path) -> None:
    """Figure 1: fixed alpha, three eta0. Figure 2: fixed eta0, three alpha. Dashed without line search."""
    figure, panels = plt.subplots(1, 2, figsize=(13, 5.5), constrained_layout=True, sharey=True)
    cuts = (
        (f"figure 1: alpha = {FIXED_ALPHA:g}", [(eta0, FIXED_ALPHA) for eta0 in ETAS]),
        (f"figure 2: eta0 = {FIXED_ETA:g}", [(FIXED_ETA, alpha) for alpha in ALPHAS]),
    )
    for axes, (title, pairs) in zip(panels, cuts, strict=True):
        for search, style in (("heuristic", "-"), ("none", "--")):
            axes.set_prop_cycle(None)
            lines = [
                learners.Curve(
                    _setting(*s) + (", HLS" if search == "heuristic" else ""),
                    grid["curves"][search][_setting(*s)],
                    style,
                )
                for s in pairs
                if _setting(*s) in grid["curves"][search]
            ]
            learners.draw(axes, lines, "pass", "objective")
        axes.set_title(title)
        axes.set_xlabel("passes")
        axes.set_yscale("log")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
        else:
            axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center")
    panels[0].set_ylabel("objective F(w)")
    figure.suptitle(f"{name}: SGD-L1 with (HLS) and without heuristic line search")
    learners.save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--corpus", choices=tuple(PENALTY), default="conll2000")
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5, help="runs of OWL-QN and two-stage")
    parser.add_argument(
        "--part", choices=("both", "two-stage", "grid"), default="both", help="keep the other part"
    )
    parser.add_argument("--figures-only", action="store_true", help="only the five settings of the figures")
    options = parser.parse_args()
    warm.training()
    l1, words = PENALTY[options.corpus], []
    if options.corpus == "pku":
        folder = options.data / "pku_cws"
        sentences = list(segmented(common.read(folder / "199801.txt"), tagged=True))
        words = list(segmented(common.read(folder / "pku_test_gold.utf8"), tagged=False))
        train, features = learners.corpus(as_conll(sentences)), SEGMENTATION
    else:
        train, features = learners.conll2000(options.data)[0], learners.CHUNKING
    result = common.recorded(f"zhou_{options.corpus}")
    result |= {"l1": l1, "sentences": train.sentences, "tokens": train.tokens}
    if options.part in ("both", "two-stage"):
        result["two_stage"] = {"measured": common.moment()}
        measured = measure_two_stage(train, features, l1, options.rounds)
        models = measured.pop("results")
        if words:
            measured["word_f1"] = {name: word_f1(model, words) for name, model in models.items()}
        result["two_stage"] |= measured
        learners.draw_all(
            [learners.Curve(name, curve) for name, curve in measured["curves"].items()],
            f"{options.corpus}, L1 = {l1:g}: OWL-QN and two-stage, 1 thread",
            common.RESULTS / f"two_stage_{options.corpus}.png",
        )
        common.record(f"zhou_{options.corpus}", result)
    if options.part in ("both", "grid"):
        moment, pairs = common.moment(), settings(not options.figures_only)
        for grid in measure_grid(train, features, l1, options.passes, pairs):
            result["grid"] = {"measured": moment, **grid}
            common.record(f"zhou_{options.corpus}", result)
            draw_figures(options.corpus, grid, common.RESULTS / f"zhou_{options.corpus}.png")
    for what in ("grid", "two_stage"):
        if what in result:
            print(
                what, {key: value for key, value in result[what].items() if key not in ("curves", "rounds")}
            )


if __name__ == "__main__":
    main()
