"""Generators that work in steps. The caller can stop between any two steps."""

from collections.abc import Callable, Generator
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


def mapped(steps: Generator[S, None, R], change: Callable[[S], T]) -> Generator[T, None, R]:
    """Yield each step mapped by `change`; return the result of the generator."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            ended: R = end.value
            return ended
        yield change(step)


def finished(steps: Generator[S, None, R], each: Callable[[S], object] = lambda _: None) -> R:
    """Run all steps and return the result of the generator; call `each` with every step."""
    while True:
        try:
            each(next(steps))
        except StopIteration as end:
            ended: R = end.value
            return ended
