r"""Regular expressions over one value, in time linear in its length whatever the expression says.

Two dialects compile to one program, and one matcher runs it:

- `wapiti`: the subset that Wapiti's patterns have. `.`, the classes `\a \d \l \p \s \u \w` (in capitals their
  complements), any other character after a backslash for itself, `^` first and `$` last as anchors, `*` and `?` after a
  character. `*` takes as few characters as will do and `?` takes one if it can, as Wapiti's matcher does.
- `extended`: what users of regular expressions expect. Also sets `[a-z]`, groups `(...)` and `(?:...)`, `|`, `+`,
  `{2,4}`, and the lazy forms `*?`, `+?`, `??`, `{2,4}?`; `\w \d \s` as in Python, with `\t` and `\n`.

There are no back references and no looking around: without them a place in the program and a place in the text say all
about a search, so one that has failed from there once is never tried again. That bounds the steps by the product of
both lengths, where matchers that backtrack freely can take exponential time.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Dialect = Literal["extended", "wapiti"]

#: Real expressions have a few dozen steps; the bound also keeps `((a{99}){99}){99}` small.
MAX_STEPS = 512
#: Groups within groups: far more than anybody reads, far fewer than Python's stack holds.
MAX_DEPTH = 50
#: How much of a value is looked at. Words are shorter; a line of a megabyte would cost minutes.
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
    """An expression, checked when it is made: ValueError says what is wrong and at which character."""

    pattern: str
    dialect: Dialect = "extended"

    def __post_init__(self) -> None:
        self._program  # noqa: B018  # compiles, and so raises now rather than at the first value

    @cached_property
    def _program(self) -> tuple[_Step, ...]:
        parser = _Wapiti(self.pattern) if self.dialect == "wapiti" else _Extended(self.pattern)
        return tuple(parser.program())

    def find(self, text: str) -> str | None:
        """The leftmost match in the first `MAX_TEXT` characters, or None."""
        text = text[:MAX_TEXT]
        program, size = self._program, len(text)
        failed: set[int] = set()
        for start in range(size + 1):
            stack = [start]  # program step * (size + 1) + place in the text
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


class _Parser:
    """What the dialects share: the text, where the parser stands in it, and the program so far."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.steps: list[_Step] = []

    @property
    def next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def wrong(self, reason: str) -> ValueError:
        return ValueError(f"{reason} at character {self.at + 1} of the regular expression")

    def emit(self, operation: int, test: _Test | None = None, targets: tuple[int, ...] | None = None) -> int:
        if len(self.steps) >= MAX_STEPS:
            raise self.wrong(f"more than {MAX_STEPS} steps")
        self.steps.append((operation, test, (len(self.steps) + 1,) if targets is None else targets))
        return len(self.steps) - 1

    def aim(self, step: int, *targets: int) -> None:
        self.steps[step] = (*self.steps[step][:2], targets)

    def starred(self, first: int, *, lazy: bool) -> None:
        """Repeat what was emitted from `first` on, which begins with a split made for that."""
        after = self.emit(_SPLIT, targets=(first,)) + 1
        self.aim(first, *((after, first + 1) if lazy else (first + 1, after)))

    def optional(self, first: int, *, lazy: bool) -> None:
        """Let what was emitted from `first` on, behind a split, be left out."""
        after = len(self.steps)
        self.aim(first, *((after, first + 1) if lazy else (first + 1, after)))

    def escaped(self, classes: dict[str, _Test]) -> _Test:
        """Read what follows a backslash: a class, its complement, or a character for itself."""
        self.at += 1
        c = self.next
        if not c:
            raise self.wrong("a backslash with nothing behind it")
        self.at += 1
        if c in classes:
            return classes[c]
        if c.lower() in classes and c.isupper():
            inside = classes[c.lower()]
            return lambda each: not inside(each)
        return _is(self.control(c))

    def control(self, c: str) -> str:
        return c


class _Wapiti(_Parser):
    """Wapiti's subset: a row of characters, each once, at will, or any number of times."""

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
            raise self.wrong(f"{self.next!r} without a character before it; write it as \\{self.next}")
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


