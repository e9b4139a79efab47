r"""Regular expressions over one value. Both compiling and matching take bounded time for every expression.

Two dialects compile to the same kind of program, which one matcher runs:

- `wapiti`: the subset of Wapiti's patterns. `.`, the classes `\a \d \l \p \s \u \w` (upper case: the complement), a
  backslash before any other character for that character, `^` first and `$` last as anchors, `*` and `?` after a
  character. As in Wapiti, `*` is lazy and `?` is greedy.
- `extended`: the usual syntax. Also sets `[a-z]`, groups `(...)` and `(?:...)`, `|`, `+`, `{2,4}`, and the lazy forms
  `*?`, `+?`, `??`, `{2,4}?`; `\w \d \s` as in Python, with `\t` and `\n`.

Compiling: the parser reads each character once. A repeat copies the compiled steps of its operand, so the work is
linear in the length of the pattern and the size of the program. Both have a limit.

Matching: back references and lookaround do not exist, so a step of the program and a position in the text determine
whether the rest can match. A pair that has failed once is never tried again. This bounds the work by the product of
both lengths, where matchers that backtrack freely can take exponential time.
"""

import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

Dialect = Literal["extended", "wapiti"]

#: The most characters of a pattern. Real patterns have a few dozen.
MAX_PATTERN = 500
#: The most steps of a program. Real patterns have a few dozen. The limit refuses `((a{99}){99}){99}`.
MAX_STEPS = 512
#: Steps that compiling may write or move. A repeat of `{0}` discards steps and an alternative moves them, so this can
#: exceed the size of the program, in real expressions by a few times.
MAX_WORK = 16 * MAX_STEPS
#: The deepest nesting of groups, far below Python's recursion limit.
MAX_DEPTH = 50
#: Characters of a value that are searched. Words are shorter. A line of a megabyte would take minutes.
MAX_TEXT = 1024
MAX_REPEAT = 200

_Test = Callable[[str], bool]
# Operations of a program, each with its argument.
_TAKE, _SPLIT, _START, _END, _FOUND = range(5)
#: (operation, test, targets in order of preference)
_Step = tuple[int, _Test | None, tuple[int, ...]]


def _punctuation(c: str) -> bool:
    return unicodedata.category(c)[0] in "PS"


_WAPITI: dict[str, _Test] = {
    "a": str.isalpha, "d": str.isdecimal, "l": str.islower, "p": _punctuation, "s": str.isspace, "u": str.isupper,
    "w": str.isalnum,
}  # fmt: skip
_EXTENDED: dict[str, _Test] = {
    "d": str.isdecimal, "s": str.isspace, "w": lambda c: c.isalnum() or c == "_",
}  # fmt: skip
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r"}


@dataclass(frozen=True)
class Regex:
    """A compiled expression. Raises ValueError, which names the character, if the pattern is invalid."""

    pattern: str
    dialect: Dialect = "extended"

    def __post_init__(self) -> None:
        self._program  # noqa: B018  # compile now, so that errors do not wait for the first value

    @cached_property
    def _program(self) -> tuple[_Step, ...]:
        return tuple(parser_of(self.pattern, self.dialect).program())

    def automaton(self) -> "Automaton":
        """Return the expression as an automaton. Raises ValueError for anchors, which it cannot hold."""
        program = self._program
        if any(operation in (_START, _END) for operation, _, _ in program):
            raise ValueError("The anchors ^ and $ are not supported here. Leave them out.")
        takes = [step for step, (operation, _, _) in enumerate(program) if operation == _TAKE]
        number_of = {step: number for number, step in enumerate(takes)}
        tests = [program[step][1] or _any for step in takes]
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
            if operation == _FOUND:
                found.append(-1)
                break  # no later alternative is ever preferred to a match
            if operation == _TAKE:
                found.append(number_of[here])
            else:
                stack.extend(reversed(targets))
        return tuple(found)

    def find(self, text: str) -> str | None:
        """The leftmost match in the first `MAX_TEXT` characters, or None."""
        text = text[:MAX_TEXT]
        program, size = self._program, len(text)
        failed: set[int] = set()
        for start in range(size + 1):
            stack = [start]  # program step * (size + 1) + position in the text
            while stack:
                state = stack.pop()
                if state in failed:
                    continue
                failed.add(state)
                step, at = divmod(state, size + 1)
                operation, test, targets = program[step]
                if operation == _FOUND:
                    return text[start:at]
                if operation == _TAKE:
                    if at < size and test is not None and test(text[at]):
                        stack.append(targets[0] * (size + 1) + at + 1)
                elif (
                    operation == _SPLIT
                    or (operation == _START and at == 0)
                    or (operation == _END and at == size)
                ):
                    stack.extend(target * (size + 1) + at for target in reversed(targets))
        return None


