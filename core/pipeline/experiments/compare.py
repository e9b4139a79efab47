"""Compares trainers on one corpus and one dev set: a table and learning curves."""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.evaluate.score import score_name
from tagsmith.core.evaluate.spans import Metrics
from tagsmith.core.evaluate.trees import TreeMetrics
from tagsmith.core.features.lexicon.lexicon import NO_LEXICONS, Lexicons
from tagsmith.core.learn.problem.information_gain import compile_selected
from tagsmith.core.learn.run.loop import Learned
from tagsmith.core.learn.run.progress import Progress
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.pipeline.experiments.series import Entry, EveryRunFailed, Series

#: A score this close to the final one, on a scale of 100, counts as having reached it.
NEAR = 0.1
#: Maximum number of points of all curves together, and a minimum per curve: about as many as a plot can show.
CURVE_POINTS, MIN_POINTS = 4000, 100


def compare(
    runs: Sequence[tuple[str, Learning]],
    corpus: Corpus,
    dev: Corpus | float,
    *,
    lexicons: Lexicons = NO_LEXICONS,
    resume: Path | None = None,
) -> Generator[Progress, None, dict[str, Any]]:
    """Execute the named runs one after another on one compiled corpus. All use the features and the seed of the first.

    `dev` is the corpus to score on, or the fraction of `corpus` to hold out for it, chosen by the seed.
    """
    features, seed = runs[0][1].features, runs[0][1].seed
    series = Series(len(runs), resume)
    yield from series.resumed()
    yield series.started("compiling features")
    if isinstance(dev, float):
        corpus, dev = corpus.split(dev, seed)
    else:
        dev = dev.comparable()
    compiled, _ = compile_selected(features, corpus, lexicons)
    problem = compiled.problem
    yield series.started(
        f"{problem.words} tokens, {problem.attributes} attributes, {len(problem.labels)} labels, "
        f"{len(runs)} trainers"
    )
    scored = compiled.problem_of(dev)
    points = max(MIN_POINTS, CURVE_POINTS // len(runs))
    for name, learning in runs[len(series.done) :]:
        yield from series.run(name, learning, problem, scored, lambda learned: _entry(learned, points))
    if all("error" in entry for entry in series.done):
        raise EveryRunFailed(f"Every trainer failed. The first error: {series.done[0]['error']['message']}")
    kinds = [learning.trainer.kind for _, learning in runs]
    names = [name for name, _ in runs]
    return {
        "score": score_name(corpus),
        "table": [_row(*each) for each in zip(names, kinds, series.done, strict=True)],
        "curves": [
            {"name": name, "points": entry["curve"]}
            for name, entry in zip(names, series.done, strict=True)
            if "curve" in entry
        ],
    }


def _entry(learned: Learned, points: int) -> Entry:
    assert learned.dev is not None
    assert learned.score is not None
    return {
        "passes": learned.passes,
        "seconds": round(learned.seconds, 4),
        "objective": learned.objective,
        "active_features": learned.active_features,
        "score": learned.score,
        **_scores(learned.dev),
        "passes_to_near": passes_to_near(learned.curve, learned.score),
        "stop_reason": learned.stop_reason,
        "curve": thinned(learned.curve, points),
    }


def _scores(metrics: Metrics | TreeMetrics) -> dict[str, float | None]:
    if isinstance(metrics, Metrics):
        return {"f1": metrics.f1, "accuracy": metrics.accuracy}
    return {"uas": metrics.uas, "las": metrics.las}


def _row(name: str, kind: str, entry: Entry) -> dict[str, Any]:
    return {"name": name, "trainer": kind, **{key: value for key, value in entry.items() if key != "curve"}}


def passes_to_near(curve: Sequence[Mapping[str, Any]], final: float, near: float = NEAR) -> int | None:
    """Return the first pass from which the score stays within `near` of the final one; None if there is none.

    A score that enters this range and leaves it again does not count.
    """
    arrived = None
    for point in reversed(curve):
        # The tolerance makes a decimal difference of exactly 0.1 count as within 0.1.
        if abs(point["dev_score"] - final) > near + 1e-9:
            break
        arrived = int(point["pass"])
    return arrived


def thinned(curve: list[dict[str, Any]], points: int) -> list[dict[str, Any]]:
    """Return at most `points` points of a curve, evenly spaced, including the first and the last."""
    if len(curve) <= points:
        return curve
    return [curve[i * (len(curve) - 1) // (points - 1)] for i in range(points)]