class _Extended(_Parser):
    """The usual syntax, by recursive descent."""

    def program(self) -> list[_Step]:
        self._choice(0)
        if self.next:
            raise self.wrong("a ) without its (")
        self.emit(_FOUND)
        return self.steps

    def control(self, c: str) -> str:
        if c in _CONTROLS:
            return _CONTROLS[c]
        if c.isalnum():
            raise self.wrong(f"\\{c} is not known here: no back references, no looking around")
        return c

    def _choice(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self.wrong("groups too deep")
        begin, ends = len(self.steps), []
        while True:
            self._sequence(depth)
            if self.next != "|":
                break
            self.at += 1
            # A split goes before what was just read, and a jump to the common end behind it.
            self._shift(begin)
            ends.append(self.emit(_SPLIT))
            self.aim(begin, begin + 1, len(self.steps))
            begin = len(self.steps)
        for end in ends:
            self.aim(end, len(self.steps))

    def _sequence(self, depth: int) -> None:
        while self.next and self.next not in "|)":
            first, at = len(self.steps), self.at
            self._atom(depth)
            self._repeats(first, at, depth)

    def _atom(self, depth: int) -> None:
        c = self.next
        if c in "*+?{":
            raise self.wrong(f"nothing before {c!r} to repeat")
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
                    raise self.wrong("only (...) and (?:...) are groups here")
                self.at += 2
            self._choice(depth + 1)
            if self.next != ")":
                raise self.wrong("a ( without its )")
            self.at += 1
        elif c in "^$":
            self.emit(_START if c == "^" else _END)
        else:
            self.emit(_TAKE, _any if c == "." else _is(c))

    def _repeats(self, first: int, at: int, depth: int) -> None:
        """Read what stands behind an atom, whose steps begin at `first` and whose text at `at`."""
        c = self.next
        if not c or c not in "*+?{":
            return
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(c) or self._counts()
        self.at += 1
        lazy = self.next == "?"
        self.at += lazy
        after = self.at
        if self.next and self.next in "*+?{":
            raise self.wrong("a repeat of a repeat; use a group")
        del self.steps[first:]

        def again() -> None:
            self.at = at
            self._atom(depth)

        for _ in range(least):
            again()
        if most is None:
            split = self.emit(_SPLIT)
            again()
            self.starred(split, lazy=lazy)
        splits = []
        for _ in range(0 if most is None else most - least):
            splits.append(self.emit(_SPLIT))
            again()
        for split in splits:
            self.optional(split, lazy=lazy)
        self.at = after

    def _counts(self) -> tuple[int, int | None]:
        """Read {n}, {n,} or {n,m} up to the closing brace, which is left to the caller."""
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, self.at)].partition(",")
        digits = low.isascii() and low.isdigit() and (not high or (high.isascii() and high.isdigit()))
        if end < 0 or not digits or len(low) > 3 or len(high) > 3:
            raise self.wrong("a repeat is written {2}, {2,} or {2,4}")
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self.wrong(f"a repeat counts up to {MAX_REPEAT}, the lesser number first")
        self.at = end
        return least, most

    def _set(self) -> _Test:
        """Read [abc], [a-z], [^...]."""
        self.at += 1
        negated = self.next == "^"
        self.at += negated
        tests: list[_Test] = []
        while self.next != "]" or not tests:
            low = self._member(tests)
            if low is None:
                continue
            if self.next == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._member([])
                if high is None or high < low:
                    raise self.wrong("a range runs from a lesser character to a greater one")
                tests.append(_between(low, high))
            else:
                tests.append(_is(low))
        self.at += 1
        members = tuple(tests)
        return lambda c: any(test(c) for test in members) != negated

    def _member(self, tests: list[_Test]) -> str | None:
        """Read a character of a set; a class goes into `tests` instead, and makes None."""
        c = self.next
        if not c:
            raise self.wrong("a [ without its ]")
        if c != "\\":
            self.at += 1
            return c
        name = self.pattern[self.at + 1 : self.at + 2]
        if name and name.lower() in _EXTENDED:
            tests.append(self.escaped(_EXTENDED))
            return None
        self.at += 2
        if not name:
            raise self.wrong("a [ without its ]")
        return self.control(name)

    def _shift(self, begin: int) -> None:
        """Make room for one step at `begin`."""
        moved = [
            (operation, test, tuple(target + 1 for target in targets))
            for operation, test, targets in self.steps[begin:]
        ]
        del self.steps[begin:]
        self.emit(_SPLIT)
        self.steps += moved


def _any(c: str) -> bool:  # noqa: ARG001
    return True


def _is(wanted: str) -> _Test:
    return wanted.__eq__


def _between(low: str, high: str) -> _Test:
    return lambda c: low <= c <= high
