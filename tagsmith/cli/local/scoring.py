"""`tagsmith eval --local`: score model files on a labelled file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagsmith.cli import output, word_lines
from tagsmith.cli.errors import CommandError
from tagsmith.cli.local import reading
from tagsmith.cli.local.tagging import LocalEngine
from tagsmith.cli.runs import results
from tagsmith.core.base.steps import finished
from tagsmith.core.pipeline import evaluation

#: As the `evaluate` job has by default.
RESAMPLES, CONFIDENCE, SEED = 10_000, 0.95, 1
#: The most memory to parse one sentence: some ten thousand words.
MAX_BYTES = 4 << 30


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
    taggers = [(str(path), reading.tagger_of(path)) for path in scoring.models]
    options = scoring.format_options
    if not options and scoring.corpus.is_file():
        first = LocalEngine(taggers[0][1])
        options = word_lines.options_of_file(scoring.corpus, first.model_input)
    corpus = reading.read(scoring.corpus, scoring.format, options).corpus
    if not corpus.labelled:
        raise CommandError(f"{scoring.corpus} has no labels to compare with.")
    taggings = [finished(evaluation.tag_corpus(name, tagger, corpus, MAX_BYTES)) for name, tagger in taggers]
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
