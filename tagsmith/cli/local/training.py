"""`tagsmith train --local`: the engine of the service on files. The same spec and seed give the same model file."""

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from tagsmith.cli import output, results, specs
from tagsmith.cli.commands.corpora import print_summary
from tagsmith.cli.errors import INTERRUPTED, CommandError
from tagsmith.cli.local import reading
from tagsmith.cli.watching import ProgressLine
from tagsmith.core.base.spec import validated
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus import report
from tagsmith.core.learn.run.progress import Progress
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.model import file
from tagsmith.core.pipeline.train import Start, TrainResult, train
from tagsmith.wire import CorpusStatistics

#: Fields of a train job that say where things are. Here options say so.
PLACES = ("kind", "model", "corpus", "dev", "max_seconds")
#: Fields of a train job that have a meaning only on a server.
SERVER_ONLY = ("promote",)

_LEARNING: TypeAdapter[Learning] = TypeAdapter(Learning)


@dataclass(frozen=True, slots=True)
class LocalRun:
    """What to train, from which files."""

    spec: Mapping[str, Any]
    corpus: Path
    dev: str | None
    model: Path
    format: str | None
    options: Mapping[str, str]
    as_json: bool
    live: bool


def run(given: LocalRun) -> int:
    """Train a model and write it to a file."""
    if given.model.is_dir() or not given.model.absolute().parent.is_dir():
        raise CommandError(
            f"The model cannot be written to {given.model}: give the name of a file in an existing folder."
        )
    learning = _learning(given)
    fraction = None if given.dev is None else specs.fraction_of(given.dev)
    began = time.monotonic()
    loaded = _read(given, given.corpus)
    if not given.as_json:
        _print_read(given.corpus, loaded)
        results.print_method(given.spec)
    dev = fraction if given.dev is None or fraction is not None else _read(given, Path(given.dev)).corpus
    init = given.spec.get("init")
    start = None if init is None else Start(reading.tagger_of(Path(init)).model, str(init))
    try:
        with ProgressLine(live=given.live, stderr=given.as_json) as line:
            trained = _followed(train(learning, loaded.corpus, dev, init=start), line)
    except KeyboardInterrupt:
        output.say("Stopped. No model was written.", stderr=True)
        return INTERRUPTED
    _save(trained, given, time.monotonic() - began)
    return 0


def _learning(given: LocalRun) -> Learning:
    for name in SERVER_ONLY:
        if given.spec.get(name) is not None:
            raise CommandError(
                f"{name} has no meaning with --local: a model file has no aliases. Leave it out."
            )
    body = {name: value for name, value in given.spec.items() if name not in (*PLACES, *SERVER_ONLY, "init")}
    learning = validated(_LEARNING, body, "The spec")
    if learning.features.lexicons:
        raise CommandError("Lexicons are stored on a server. Train there, without --local.")
    if learning.stop.keeps_best and given.dev is None:
        raise CommandError("stop.patience waits for a better score on dev. Give --dev too.")
    return learning


def _read(given: LocalRun, path: Path) -> reading.ReadCorpus:
    """Read a file that must have labels."""
    loaded = reading.read(path, given.format, given.options)
    if loaded.corpus.labels is None:
        raise CommandError(f"{path} has no labels, so there is nothing to learn from it.")
    return loaded


def _followed(steps: Generator[Progress, None, TrainResult], line: ProgressLine) -> TrainResult:
    line.message("reading features; the first run on a machine also compiles kernels")
    return finished(steps, lambda progress: line.update(progress.as_dict(), pass_done=progress.pass_done))


def _save(trained: TrainResult, given: LocalRun, seconds: float) -> None:
    # Written beside the target and renamed: a model file is complete or not there.
    draft = given.model.with_name(f".{given.model.name}.part")
    try:
        sha256 = file.save(trained.model, draft)
        size = draft.stat().st_size
        draft.replace(given.model)
    finally:
        draft.unlink(missing_ok=True)
    result = {
        "model": str(given.model),
        "objective": trained.objective,
        "active_features": trained.active_features,
        "train_seconds": trained.train_seconds,
        "passes": trained.passes,
        "stop_reason": trained.stop_reason,
        "metrics": trained.metrics,
        "sha256": sha256,
        "size_bytes": size,
        "curve": trained.curve,
    }
    if given.as_json:
        output.print_json(result)
        return
    results.print_trained(result, str(given.model), seconds)
    results.print_local_steps(str(given.model))


def _print_read(path: Path, loaded: reading.ReadCorpus) -> None:
    corpus = loaded.corpus
    found = report.report(corpus, loaded.repaired_labels)
    statistics = CorpusStatistics.model_validate(found, from_attributes=True)
    columns = [column.name for column in corpus.columns]
    print_summary(str(path), loaded.format, columns, list(found.label_counts), statistics)
