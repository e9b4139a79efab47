"""Compiled expressions: the steps of a program, and the limits of its size."""

from collections.abc import Callable
from typing import Literal

Dialect = Literal["extended", "wapiti"]

#: The most steps of a program. Real patterns have a few dozen. The limit refuses `((a{99}){99}){99}`.
MAX_STEPS = 512
#: Steps that compiling may write or move. A repeat of `{0}` discards steps and an alternative moves them, so this can
#: exceed the size of the program, in real expressions by a few times.
MAX_WORK = 16 * MAX_STEPS

Test = Callable[[str], bool]
# Operations of a program, each with its argument.
TAKE, SPLIT, START, END, FOUND = range(5)
#: (operation, test, targets in order of preference)
Step = tuple[int, Test | None, tuple[int, ...]]
