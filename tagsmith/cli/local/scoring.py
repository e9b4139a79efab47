"""`tagsmith eval --local`: score model files on a labelled file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagsmith.cli import output
from tagsmith.cli.errors import CommandError
from tagsmith.cli.local import reading
from tagsmith.cli.runs import results
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import TREES_NOT_LABELS
from tagsmith.core.pipeline import evaluation

#: As the `evaluate` job has by default.
RESAMPLES, CONFIDENCE, SEED = 10_000, 0.95, 1


@dataclass(frozen=True, slots=True)
class LocalScoring:
    """Which models to score, and on what."""

    models: Sequence[Path]
    corpus: Path
    format: str | None
    format_options: dict[str, str]
    as_json: bool


def run(scoring: LocalScoring) -> int:
    """Score models and test their differences for significance."""
    corpus = reading.read(scoring.corpus, scoring.format, scoring.format_options).corpus
    if corpus.trees is not None:
        raise CommandError(f"{scoring.corpus} {TREES_NOT_LABELS}")
    if corpus.labels is None:
        raise CommandError(f"{scoring.corpus} has no labels to compare with.")
    taggings = [
        finished(evaluation.tag_corpus(str(path), reading.tagger_of(path), corpus)) for path in scoring.models
    ]
    pairs = finished(evaluation.compare_all(taggings, RESAMPLES, CONFIDENCE, SEED))
    scored: list[dict[str, Any]] = [
        {"model": tagging.name, "metrics": tagging.metrics.as_dict()} for tagging in taggings
    ]
    result = {"corpus": str(scoring.corpus), "models": scored, "pairs": pairs}
    if scoring.as_json:
        output.print_json(result)
    else:
        results.print_evaluation(result)
    return 0
