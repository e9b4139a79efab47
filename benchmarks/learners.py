"""Shared code of the trainer benchmarks: CoNLL-2000, a run with its exact learning curve, and plots of curves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks import common
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.evaluate.spans import Metrics, evaluate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.pipeline.train import TrainResult, train

MAX_LINE_BYTES = 1 << 20
#: CRF++'s chunking templates, weights only for pairs seen in the data: the 456,468 features that crfsuite makes.
CHUNKING = FeatureSpec(preset="chunking", pairs="seen")


@dataclass(frozen=True)
class Curve:
    """One line of a plot, with one point per pass."""

    name: str
    points: Sequence[dict[str, Any]]
    style: str = "-"


def conll2000(data: Path) -> tuple[Corpus, Corpus]:
    """Training and test part."""
    folder = data / "conll2000"
    return corpus(common.read(folder / "train.txt")), corpus(common.read(folder / "test.txt"))


def corpus(raw: bytes) -> Corpus:
    return read_conll([raw], max_line_bytes=MAX_LINE_BYTES)


def trained(
    trainer: dict[str, Any],
    features: FeatureSpec,
    data: Corpus,
    test: Corpus | None = None,
    *,
    threads: int = 1,
    objective: str = "exact",
    seed: int = 1,
) -> TrainResult:
    """Run a trainer, by default with the exact objective after each pass. Its time excludes that and the test."""
    spec = TrainSpec.model_validate(
        {
            "kind": "train",
            "model": "benchmark",
            "corpus": "crp_benchmark",
            "dev": None if test is None else {"corpus": "crp_test"},
            "features": features,
            "trainer": trainer,
            "threads": threads,
            "objective": objective,
            "seed": seed,
        }
    )
    return finished(train(spec, data, test))


def folds(corpus: Corpus, count: int) -> Iterator[tuple[Corpus, Corpus]]:
    """Cross-validation: for each part of a random partition, the others and the part."""
    order = np.random.default_rng(1).permutation(corpus.sentences)
    for fold in range(count):
        held_out = np.sort(order[fold::count])
        others = np.setdiff1d(order, held_out)
        yield corpus.subset(others), corpus.subset(held_out)


def score(test: Corpus, tags: Sequence[Sequence[str]]) -> Metrics:
    """Score the labels of a tagger against those of the corpus."""
    assert test.labels is not None
    flat = [tag for sentence in tags for tag in sentence]
    names = test.labels.vocabulary.strings()
    known = {label: i for i, label in enumerate(dict.fromkeys([*names, *flat]))}
    found = np.array([known[tag] for tag in flat], np.int32)
    return evaluate(list(known), test.labels.ids, found, test.offsets)


def points(result: TrainResult) -> list[dict[str, Any]]:
    """Return the curve in the form of the results file."""
    return [
        {
            "pass": point["pass"],
            "seconds": round(point["seconds"], 3),
            "objective": round(point["objective"], 2),
            "active_features": point["active_features"],
            "score": None if point["dev_score"] is None else round(point["dev_score"], 2),
        }
        for point in result.curve
    ]


def draw_all(curves: Sequence[Curve], title: str, path: Path) -> None:
    """Objective and active features, against passes and against seconds."""
    figure, panels = plt.subplots(2, 2, figsize=(12, 8.5), constrained_layout=True)
    for row, (measure, label) in enumerate(
        (("objective", "objective F(w)"), ("active_features", "active features"))
    ):
        for column, against in enumerate(("pass", "seconds")):
            axes = panels[row][column]
            draw(axes, curves, against, measure)
            axes.set_yscale("log")
            axes.set_xscale("log")
            axes.set_xlabel("passes" if against == "pass" else "seconds of training")
            axes.set_ylabel(label)
    panels[0][0].legend(fontsize=8)
    figure.suptitle(title)
    save(figure, path)


def draw(axes: Axes, curves: Sequence[Curve], against: str, measure: str) -> None:
    for curve in curves:
        xs, ys = [p[against] for p in curve.points], [p[measure] for p in curve.points]
        axes.plot(xs, ys, curve.style, label=curve.name, linewidth=1.3)
    axes.grid(visible=True, which="both", alpha=0.25)


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)
