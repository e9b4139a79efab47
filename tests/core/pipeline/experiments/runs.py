"""Driving experiments to their end."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.jobs.kinds.compare import CompareSpec
from tagsmith.core.jobs.kinds.tune import TuneSpec
from tagsmith.core.jobs.spec import DevFraction
from tagsmith.core.learn.run.progress import Progress
from tagsmith.core.pipeline.experiments import compare as comparing
from tagsmith.core.pipeline.experiments import tune as tuning
from tagsmith.core.pipeline.experiments.tune import Tuned

R = TypeVar("R")

#: Words and their neighbours: enough to learn something from, quick to compile.
FEATURES = {"templates": "U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-1,1]\nB"}


def corpus(sentences: int = 120, seed: int = 5) -> Corpus:
    return read_conll(generate("references", sentences, seed), max_line_bytes=1 << 16)


def compare(spec: CompareSpec, text: Corpus, **more: Any) -> Generator[Progress, None, dict[str, Any]]:
    """Compare as a job with this spec does."""
    assert isinstance(spec.dev, DevFraction)
    return comparing.compare(spec.runs(), text, spec.dev.fraction, **more)


def tune(
    spec: TuneSpec, text: Corpus, dev: Corpus | None = None, **more: Any
) -> Generator[Progress, None, Tuned]:
    """Tune as a job with this spec does."""
    scoring = tuning.Folds(spec.folds or 0, spec.seed) if dev is None else dev
    return tuning.tune(spec.candidates, text, scoring=scoring, train_best=spec.train is not None, **more)


def driven(steps: Generator[Progress, None, R]) -> tuple[list[Progress], R]:
    said: list[Progress] = []
    return said, finished(steps, said.append)


def until(steps: Generator[Progress, None, Any], reached: Callable[[Progress], bool]) -> Progress:
    """Go on to a step, and stop there."""
    for step in steps:
        if reached(step):
            steps.close()
            return step
    raise AssertionError("it ended before")


def without_seconds(value: Any) -> Any:
    """What must be the same each time."""
    if isinstance(value, dict):
        return {name: without_seconds(each) for name, each in value.items() if name != "seconds"}
    return [without_seconds(each) for each in value] if isinstance(value, list) else value
