"""`tagsmith train --local`: the engine of the service on files. The same spec and seed give the same model file."""

import hashlib
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from tagsmith.cli import lexicons, output, specs
from tagsmith.cli.commands.corpora import print_summary
from tagsmith.cli.errors import INTERRUPTED, CommandError
from tagsmith.cli.files import check_model_target
from tagsmith.cli.lexicons import LexiconFile
from tagsmith.cli.local import reading
from tagsmith.cli.runs import results
from tagsmith.cli.runs.watching import ProgressLine
from tagsmith.client.files import part_file
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.spec import validated
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus import report
from tagsmith.core.corpus.corpus import TREES_NOT_LABELS
from tagsmith.core.features.lexicon.lexicon import Lexicon, Lexicons, id_of, read_lexicon
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
    dev = _dev(job)
    check_model_target(job.model, "--model", training=job.corpus, dev=dev if isinstance(dev, Path) else None)
    found, spec = _lexicons(job)
    learning = _learning(spec, dev, found)
    began = time.monotonic()
    loaded = _read(job, job.corpus)
    dev_set = _read(job, dev).corpus if isinstance(dev, Path) else dev
    init = specs.text_in(job.spec, "init")
    start = None if init is None else Start(reading.tagger_of(specs.path_of(init, job.folder)).model, init)
    if not job.as_json:
        _print_read(job.corpus, loaded)
        results.print_method(job.spec)
    try:
        with ProgressLine(live=job.live, stderr=job.as_json) as line:
            trained = _followed(train(learning, loaded.corpus, dev_set, lexicons=found, init=start), line)
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
    dev = specs.object_in(job.spec, "dev")
    if not dev:
        return None
    match dev:
        case {"corpus": str(corpus), **rest} if not rest:
            return specs.path_of(corpus, job.folder)
        case {"fraction": float(fraction), **rest} if not rest and 0 < fraction < 1:
            return fraction
    raise CommandError("dev of the spec must be {fraction: 0.1} or {corpus: FILE}.")


def _lexicons(job: LocalRun) -> tuple[Lexicons, dict[str, Any]]:
    """Read the lexicons of the spec. Return them by id, and the spec with their ids."""
    found: dict[str, Lexicon] = {}

    def read(source: LexiconFile) -> str:
        made = id_of(source.kind, hashlib.sha256(source.text).hexdigest())
        try:
            found[made] = read_lexicon(source.kind, [source.text], max_line_bytes=reading.MAX_LINE_BYTES)
        except Invalid as error:
            raise Invalid(f"{source.path}: {error.message}", error.faults, code=error.code) from None
        return made

    spec = lexicons.with_ids(dict(job.spec), job.folder, read)
    return found, spec


def _learning(spec: Mapping[str, Any], dev: Path | float | None, found: Lexicons) -> Learning:
    for name, instead in SERVER_ONLY.items():
        if spec.get(name) is not None:
            raise CommandError(f"{name} has no meaning with --local: {instead}")
    body = {name: value for name, value in spec.items() if name not in (*OWN, *SERVER_ONLY)}
    learning = validated(_LEARNING, body, "The spec")
    for name, column in learning.features.lexicons.items():
        if column.lexicon_id not in found:
            raise CommandError(
                f"features.derived.{name}: a lexicon of a server cannot be used with --local. Name a file."
            )
    if learning.stop.keeps_best and dev is None:
        raise CommandError("stop.patience waits for a better score on dev. Give --dev too.")
    return learning


def _read(job: LocalRun, path: Path) -> reading.ReadCorpus:
    """Read a file that must have labels."""
    loaded = reading.read(path, job.format, job.format_options)
    if loaded.corpus.trees is not None:
        raise CommandError(f"{path} {TREES_NOT_LABELS}")
    if loaded.corpus.labels is None:
        raise CommandError(f"{path} has no labels, so there is nothing to learn from it.")
    return loaded


def _followed(steps: Generator[Progress, None, TrainResult], line: ProgressLine) -> TrainResult:
    line.message("reading features; the first run on a machine also compiles kernels")
    return finished(steps, lambda progress: line.update(progress.as_dict(), pass_done=progress.pass_done))


def _save(trained: TrainResult, job: LocalRun, seconds: float) -> None:
    with part_file(job.model) as part:
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