@dataclass(frozen=True, slots=True)
class Automaton:
    """States and the tests between them. State 0 is the start, and state q + 1 the one after test q."""

    tests: tuple[_Test, ...]
    #: For each state, the numbers of the tests to try, in order of preference; -1 is a match.
    alternatives: tuple[tuple[int, ...], ...]


class Parser(ABC):
    """The parser that the dialects share: the pattern, the position in it, and the program so far."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.steps: list[_Step] = []
        self.work = 0  # steps written or moved
        if len(pattern) > MAX_PATTERN:
            self.at = MAX_PATTERN
            raise self.wrong(
                f"The pattern has more than {MAX_PATTERN} characters. Split it into several columns."
            )

    @abstractmethod
    def program(self) -> list[_Step]:
        """Parse the whole pattern and return its steps."""

    @property
    def next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def wrong(self, reason: str) -> ValueError:
        return ValueError(f"{reason} See character {self.at + 1} of the regular expression.")

    def emit(self, operation: int, test: _Test | None = None, targets: tuple[int, ...] | None = None) -> int:
        if len(self.steps) >= MAX_STEPS:
            raise self.wrong(
                f"The pattern compiles to more than {MAX_STEPS} steps. Use smaller repeat counts, or * and +."
            )
        self.spend(1)
        self.steps.append((operation, test, (len(self.steps) + 1,) if targets is None else targets))
        return len(self.steps) - 1

    def spend(self, steps: int) -> None:
        """Count work against `MAX_WORK`."""
        self.work += steps
        if self.work > MAX_WORK:
            raise self.wrong(
                "There are too many repeats and alternatives. Split the pattern into several columns."
            )

    def paste(self, steps: Sequence[_Step], first: int) -> None:
        """Append steps that were compiled to begin at `first`."""
        distance = len(self.steps) - first
        for operation, test, targets in steps:
            self.emit(operation, test, tuple(target + distance for target in targets))

    def aim(self, step: int, *targets: int) -> None:
        self.steps[step] = (*self.steps[step][:2], targets)

    def starred(self, first: int, *, lazy: bool) -> None:
        """Repeat the steps from `first` on. Step `first` is a split reserved for this."""
        after = self.emit(_SPLIT, targets=(first,)) + 1
        self.aim(first, *((after, first + 1) if lazy else (first + 1, after)))

    def optional(self, first: int, *, lazy: bool) -> None:
        """Make the steps from `first` on optional. Step `first` is a split reserved for this."""
        after = len(self.steps)
        self.aim(first, *((after, first + 1) if lazy else (first + 1, after)))

    def escaped(self, classes: dict[str, _Test]) -> _Test:
        """Read an escape: a class, the complement of a class, or a literal character."""
        self.at += 1
        c = self.next
        if not c:
            raise self.wrong("A character must follow the backslash.")
        self.at += 1
        if c in classes:
            return classes[c]
        if c.lower() in classes and c.isupper():
            return _complement(classes[c.lower()])
        return _is(self.control(c))

    def control(self, c: str) -> str:
        return c


class _Wapiti(Parser):
    """Wapiti's subset: a sequence of characters, each once, optional, or repeated."""

    def program(self) -> list[_Step]:
        if self.next == "^":
            self.emit(_START)
            self.at += 1
        while self.next:
            if self.next == "$" and self.at + 1 == len(self.pattern):
                self.emit(_END)
                break
            self._item()
        self.emit(_FOUND)
        return self.steps

    def _item(self) -> None:
        if self.next in "*?":
            raise self.wrong(
                f"No character is before {self.next!r}. Write \\{self.next} for a literal {self.next}."
            )
        if self.next == "\\":
            test = self.escaped(_WAPITI)
        else:
            test = _any if self.next == "." else _is(self.next)
            self.at += 1
        repeat = self.next
        if repeat not in ("*", "?"):
            self.emit(_TAKE, test)
            return
        self.at += 1
        first = self.emit(_SPLIT)
        self.emit(_TAKE, test)
        if repeat == "*":
            self.starred(first, lazy=True)
        else:
            self.optional(first, lazy=False)


