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
both lengths, where matchers that backtrack freely can take exponential time. `limited` bounds it for many values and
expressions together.
"""

from tagsmith.core.base.regex.parser import MAX_PATTERN
from tagsmith.core.base.regex.program import MAX_STEPS, MAX_WORK, Dialect
from tagsmith.core.base.regex.regex import MAX_TEXT, TEST_STEPS, Automaton, Regex, limited, parser_of

__all__ = [
    "MAX_PATTERN", "MAX_STEPS", "MAX_TEXT", "MAX_WORK", "TEST_STEPS", "Automaton", "Dialect", "Regex", "limited",
    "parser_of",
]  # fmt: skip
