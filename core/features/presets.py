"""Ready-made feature sets: functions of the number of attribute columns a corpus has."""

from collections.abc import Callable
from typing import Literal

from core.features.derived import Derived

Preset = Literal["chunking", "generic"]


def _chunking(columns: int) -> tuple[str, dict[str, Derived]]:
    """CRF++'s chunking set: a word window with bigrams and, where there is a second column, its n-grams."""
    words = [f"U0{i}:%x[{row},0]" for i, row in enumerate(range(-2, 3))]
    words += ["U05:%x[-1,0]/%x[0,0]", "U06:%x[0,0]/%x[1,0]"]
    tags: list[str] = []
    if columns > 1:
        tags = [f"U1{i}:%x[{row},1]" for i, row in enumerate(range(-2, 3))]
        tags += [f"U1{5 + i}:%x[{row},1]/%x[{row + 1},1]" for i, row in enumerate(range(-2, 2))]
        tags += [f"U2{i}:%x[{row},1]/%x[{row + 1},1]/%x[{row + 2},1]" for i, row in enumerate(range(-2, 1))]
    return "\n".join([*words, *tags, "B"]), {}


def _generic(columns: int) -> tuple[str, dict[str, Derived]]:
    """A set that serves most tasks untuned: word window, affixes, shape, and a window of every other column."""
    lines = [f"W{row:+d}:%x[{row},0]" for row in range(-2, 3)]
    lines += ["WW-:%x[-1,0]/%x[0,0]", "WW+:%x[0,0]/%x[1,0]", "L:%x[0,lower]"]
    lines += [f"P{n}:%x[0,prefix{n}]" for n in range(1, 5)]
    lines += [f"S{n}:%x[0,suffix{n}]" for n in range(1, 5)]
    lines += [f"H{row:+d}:%x[{row},shape]" for row in range(-1, 2)]
    lines += ["C:%x[0,collapsed]", "HH:%x[-1,collapsed]/%x[0,collapsed]/%x[1,collapsed]"]
    for column in range(1, columns):
        lines += [f"X{column}{row:+d}:%x[{row},{column}]" for row in range(-1, 2)]
        lines += [f"X{column}-:%x[-1,{column}]/%x[0,{column}]", f"X{column}+:%x[0,{column}]/%x[1,{column}]"]
    derived = {
        "lower": Derived(kind="lower"),
        "shape": Derived(kind="shape"),
        "collapsed": Derived(kind="collapsed-shape"),
        **{f"prefix{n}": Derived(kind="prefix", n=n) for n in range(1, 5)},
        **{f"suffix{n}": Derived(kind="suffix", n=n) for n in range(1, 5)},
    }
    return "\n".join([*("U" + line for line in lines), "B"]), derived


PRESETS: dict[Preset, Callable[[int], tuple[str, dict[str, Derived]]]] = {
    "chunking": _chunking,
    "generic": _generic,
}
