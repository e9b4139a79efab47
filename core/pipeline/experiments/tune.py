"""Tuning: every candidate of a search is scored by cross-validation over one compiled corpus, or on a dev set."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.evaluate.score import score_name
from tagsmith.core.features.lexicon.lexicon import NO_LEXICONS, Lexicons
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.information_gain import compile_selected
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.run.loop import Learned
from tagsmith.core.learn.run.progress import Progress
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.learn.run.stopping import PatienceStop
from tagsmith.core.pipeline.experiments.folds import Fold, fold_of, parts, shared
from tagsmith.core.pipeline.experiments.series import Entry, EveryRunFailed, Series
from tagsmith.core.pipeline.train import TrainResult, train

#: The outcome of a candidate on the folds after the one on which it failed.
SKIPPED = {"code": "skipped", "message": "The candidate failed on another fold."}


@dataclass(frozen=True, eq=False, slots=True)
class TuneCandidate:
    """One combination of values of the searched fields, and the resulting spec."""

    number: int  # from 1
    values: Mapping[str, Any]
    learning: Learning


@dataclass(frozen=True, eq=False)
class Tuned:
    """The outcome of a search, and of the training after it, if any."""

    result: dict[str, Any]
    #: The spec for training on the whole corpus.
    best: Learning
    trained: TrainResult | None


@dataclass(frozen=True, slots=True)
class _Run:
    """One candidate on one fold, both from 0."""

    candidate: int
    fold: int


@dataclass(frozen=True, slots=True)
class Folds:
    """Score by cross-validation: the seed splits the corpus into `count` parts."""

    count: int
    seed: int


#: How candidates are scored: by cross-validation, or on a dev corpus.
Scoring = Folds | Corpus


def tune(
    candidates: Sequence[TuneCandidate],
    corpus: Corpus,
    *,
    scoring: Scoring,
    train_best: bool = False,
    lexicons: Lexicons = NO_LEXICONS,
    resume: Path | None = None,
) -> Generator[Progress, None, Tuned]:
    """Score every candidate. With `train_best`, then train on the whole corpus with the best spec found."""
    if not corpus.labelled:
        corpus.needed_labels()  # raises
    folds, dev = (scoring.count, None) if isinstance(scoring, Folds) else (None, scoring)
    order = _order(candidates, folds or 1)
    series = Series(len(order) + train_best, resume, report_passes=False)
    yield from series.resumed()
    bench = _Workbench(corpus, lexicons, scoring)
    yield from _validate(candidates, bench, order, series)
    by_candidate: list[list[Entry]] = [[] for _ in candidates]
    for run, entry in zip(order, series.done, strict=True):
        by_candidate[run.candidate].append(entry)
    table = [_row(*each) for each in zip(candidates, by_candidate, strict=True)]
    best = max((row for row in table if row["mean"] is not None), key=lambda row: row["mean"], default=None)
    if best is None:
        raise EveryRunFailed(f"Every candidate failed. The first error: {table[0]['error']['message']}")
    learning = candidates[best["candidate"] - 1].learning
    if dev is None:
        learning = for_whole_corpus(learning, round(best["best_pass"]))
    result = {
        "score": score_name(corpus),
        "folds": folds,
        "table": table,
        "best": {
            **{name: best[name] for name in ("candidate", "values", "mean", "deviation")},
            "spec": learning.model_dump(mode="json"),
        },
    }
    if not train_best:
        return Tuned(result, learning, None)
    steps = train(
        learning, corpus, dev, lexicons=lexicons, resume=series.take_resume(), carried=tuple(series.done)
    )
    trained = yield from series.as_part_of_job("the best on everything", steps)
    return Tuned(result, learning, trained)


def for_whole_corpus(learning: Learning, passes: int) -> Learning:
    """Return the spec for training on the whole corpus; `passes` is the average number of passes of the folds.

    The whole corpus has no held-out part for a stop rule to use. A fixed number of passes therefore replaces the rule:
    the number after which the folds had the weights that were scored. The time budget stays.
    """
    stop = learning.stop
    if isinstance(stop, PatienceStop) and stop.patience is None:
        return learning
    trainer = learning.trainer.with_total_passes(max(1, passes))
    return learning.model_copy(
        update={"trainer": trainer, "stop": PatienceStop(max_seconds=stop.max_seconds)}
    )


def _order(candidates: Sequence[TuneCandidate], count: int) -> list[_Run]:
    """Return all runs. Candidates that share a compiled corpus are adjacent, and within them those that share a fold.

    The order depends only on the candidates and the number of folds, because a checkpoint holds a prefix of it.
    """
    groups: dict[str, list[int]] = {}
    for number, candidate in enumerate(candidates):
        groups.setdefault(shared(candidate.learning.features).model_dump_json(), []).append(number)
    return [
        _Run(candidate, fold)
        for members in groups.values()
        for same in _by_features(candidates, members)
        for fold in range(count)
        for candidate in same
    ]


def _by_features(candidates: Sequence[TuneCandidate], members: list[int]) -> list[list[int]]:
    alike: dict[str, list[int]] = {}
    for number in members:
        features = candidates[number].learning.features
        alike.setdefault(features.model_dump_json(), []).append(number)
    return list(alike.values())


class _Workbench:
    """A cache of the latest compiled corpus and the latest fold."""

    def __init__(self, corpus: Corpus, lexicons: Lexicons, scoring: Scoring) -> None:
        self._corpus, self._lexicons = corpus, lexicons
        self._dev = None if isinstance(scoring, Folds) else scoring
        self._parts = (
            parts(corpus.sentences, scoring.count, scoring.seed) if isinstance(scoring, Folds) else []
        )
        self._shared: FeatureSpec | None = None
        self._folded: tuple[FeatureSpec, int] | None = None

    @property
    def folds(self) -> int:
        """Runs per candidate."""
        return len(self._parts) or 1

    def has_compiled(self, features: FeatureSpec) -> bool:
        return self._shared == shared(features)

    def fold(self, features: FeatureSpec, number: int) -> Fold:
        """Return fold `number`, or the whole corpus and the dev set, compiled with `features`."""
        if (
            self._dev is not None
            or self._corpus.trees is not None  # the attributes of a fold are those of its own gold arcs
            or features.select is not None
            or features.resolve(self._corpus.names, trees=self._corpus.trees is not None).gathers
        ):
            return self._compiled_apart(features, number)
        if not self.has_compiled(features):
            self._shared, self._folded = shared(features), None
            settled = self._shared.resolve(self._corpus.names, trees=False)
            self._problem = compile_corpus(settled, self._corpus, self._lexicons).problem
        if self._folded != (features, number):
            self._fold = fold_of(self._problem, self._parts[number], features)
            self._folded = (features, number)
        return self._fold

    def _compiled_apart(self, features: FeatureSpec, number: int) -> Fold:
        """Return the fold with its training part compiled separately.

        Words and templates that are chosen by the labels must come from the training part alone.
        """
        if self._folded != (features, number):
            train, held_out = self._split(number)
            compiled, _ = compile_selected(features, train, self._lexicons)
            self._fold = Fold(compiled.problem, compiled.problem_of(held_out))
            self._folded, self._shared = (features, number), None
        return self._fold

    def _split(self, number: int) -> tuple[Corpus, Corpus]:
        if self._dev is not None:
            return self._corpus, self._dev
        held_out = self._parts[number]
        rest = np.setdiff1d(np.arange(self._corpus.sentences), held_out, assume_unique=True)
        return self._corpus.subset(rest), self._corpus.subset(held_out)


def _validate(
    candidates: Sequence[TuneCandidate], bench: _Workbench, order: list[_Run], series: Series
) -> Generator[Progress, None, None]:
    """Execute every run that is not done."""
    failed = {run.candidate for run, entry in zip(order, series.done, strict=False) if "error" in entry}
    for run in order[len(series.done) :]:
        candidate = candidates[run.candidate]
        features = candidate.learning.features
        name = f"candidate {candidate.number}" + (f", fold {run.fold + 1}" if bench.folds > 1 else "")
        if run.candidate in failed:
            yield series.ended(name, {"error": SKIPPED})
            continue
        if not bench.has_compiled(features):
            yield series.started("compiling features")
        fold = bench.fold(features, run.fold)
        yield from series.run(name, candidate.learning, fold.train, fold.held_out, _entry)
        if "error" in series.done[-1]:
            failed.add(run.candidate)


def _entry(learned: Learned) -> Entry:
    return {
        "score": learned.score,
        "passes": learned.passes,
        "best_pass": learned.best_pass,
        "seconds": round(learned.seconds, 4),
    }


def _row(candidate: TuneCandidate, entries: list[Entry]) -> dict[str, Any]:
    """Return a row of the table from the outcomes of the folds, in fold order."""
    row = {"candidate": candidate.number, "values": dict(candidate.values)}
    errors = [entry["error"] for entry in entries if "error" in entry and entry["error"] != SKIPPED]
    if errors:
        empty = dict.fromkeys(("mean", "deviation", "scores", "passes", "best_pass", "seconds"))
        return {**row, **empty, "error": errors[0]}
    scores = [entry["score"] for entry in entries]
    return {
        **row,
        "mean": fmean(scores),
        "deviation": stdev(scores) if len(scores) > 1 else None,
        "scores": scores,
        "passes": fmean(entry["passes"] for entry in entries),
        "best_pass": fmean(entry["best_pass"] for entry in entries),
        "seconds": round(fmean(entry["seconds"] for entry in entries), 4),
        "error": None,
    }