class _Extended(Parser):
    """The usual syntax, parsed by recursive descent."""

    def program(self) -> list[_Step]:
        self._choice(0)
        if self.next:
            raise self.wrong("A ) has no (. Write \\) for a literal ).")
        self.emit(_FOUND)
        return self.steps

    def control(self, c: str) -> str:
        if c in _CONTROLS:
            return _CONTROLS[c]
        if c.isalnum():
            raise self.wrong(f"\\{c} is not supported. There are no back references and no lookaround.")
        return c

    def _choice(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self.wrong(f"Groups are nested too deeply. Nest at most {MAX_DEPTH}.")
        begin, ends = len(self.steps), []
        while True:
            self._sequence(depth)
            if self.next != "|":
                break
            self.at += 1
            # Insert a split before the alternative just read, and append a jump to the common end.
            self._shift(begin)
            ends.append(self.emit(_SPLIT))
            self.aim(begin, begin + 1, len(self.steps))
            begin = len(self.steps)
        for end in ends:
            self.aim(end, len(self.steps))

    def _sequence(self, depth: int) -> None:
        while self.next and self.next not in "|)":
            first = len(self.steps)
            self._atom(depth)
            self._repeats(first)

    def _atom(self, depth: int) -> None:
        c = self.next
        if c in "*+?{":
            raise self.wrong(f"There is nothing before {c!r} to repeat.")
        if c == "\\":
            self.emit(_TAKE, self.escaped(_EXTENDED))
            return
        if c == "[":
            self.emit(_TAKE, self._set())
            return
        self.at += 1
        if c == "(":
            if self.next == "?":
                if self.pattern[self.at : self.at + 2] != "?:":
                    raise self.wrong("Write a group as (...) or (?:...).")
                self.at += 2
            self._choice(depth + 1)
            if self.next != ")":
                raise self.wrong("A ( has no ). Write \\( for a literal (.")
            self.at += 1
        elif c in "^$":
            self.emit(_START if c == "^" else _END)
        else:
            self.emit(_TAKE, _any if c == "." else _is(c))

    def _repeats(self, first: int) -> None:
        """Read the repeat after an atom, if there is one. The steps of the atom begin at `first`."""
        c = self.next
        if not c or c not in "*+?{":
            return
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(c) or self._counts()
        self.at += 1
        lazy = self.next == "?"
        self.at += lazy
        if self.next and self.next in "*+?{":
            raise self.wrong("A repeat cannot be repeated. Use a group.")
        if len(self.steps) > first:  # repeating an empty operand changes nothing
            self._repeat(first, least, most, lazy=lazy)

    def _repeat(self, first: int, least: int, most: int | None, *, lazy: bool) -> None:
        """Repeat the steps from `first` on: `least` copies, then optional ones, or a loop without `most`."""
        operand = self.steps[first:]
        if not least:
            del self.steps[first:]
        for _ in range(least - 1):
            self.paste(operand, first)
        if most is None:
            split = self.emit(_SPLIT)
            self.paste(operand, first)
            self.starred(split, lazy=lazy)
            return
        splits = []
        for _ in range(most - least):
            splits.append(self.emit(_SPLIT))
            self.paste(operand, first)
        for split in splits:
            self.optional(split, lazy=lazy)

    def _counts(self) -> tuple[int, int | None]:
        """Read {n}, {n,} or {n,m} up to the closing brace, which is left to the caller."""
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, self.at)].partition(",")
        digits = low.isascii() and low.isdigit() and (not high or (high.isascii() and high.isdigit()))
        if end < 0 or not digits or len(low) > 3 or len(high) > 3:
            raise self.wrong("Write a repeat as {2}, {2,} or {2,4}.")
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self.wrong(f"A repeat counts up to {MAX_REPEAT}. Give the smaller number first.")
        self.at = end
        return least, most

    def _set(self) -> _Test:
        """Read [abc], [a-z], [^...]."""
        self.at += 1
        negated = self.next == "^"
        self.at += negated
        members = _Members()
        while self.next != "]" or members.empty:
            low = self._member()
            if not isinstance(low, str):
                members.classes.add(low)
            elif self.next == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._member()
                if not isinstance(high, str) or high < low:
                    raise self.wrong("A range must go from a smaller to a greater character.")
                members.ranges.append((low, high))
            else:
                members.ranges.append((low, low))
        self.at += 1
        return members.test(negated=negated)

    def _member(self) -> str | _Test:
        """Read a character or a class of a set."""
        c = self.next
        if not c:
            raise self.wrong("A [ has no ]. Write \\[ for a literal [.")
        if c != "\\":
            self.at += 1
            return c
        name = self.pattern[self.at + 1 : self.at + 2]
        if name and name.lower() in _EXTENDED:
            return self.escaped(_EXTENDED)
        self.at += 2
        if not name:
            raise self.wrong("A [ has no ]. Write \\[ for a literal [.")
        return self.control(name)

    def _shift(self, begin: int) -> None:
        """Insert a split at `begin`."""
        self.spend(len(self.steps) - begin)
        moved = [
            (operation, test, tuple(target + 1 for target in targets))
            for operation, test, targets in self.steps[begin:]
        ]
        del self.steps[begin:]
        self.emit(_SPLIT)
        self.steps += moved


