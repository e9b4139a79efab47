"""Tuning: k-fold cross-validation of every candidate of a search, over one compiled corpus."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from core.corpus.corpus import Corpus
from core.errors import Invalid
from core.experiments import folds
from core.experiments.folds import Fold
from core.experiments.series import Entry, EveryRunFailed, Series
from core.features.matching import NO_LEXICONS, Lexicons
from core.features.spec import FeatureSpec
from core.learn import loop
from core.learn.information_gain import compile_selected
from core.learn.loop import Learned, TrainResult, score_name
from core.learn.problem import compile_corpus
from core.learn.progress import Progress
from core.specs import Learning, PatienceStop, TrainSpec, TuneSpec
from core.specs.tune import Candidate

#: What is noted of a candidate on the folds after one on which it failed.
SKIPPED = {"code": "skipped", "message": "it failed on another fold"}


@dataclass(frozen=True, eq=False)
class Tuned:
    """The end of a search, and of the training that followed if the spec asks for it."""

    result: dict[str, Any]
    final: TrainSpec | None
    trained: TrainResult | None


@dataclass(frozen=True, slots=True)
class _Run:
    """One candidate on one fold, both from 0."""

    candidate: int
    fold: int


def tune(
    spec: TuneSpec, corpus: Corpus, *, lexicons: Lexicons = NO_LEXICONS, resume: Path | None = None
) -> Generator[Progress, None, Tuned]:
    """Search; then, if the spec says so, train on the whole corpus with the best spec found."""
    if corpus.labels is None:
        raise Invalid("The corpus has no labels to train on", code="unlabelled_corpus")
    order = _order(spec)
    series = Series(len(order) + (spec.train is not None), resume, tell_passes=False)
    yield from series.resumed()
    yield from _validate(spec, corpus, lexicons, order, series)
    by_candidate: list[list[Entry]] = [[] for _ in spec.candidates]
    for run, entry in zip(order, series.done, strict=True):
        by_candidate[run.candidate].append(entry)
    table = [_row(*each) for each in zip(spec.candidates, by_candidate, strict=True)]
    best = max((row for row in table if row["mean"] is not None), key=lambda row: row["mean"], default=None)
    if best is None:
        raise EveryRunFailed(f"every candidate failed, the first one: {table[0]['error']['message']}")
    learning = _for_everything(spec.candidates[best["candidate"] - 1].learning, best)
    result = {
        "score": score_name(tuple(corpus.labels.vocabulary.strings())),
        "folds": spec.folds,
        "table": table,
        "best": {
            **{name: best[name] for name in ("candidate", "values", "mean", "deviation")},
            "spec": learning.model_dump(mode="json"),
        },
    }
    if spec.train is None:
        return Tuned(result, None, None)
    final = TrainSpec.model_validate(
        {
            **learning.model_dump(mode="json"),
            "kind": "train",
            "model": spec.train.model,
            "corpus": spec.corpus,
            "promote": spec.train.promote,
        }
    )
    steps = loop.train(
        final, corpus, None, lexicons=lexicons, resume=series.take_resume(), carried=tuple(series.done)
    )
    trained = yield from series.told("the best on everything", steps)
    return Tuned(result, final, trained)


def _order(spec: TuneSpec) -> list[_Run]:
    """Candidates that share a compiled corpus follow each other, and of them those that share a fold.

    The order depends on the spec alone: what a checkpoint has is the beginning of it.
    """
    groups: dict[str, list[int]] = {}
    for number, candidate in enumerate(spec.candidates):
        groups.setdefault(folds.shared(candidate.learning.features).model_dump_json(), []).append(number)
    return [
        _Run(candidate, fold)
        for members in groups.values()
        for same in _by_features(spec, members)
        for fold in range(spec.folds)
        for candidate in same
    ]


def _by_features(spec: TuneSpec, members: list[int]) -> list[list[int]]:
    alike: dict[str, list[int]] = {}
    for number in members:
        features = spec.candidates[number].learning.features
        alike.setdefault(features.model_dump_json(), []).append(number)
    return list(alike.values())


class _Workbench:
    """The compiled corpus and the fold at hand: one of each, made when another is asked for."""

    def __init__(self, spec: TuneSpec, corpus: Corpus, lexicons: Lexicons) -> None:
        self._corpus, self._lexicons = corpus, lexicons
        self._parts = folds.parts(corpus.sentences, spec.folds, spec.seed)
        self._shared: FeatureSpec | None = None
        self._folded: tuple[FeatureSpec, int] | None = None

    def has_compiled(self, features: FeatureSpec) -> bool:
        return self._shared == folds.shared(features)

    def fold(self, features: FeatureSpec, number: int) -> Fold:
        """Fold `number` as these features see it."""
        if features.select is not None or features.resolve(self._corpus.names).gathers:
            return self._compiled_apart(features, number)
        if not self.has_compiled(features):
            self._shared, self._folded = folds.shared(features), None
            settled = self._shared.resolve(self._corpus.names)
            self._problem = compile_corpus(settled, self._corpus, self._lexicons).problem
        if self._folded != (features, number):
            self._fold = folds.fold_of(self._problem, self._parts[number], features)
            self._folded = (features, number)
        return self._fold

    def _compiled_apart(self, features: FeatureSpec, number: int) -> Fold:
        """The fold with its training part compiled by itself: what is learned from labels, words or which templates
        to keep, is to be from that part.
        """
        if self._folded != (features, number):
            held_out = self._parts[number]
            rest = np.setdiff1d(np.arange(self._corpus.sentences), held_out, assume_unique=True)
            compiled, _ = compile_selected(features, self._corpus.subset(rest), self._lexicons)
            self._fold = Fold(compiled.problem, compiled.problem_of(self._corpus.subset(held_out)))
            self._folded, self._shared = (features, number), None
        return self._fold


def _validate(
    spec: TuneSpec, corpus: Corpus, lexicons: Lexicons, order: list[_Run], series: Series
) -> Generator[Progress, None, None]:
    """Make every run that is not done."""
    bench = _Workbench(spec, corpus, lexicons)
    failed = {run.candidate for run, entry in zip(order, series.done, strict=False) if "error" in entry}
    for run in order[len(series.done) :]:
        candidate = spec.candidates[run.candidate]
        features = candidate.learning.features
        name = f"candidate {candidate.number}, fold {run.fold + 1}"
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


def _row(candidate: Candidate, entries: list[Entry]) -> dict[str, Any]:
    """A row of the table, from what came of the folds, in their order."""
    row = {"candidate": candidate.number, "values": dict(candidate.values)}
    errors = [entry["error"] for entry in entries if "error" in entry and entry["error"] != SKIPPED]
    if errors:
        empty = dict.fromkeys(("mean", "deviation", "scores", "passes", "best_pass", "seconds"))
        return {**row, **empty, "error": errors[0]}
    scores = [entry["score"] for entry in entries]
    return {
        **row,
        "mean": fmean(scores),
        "deviation": stdev(scores),
        "scores": scores,
        "passes": fmean(entry["passes"] for entry in entries),
        "best_pass": fmean(entry["best_pass"] for entry in entries),
        "seconds": round(fmean(entry["seconds"] for entry in entries), 4),
        "error": None,
    }


def _for_everything(learning: Learning, row: dict[str, Any]) -> Learning:
    """The spec to train on everything with.

    Nothing is held out then for a stop rule to look at: training takes as many passes as it took in the folds, on
    average, to the weights that were scored. The time budget stays.
    """
    stop = learning.stop
    if isinstance(stop, PatienceStop) and stop.patience is None:
        return learning
    trainer = learning.trainer.model_copy(update={"passes": max(1, round(row["best_pass"]))})
    return learning.model_copy(
        update={"trainer": trainer, "stop": PatienceStop(max_seconds=stop.max_seconds)}
    )
