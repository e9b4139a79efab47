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
from tagsmith.cli.files import check_target, complete_file
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

#: Fields of a train job that are read here, or that options give.
OWN = ("kind", "model", "corpus", "dev", "init")
#: Fields of a train job that have a meaning only on a server, and what to do instead.
SERVER_ONLY = {
    "promote": "a model file has no aliases. Leave it out.",
    "max_seconds": "it limits jobs of a server. Set stop.max_seconds.",
}

_LEARNING: TypeAdapter[Learning] = TypeAdapter(Learning)


@dataclass(frozen=True, slots=True)
class LocalRun:
    """What to train, from which files. Paths in the spec are relative to `folder`, else to the current one."""

    spec: Mapping[str, Any]
    folder: Path
    corpus: Path
    dev: str | None
    model: Path
    format: str | None
    format_options: Mapping[str, str]
    as_json: bool
    live: bool


def run(job: LocalRun) -> int:
    """Train a model and write it to a file."""
    check_target(job.model)
    dev = _dev(job)
    learning = _learning(job, dev)
    began = time.monotonic()
    loaded = _read(job, job.corpus)
    dev_set = _read(job, dev).corpus if isinstance(dev, Path) else dev
    init = specs.text_in(job.spec, "init")
    start = None if init is None else Start(reading.tagger_of(_path(job, init)).model, init)
    if not job.as_json:
        _print_read(job.corpus, loaded)
        results.print_method(job.spec)
    try:
        with ProgressLine(live=job.live, stderr=job.as_json) as line:
            trained = _followed(train(learning, loaded.corpus, dev_set, init=start), line)
    except KeyboardInterrupt:
        output.say("Stopped. No model was written.", stderr=True)
        return INTERRUPTED
    _save(trained, job, time.monotonic() - began)
    return 0


def _dev(job: LocalRun) -> Path | float | None:
    """Return the dev set of --dev, else of the spec: a file, or the fraction of the corpus to hold out."""
    if job.dev is not None:
        fraction = specs.fraction_of(job.dev)
        return Path(job.dev) if fraction is None else fraction
    match specs.object_in(job.spec, "dev"):
        case {"corpus": str(corpus), **rest} if not rest:
            return _path(job, corpus)
        case {"fraction": float(fraction), **rest} if not rest and 0 < fraction < 1:
            return fraction
        case {} if not job.spec.get("dev"):
            return None
    raise CommandError("dev of the spec must be {fraction: 0.1} or {corpus: FILE}.")


def _path(job: LocalRun, name: str) -> Path:
    """Return the path of a file that the spec names: beside the spec, else in the current folder."""
    beside = job.folder / name
    return beside if beside.is_file() else Path(name)


def _learning(job: LocalRun, dev: Path | float | None) -> Learning:
    for name, instead in SERVER_ONLY.items():
        if job.spec.get(name) is not None:
            raise CommandError(f"{name} has no meaning with --local: {instead}")
    body = {name: value for name, value in job.spec.items() if name not in (*OWN, *SERVER_ONLY)}
    learning = validated(_LEARNING, body, "The spec")
    if learning.features.lexicons:
        raise CommandError("Lexicons are stored on a server. Train there, without --local.")
    if learning.stop.keeps_best and dev is None:
        raise CommandError("stop.patience waits for a better score on dev. Give --dev too.")
    return learning


def _read(job: LocalRun, path: Path) -> reading.ReadCorpus:
    """Read a file that must have labels."""
    loaded = reading.read(path, job.format, job.format_options)
    if loaded.corpus.labels is None:
        raise CommandError(f"{path} has no labels, so there is nothing to learn from it.")
    return loaded


def _followed(steps: Generator[Progress, None, TrainResult], line: ProgressLine) -> TrainResult:
    line.message("reading features; the first run on a machine also compiles kernels")
    return finished(steps, lambda progress: line.update(progress.as_dict(), pass_done=progress.pass_done))


def _save(trained: TrainResult, job: LocalRun, seconds: float) -> None:
    with complete_file(job.model) as part:
        sha256 = file.save(trained.model, Path(part.name))
    result = {
        "model": str(job.model),
        "objective": trained.objective,
        "active_features": trained.active_features,
        "train_seconds": trained.train_seconds,
        "passes": trained.passes,
        "stop_reason": trained.stop_reason,
        "metrics": trained.metrics,
        "sha256": sha256,
        "size_bytes": job.model.stat().st_size,
        "curve": trained.curve,
    }
    if job.as_json:
        output.print_json(result)
        return
    results.print_trained(result, str(job.model), seconds)
    results.print_local_steps(str(job.model))


def _print_read(path: Path, loaded: reading.ReadCorpus) -> None:
    corpus = loaded.corpus
    found = report.report(corpus, loaded.repaired_labels)
    statistics = CorpusStatistics.model_validate(found, from_attributes=True)
    columns = [column.name for column in corpus.columns]
    print_summary(str(path), loaded.format, columns, list(found.label_counts), statistics)