@dataclass
class _Members:
    """The members of a set. A test takes time logarithmic in the number of ranges."""

    ranges: list[tuple[str, str]] = field(default_factory=list)
    classes: set[_Test] = field(default_factory=set)

    @property
    def empty(self) -> bool:
        return not self.ranges and not self.classes

    def test(self, *, negated: bool) -> _Test:
        lows: list[str] = []
        highs: list[str] = []
        for low, high in sorted(self.ranges):
            if highs and low <= highs[-1]:
                highs[-1] = max(highs[-1], high)
            else:
                lows.append(low)
                highs.append(high)
        classes = tuple(self.classes)

        def contains(c: str) -> bool:
            i = bisect_right(lows, c) - 1
            return (i >= 0 and c <= highs[i]) or any(test(c) for test in classes)

        return (lambda c: not contains(c)) if negated else contains


def _any(c: str) -> bool:  # noqa: ARG001
    return True


@cache
def _complement(test: _Test) -> _Test:
    return lambda c: not test(c)


def _is(wanted: str) -> _Test:
    return wanted.__eq__


_PARSERS: dict[Dialect, type[Parser]] = {"extended": _Extended, "wapiti": _Wapiti}


def parser_of(pattern: str, dialect: Dialect) -> Parser:
    """Make the parser of a dialect; `program` compiles the pattern and `work` counts the steps that took."""
    return _PARSERS[dialect](pattern)
