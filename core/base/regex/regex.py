"""Matching: a compiled expression finds the leftmost match, or becomes an automaton."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import TooLarge
from tagsmith.core.base.regex.characters import anything
from tagsmith.core.base.regex.extended import ExtendedParser
from tagsmith.core.base.regex.matching import Program, SearchScratch, classes_of, first_matches, passes_of
from tagsmith.core.base.regex.parser import Parser
from tagsmith.core.base.regex.program import END, FOUND, START, TAKE, Dialect, Step, Test
from tagsmith.core.base.regex.wapiti import WapitiParser

#: Characters of a value that are searched. Words are shorter. A line of a megabyte would take minutes.
MAX_TEXT = 1024
#: Steps while somebody waits for a response: at most 10 s. Real expressions take a few steps per character.
INTERACTIVE_STEPS = 500_000_000
#: The steps that take as long as one test of a character, which is a call of Python.
TEST_STEPS = 10
_UNLIMITED = np.iinfo(np.int64).max
_left: ContextVar[NDArray[np.int64] | None] = ContextVar("steps left", default=None)


@contextmanager
def limited(steps: int | None = None) -> Iterator[None]:
    """Limit the steps of all searches in the block together, by default to `INTERACTIVE_STEPS`.

    The search that exceeds the limit raises TooLarge. Inside of another such block, the limit of that one counts.
    """
    outer = _left.get()
    limit = INTERACTIVE_STEPS if steps is None else steps
    token = _left.set(np.array([limit], np.int64) if outer is None else outer)
    try:
        yield
    finally:
        _left.reset(token)


def _too_many_steps() -> TooLarge:
    return TooLarge(
        "Searching this input for the regular expressions of the features takes too long. Send less text per request, "
        "or use simpler expressions.",
        code="too_many_steps",
    )


@dataclass(frozen=True)
class Regex:
    """A compiled expression. Raises ValueError, which names the character, if the pattern is invalid."""

    pattern: str
    dialect: Dialect = "extended"

    def __post_init__(self) -> None:
        self._program  # noqa: B018  # compile now, so that errors do not wait for the first value

    @cached_property
    def _program(self) -> tuple[Step, ...]:
        return tuple(parser_of(self.pattern, self.dialect).program())

    def automaton(self) -> "Automaton":
        """Return the expression as an automaton. Raises ValueError for anchors, which it cannot hold."""
        program = self._program
        if any(operation in (START, END) for operation, _, _ in program):
            raise ValueError("The anchors ^ and $ are not supported here. Leave them out.")
        takes = [step for step, (operation, _, _) in enumerate(program) if operation == TAKE]
        number_of = {step: number for number, step in enumerate(takes)}
        tests = [program[step][1] or anything for step in takes]
        begins = [0, *(program[step][2][0] for step in takes)]
        return Automaton(tuple(tests), tuple(self._alternatives(step, number_of) for step in begins))

    def _alternatives(self, step: int, number_of: dict[int, int]) -> tuple[int, ...]:
        """Return the tests reachable from a step without taking a character, in order of preference; -1 is a match."""
        found: list[int] = []
        seen: set[int] = set()
        stack = [step]
        while stack:
            here = stack.pop()
            if here in seen:
                continue
            seen.add(here)
            operation, _, targets = self._program[here]
            if operation == FOUND:
                found.append(-1)
                break  # no later alternative is ever preferred to a match
            if operation == TAKE:
                found.append(number_of[here])
            else:
                stack.extend(reversed(targets))
        return tuple(found)

    @property
    def steps_per_character(self) -> int:
        """The most steps that a search takes per character."""
        program, tests = self._compiled
        return int(program.operations.size) + TEST_STEPS * len(tests)

    def find(self, text: str) -> str | None:
        """The leftmost match in the first `MAX_TEXT` characters, or None."""
        return self.find_all([text])[0]

    def find_all(self, texts: Sequence[str]) -> list[str | None]:
        """The leftmost match in the first `MAX_TEXT` characters of each text, or None."""
        program, tests = self._compiled
        texts = [text[:MAX_TEXT] for text in texts]
        lengths = np.array([len(text) for text in texts], np.int64)
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4")
        distinct, classes = classes_of(points)
        left = _left.get()
        left = np.array([_UNLIMITED]) if left is None else left
        left[0] -= TEST_STEPS * distinct.size * len(tests)
        if left[0] < 0:
            raise _too_many_steps()
        passes = passes_of(distinct, tests)
        scratch = SearchScratch.of(program, int(lengths.max(initial=0)), left)
        starts, stops = np.empty(lengths.size, np.int64), np.empty(lengths.size, np.int64)
        first_matches(program, classes, np.cumsum(lengths), passes, scratch, starts, stops)
        if left[0] < 0:
            raise _too_many_steps()
        places = zip(texts, starts.tolist(), stops.tolist(), strict=True)
        return [None if start < 0 else text[start:stop] for text, start, stop in places]

    @cached_property
    def _compiled(self) -> tuple[Program, tuple[Test, ...]]:
        return Program.of(self._program)


@dataclass(frozen=True, slots=True)
class Automaton:
    """States and the tests between them. State 0 is the start, and state q + 1 the one after test q."""

    tests: tuple[Test, ...]
    #: For each state, the numbers of the tests to try, in order of preference; -1 is a match.
    alternatives: tuple[tuple[int, ...], ...]


_PARSERS: dict[Dialect, type[Parser]] = {"extended": ExtendedParser, "wapiti": WapitiParser}


def parser_of(pattern: str, dialect: Dialect) -> Parser:
    """Make the parser of a dialect; `program` compiles the pattern and `work` counts the steps that took."""
    return _PARSERS[dialect](pattern)
