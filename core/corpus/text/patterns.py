"""Tokens that match a regular expression, in time linear in the text.

Matches are those of a backtracking matcher: the leftmost one, by the alternatives in their order, then the leftmost one
after it. Finding them one after another can take quadratic time even without backtracking, as `a*b|a` does on a long
row of `a`: each match looks ahead to the end. So the text is read backwards once. With V_t(q) the end of the match from
state q at position t, or none,

    V_t(q) = the first that exists, over the alternatives of q in order, of
             t                      if the alternative is a match
             V_{t+1}(q')            if it is a test that the character t passes, after which the state is q'

which takes the number of alternatives per character. The matches are then read off forwards from V(start).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Places
from tagsmith.core.base.jit import kernel
from tagsmith.core.base.regex import Automaton, Regex
from tagsmith.core.base.regex.matching import classes_of, passes_of
from tagsmith.core.corpus.text.words import Points

#: The most alternatives of all states: the work per character. Real patterns have a few dozen; a megabyte then takes
#: some hundredths of a second, at the limit about two seconds.
MAX_ALTERNATIVES = 1000
#: The most tests, each of which is called for every distinct character of a text.
MAX_TESTS = 64


@kernel
def find_matches(
    classes: NDArray[np.int64], passes: NDArray[np.bool_], alternatives: NDArray[np.int64], bounds: Places,
    values: NDArray[np.int64], ends: Places, starts: Places, stops: Places,
) -> int:  # fmt: skip
    """Fill `starts` and `stops` with the matches; return their number. Empty matches are skipped.

    `passes[c, q]` is whether characters of class c pass test q. State 0 is the start and state q + 1 the one after test
    q. The alternatives of state q are at bounds[q]:bounds[q + 1]; each is a test, or -1 for a match. `values` is (2,
    states), scratch; `ends` is (characters + 1,), V(start).
    """
    n, states = classes.shape[0], bounds.shape[0] - 1
    for t in range(n, -1, -1):
        now, later = t & 1, (t + 1) & 1
        for q in range(states):
            value = -1
            for i in range(bounds[q], bounds[q + 1]):
                test = alternatives[i]
                if test < 0:
                    value = t
                    break
                if t < n and passes[classes[t], test] and values[later, test + 1] >= 0:
                    value = values[later, test + 1]
                    break
            values[now, q] = value
        ends[t] = values[now, 0]
    count, t = 0, 0
    while t < n:
        if ends[t] > t:
            starts[count], stops[count] = t, ends[t]
            count += 1
            t = ends[t]
        else:
            t += 1
    return count


@lru_cache(maxsize=64)
def automaton_of(pattern: str) -> Automaton:
    """Return the automaton of a pattern; raise ValueError if it cannot define tokens."""
    automaton = Regex(pattern).automaton()
    if -1 in automaton.alternatives[0][:1]:
        raise ValueError("The pattern prefers an empty match. Let it match at least one character.")
    if len(automaton.tests) > MAX_TESTS or sum(map(len, automaton.alternatives)) > MAX_ALTERNATIVES:
        raise ValueError(
            "The pattern is too large for a tokenizer. Use fewer alternatives and smaller repeats."
        )
    return automaton


def matches(points: Points, pattern: str) -> tuple[Places, Places]:
    """Return the start and stop of each token that matches the pattern."""
    automaton = automaton_of(pattern)
    distinct, classes = classes_of(points)
    passes = passes_of(distinct, automaton.tests)
    flat: list[Any] = [item for state in automaton.alternatives for item in state]
    bounds = np.cumsum([0, *map(len, automaton.alternatives)])
    values = np.full((2, len(automaton.alternatives)), -1, np.int64)
    starts, stops = np.empty(points.size, np.int64), np.empty(points.size, np.int64)
    count = find_matches(
        classes, passes, np.array(flat, np.int64), bounds.astype(np.int64), values,
        np.empty(points.size + 1, np.int64), starts, stops,
    )  # fmt: skip
    return starts[:count].copy(), stops[:count].copy()
