"""Matching: a compiled expression finds the leftmost match, or becomes an automaton."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tagsmith.core.base.regex.characters import anything
from tagsmith.core.base.regex.extended import ExtendedParser
from tagsmith.core.base.regex.matching import Program, classes_of, first_matches
from tagsmith.core.base.regex.parser import Parser
from tagsmith.core.base.regex.program import END, FOUND, START, TAKE, Dialect, Step, Test
from tagsmith.core.base.regex.wapiti import WapitiParser

#: Characters of a value that are searched. Words are shorter. A line of a megabyte would take minutes.
MAX_TEXT = 1024


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

    def find(self, text: str) -> str | None:
        """The leftmost match in the first `MAX_TEXT` characters, or None."""
        return self.find_all([text])[0]

    def find_all(self, texts: Sequence[str]) -> list[str | None]:
        """The leftmost match in the first `MAX_TEXT` characters of each text, or None."""
        program, tests = self._compiled
        texts = [text[:MAX_TEXT] for text in texts]
        lengths = np.array([len(text) for text in texts], np.int64)
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4")
        classes, passes = classes_of(points, tests)
        states = program.operations.size * (int(lengths.max(initial=0)) + 1)
        seen, stack = np.empty(states, np.bool_), np.empty(2 * states + 1, np.int64)
        starts, stops = np.empty(lengths.size, np.int64), np.empty(lengths.size, np.int64)
        first_matches(program, classes, np.cumsum(lengths), passes, seen, stack, starts, stops)
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
