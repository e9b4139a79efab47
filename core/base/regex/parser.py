"""The parser that the dialects share: it reads the pattern and writes the program."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tagsmith.core.base.regex.characters import character, complement
from tagsmith.core.base.regex.program import MAX_STEPS, MAX_WORK, SPLIT, Step, Test

#: The most characters of a pattern. Real patterns have a few dozen.
MAX_PATTERN = 500


class Parser(ABC):
    """The parser that the dialects share: the pattern, the position in it, and the program so far."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.steps: list[Step] = []
        self.work = 0  # steps written or moved
        if len(pattern) > MAX_PATTERN:
            self.at = MAX_PATTERN
            raise self.wrong(
                f"The pattern has more than {MAX_PATTERN} characters. Split it into several columns."
            )

    @abstractmethod
    def program(self) -> list[Step]:
        """Parse the whole pattern and return its steps."""

    @property
    def next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def wrong(self, reason: str) -> ValueError:
        return ValueError(f"{reason} See character {self.at + 1} of the regular expression.")

    def emit(self, operation: int, test: Test | None = None, targets: tuple[int, ...] | None = None) -> int:
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

    def paste(self, steps: Sequence[Step], first: int) -> None:
        """Append steps that were compiled to begin at `first`."""
        distance = len(self.steps) - first
        for operation, test, targets in steps:
            self.emit(operation, test, tuple(target + distance for target in targets))

    def aim(self, step: int, *targets: int) -> None:
        self.steps[step] = (*self.steps[step][:2], targets)

    def starred(self, first: int, *, lazy: bool) -> None:
        """Repeat the steps from `first` on. Step `first` is a split reserved for this."""
        after = self.emit(SPLIT, targets=(first,)) + 1
        self.aim(first, *((after, first + 1) if lazy else (first + 1, after)))

    def optional(self, first: int, *, lazy: bool) -> None:
        """Make the steps from `first` on optional. Step `first` is a split reserved for this."""
        after = len(self.steps)
        self.aim(first, *((after, first + 1) if lazy else (first + 1, after)))

    def escaped(self, classes: dict[str, Test]) -> Test:
        """Read an escape: a class, the complement of a class, or a literal character."""
        self.at += 1
        c = self.next
        if not c:
            raise self.wrong("A character must follow the backslash.")
        self.at += 1
        if c in classes:
            return classes[c]
        if c.lower() in classes and c.isupper():
            return complement(classes[c.lower()])
        return character(self.control(c))

    def control(self, c: str) -> str:
        return c
