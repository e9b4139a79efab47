"""Generators that work in steps, so that whoever drives them can stop between any two."""

from collections.abc import Callable, Generator
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


def mapped(steps: Generator[S, None, R], change: Callable[[S], T]) -> Generator[T, None, R]:
    """The same steps, each said as `change` puts it; returns what they return."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            ended: R = end.value
            return ended
        yield change(step)


def finished(steps: Generator[S, None, R], each: Callable[[S], object] = lambda _: None) -> R:
    """Run the steps to their end and give what they return; `each` sees every one on the way."""
    while True:
        try:
            each(next(steps))
        except StopIteration as end:
            ended: R = end.value
            return ended
