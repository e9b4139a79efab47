"""Comparing trainers on one corpus and one dev set: the table and the curves of the papers."""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.corpus.corpus import Corpus
from core.experiments.series import Entry, EveryRunFailed, Series
from core.features.matching import NO_LEXICONS, Lexicons
from core.learn.information_gain import compile_selected
from core.learn.loop import Learned, score_name
from core.learn.progress import Progress
from core.specs import CompareSpec, DevFraction

#: A score this near the final one, in points of 100, counts as having arrived there.
NEAR = 0.1
#: Points that all curves of a result have together, and that each may have at least: what a plot can show.
CURVE_POINTS, LEAST_POINTS = 4000, 100


def compare(
    spec: CompareSpec,
    corpus: Corpus,
    dev: Corpus | None,
    *,
    lexicons: Lexicons = NO_LEXICONS,
    resume: Path | None = None,
) -> Generator[Progress, None, dict[str, Any]]:
    """Run the trainers one after another on one compiled corpus. `dev` is the corpus that the spec names."""
    runs = spec.runs()
    series = Series(len(runs), resume)
    yield from series.resumed()
    yield series.started("compiling features")
    if isinstance(spec.dev, DevFraction):
        corpus, dev = corpus.split(spec.dev.fraction, spec.seed)
    assert dev is not None
    compiled, _ = compile_selected(spec.features, corpus, lexicons)
    problem = compiled.problem
    yield series.started(
        f"{problem.tokens} tokens, {problem.attributes} attributes, {len(problem.labels)} labels, "
        f"{len(runs)} trainers"
    )
    scored = compiled.problem_of(dev)
    points = max(LEAST_POINTS, CURVE_POINTS // len(runs))
    for name, learning in runs[len(series.done) :]:
        yield from series.run(name, learning, problem, scored, lambda learned: _entry(learned, points))
    if all("error" in entry for entry in series.done):
        raise EveryRunFailed(f"every trainer failed, the first one: {series.done[0]['error']['message']}")
    kinds = [learning.trainer.kind for _, learning in runs]
    names = [name for name, _ in runs]
    return {
        "score": score_name(problem.labels),
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
        "f1": learned.dev.f1,
        "accuracy": learned.dev.accuracy,
        "passes_to_near": passes_to_near(learned.curve, learned.score),
        "stop_reason": learned.stop_reason,
        "curve": thinned(learned.curve, points),
    }


def _row(name: str, kind: str, entry: Entry) -> dict[str, Any]:
    return {"name": name, "trainer": kind, **{key: value for key, value in entry.items() if key != "curve"}}


def passes_to_near(curve: Sequence[Mapping[str, Any]], final: float, near: float = NEAR) -> int | None:
    """The first pass from which on the score stays within `near` of the final one; None if it never does.

    Passing through that band on the way to somewhere else does not count as having arrived.
    """
    arrived = None
    for point in reversed(curve):
        # A hair more, so that a difference of 0.1 in decimal figures is within 0.1.
        if abs(point["dev_score"] - final) > near + 1e-9:
            break
        arrived = int(point["pass"])
    return arrived


def thinned(curve: list[dict[str, Any]], points: int) -> list[dict[str, Any]]:
    """At most so many points of a curve, spread evenly, the first and the last among them."""
    if len(curve) <= points:
        return curve
    return [curve[i * (len(curve) - 1) // (points - 1)] for i in range(points)]
