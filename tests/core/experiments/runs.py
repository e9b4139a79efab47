"""Driving experiments to their end."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from core.corpus.conll import read_conll
from core.corpus.corpus import Corpus
from core.corpus.generate import generate
from core.learn.progress import Progress
from core.steps import finished

R = TypeVar("R")

#: Words and their neighbours: enough to learn something from, quick to compile.
FEATURES = {"templates": "U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-1,1]\nB"}


def corpus(sentences: int = 120, seed: int = 5) -> Corpus:
    return read_conll(generate("references", sentences, seed), max_line_bytes=1 << 16)


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
