"""Ready-made feature sets: functions of the number of attribute columns of a corpus.

The presets for dependency trees are in `arc_presets`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tagsmith.core.features.arc_presets import ARC_PRESETS
from tagsmith.core.features.columns.derived import Derived
from tagsmith.core.features.columns.matched.kinds import MatchedSpec
from tagsmith.core.features.columns.matched.same import SameColumn
from tagsmith.core.features.columns.matched.word import WordColumn
from tagsmith.core.features.columns.matched.word_length import WordLengthColumn
from tagsmith.core.features.columns.matched.word_pair import WordPairColumn
from tagsmith.core.features.lexicon.trie import SIDES

Preset = Literal["chunking", "ner", "pos", "segmentation", "generic", "parsing", "parsing-wide"]
#: Templates in CRF++'s syntax, and the derived and matched columns that they name.
FeatureSet = tuple[str, Mapping[str, Derived | MatchedSpec]]

#: Columns for the spelling of a word, by the names used in the templates below.
_SPELLING = {
    "low": Derived(kind="lower"),
    "shape": Derived(kind="collapsed-shape"),
    "orth": Derived(kind="orthography"),
    "first": Derived(kind="first"),
    "len": Derived(kind="length"),
}


@dataclass(frozen=True, slots=True)
class PresetDescription:
    """A preset for people: its name, what it is for, its number of templates, and whether it is for trees.

    The number is that for one column, and for trees that for the columns of `TREEBANK`.
    """

    name: str
    summary: str
    templates: int
    trees: bool


#: The columns of a usual treebank.
TREEBANK = ("form", "lemma", "upos", "feats")


def presets() -> tuple[PresetDescription, ...]:
    """Describe all presets."""
    of_labels = [(name, make.__doc__, make(1)[0].count("\n") + 1, False) for name, make in PRESETS.items()]
    of_trees = [(name, make.__doc__, len(make(TREEBANK)[0]), True) for name, make in ARC_PRESETS.items()]
    return tuple(
        PresetDescription(name, (summary or "").partition("\n")[0], count, trees)
        for name, summary, count, trees in (*of_labels, *of_trees)
    )


def _chunking(columns: int) -> FeatureSet:
    """CRF++'s chunking set: a word window with bigrams and, if there is a second column, its n-grams."""
    words = [f"U0{i}:%x[{row},0]" for i, row in enumerate(range(-2, 3))]
    words += ["U05:%x[-1,0]/%x[0,0]", "U06:%x[0,0]/%x[1,0]"]
    tags: list[str] = []
    if columns > 1:
        tags = [f"U1{i}:%x[{row},1]" for i, row in enumerate(range(-2, 3))]
        tags += [f"U1{5 + i}:%x[{row},1]/%x[{row + 1},1]" for i, row in enumerate(range(-2, 2))]
        tags += [f"U2{i}:%x[{row},1]/%x[{row + 1},1]/%x[{row + 2},1]" for i, row in enumerate(range(-2, 1))]
    return "\n".join([*words, *tags, "B"]), {}


def _ner(columns: int) -> FeatureSet:
    """Named entities: words and their spelling in a window, affixes, sentence starts, bags of nearby words.

    The templates are those of CoNLL-2002 and 2003 systems (Carreras et al. 2002; Finkel et al. 2005), without lexicons.
    """
    lines = [f"W{row:+d}:%x[{row},low]" for row in range(-2, 3)]
    lines += ["W:%x[0,0]", "WW-:%x[-1,low]/%x[0,low]", "WW+:%x[0,low]/%x[1,low]"]
    lines += [f"A{name}:%x[0,{name}]" for name in _affixes(1, 6)]
    lines += [f"H{row:+d}:%x[{row},shape]" for row in range(-2, 3)]
    lines += ["HH-:%x[-1,shape]/%x[0,shape]", "HH+:%x[0,shape]/%x[1,shape]"]
    lines += ["HHH:%x[-1,shape]/%x[0,shape]/%x[1,shape]"]
    lines += [f"O{row:+d}:%x[{row},orth]" for row in range(-1, 2)]
    lines += ["WO+:%x[0,low]/%x[1,orth]", "WO-:%x[-1,low]/%x[0,orth]", "FO:%x[0,first]/%x[0,orth]"]
    lines += ["FL:%x[0,first]/%x[0,low]", "LEN:%x[0,len]"]
    # The same template text with different offsets is a bag: the word is near, but its position is not distinguished.
    lines += [f"NEXT:%x[{row},low]" for row in range(1, 5)]
    lines += [f"BEFORE:%x[{row},low]" for row in range(-4, 0)]
    lines += _further(columns)
    return _text(lines), {**_SPELLING, **_affixes(1, 6)}


def _pos(columns: int) -> FeatureSet:
    """Parts of speech (Ratnaparkhi 1996; Toutanova et al. 2003): words, their neighbours, affixes and spelling."""
    lines = [f"W{row:+d}:%x[{row},low]" for row in range(-2, 3)]
    lines += ["W:%x[0,0]", "WW-:%x[-1,low]/%x[0,low]", "WW+:%x[0,low]/%x[1,low]"]
    lines += ["W1W:%x[-1,low]/%x[1,low]"]
    lines += [f"A{name}:%x[0,{name}]" for name in _affixes(1, 5)]
    lines += [f"S{row:+d}:%x[{row},suffix3]" for row in (-1, 1)]
    lines += [f"O{row:+d}:%x[{row},orth]" for row in range(-1, 2)]
    lines += ["H:%x[0,shape]", "FO:%x[0,first]/%x[0,orth]", "LEN:%x[0,len]"]
    lines += _further(columns)
    return _text(lines), {**_SPELLING, **_affixes(1, 5)}


def _segmentation(columns: int) -> FeatureSet:
    """Word segmentation, one token per character: n-grams in a window of two (Ng and Low 2004), repeats and classes.

    There are also words of the training text (Sun et al. 2014, section 4.2): those that start or end here, bigrams
    whose second word starts here, and the length of the longest word here. Full-width forms are read as the plain ones.
    """
    lines = [f"C{row:+d}:%x[{row},char]" for row in range(-2, 3)]
    lines += [f"CC{row:+d}:%x[{row},char]/%x[{row + 1},char]" for row in range(-2, 2)]
    lines += ["C1C:%x[-1,char]/%x[1,char]"]
    lines += [f"R{row:+d}:%x[{row},same1]" for row in range(-2, 2)]
    lines += [f"RR{row:+d}:%x[{row},same2]" for row in range(-3, 2)]
    lines += [f"T{row:+d}:%x[{row},class]" for row in range(-1, 2)]
    lines += ["TTT:%x[-1,class]/%x[0,class]/%x[1,class]"]
    lines += [f"WS{n}:%x[0,word{n}]" for n in range(2, 7)] + [
        f"WE{n}:%x[{1 - n},word{n}]" for n in range(2, 7)
    ]
    lines += [f"WW{row}{rank}:%x[{row},pair{rank}]" for rank in range(2) for row in range(2)]
    for side in SIDES:
        lines += [f"L{side}{row:+d}:%x[{row},{side}]" for row in range(-1, 2)]
        lines += [f"L{side}C:%x[0,{side}]/%x[0,char]"]
    lines += [
        "L3:%x[0,start]/%x[0,end]/%x[0,inside]",
        "L-:%x[-1,end]/%x[0,start]",
        "L+:%x[0,end]/%x[1,start]",
    ]
    lines += _further(columns)
    derived: dict[str, Derived | MatchedSpec] = {
        "char": Derived(kind="width"),
        "class": Derived(kind="char-classes", of="char"),
        **{f"same{n}": SameColumn(kind="same", n=n) for n in (1, 2)},
        **{f"word{n}": WordColumn(kind="word", n=n, fold_width=True) for n in range(2, 7)},
        **{f"pair{n}": WordPairColumn(kind="word-pair", rank=n, fold_width=True) for n in range(2)},
    }
    for side in SIDES:
        derived[side] = WordLengthColumn(kind="word-length", side=side, fold_width=True)
    return _text(lines), derived


def _generic(columns: int) -> FeatureSet:
    """A set that suits most tasks: a word window, affixes, shape, and a window of every other column."""
    lines = [f"W{row:+d}:%x[{row},0]" for row in range(-2, 3)]
    lines += ["WW-:%x[-1,0]/%x[0,0]", "WW+:%x[0,0]/%x[1,0]", "L:%x[0,lower]"]
    lines += [f"P{n}:%x[0,prefix{n}]" for n in range(1, 5)]
    lines += [f"S{n}:%x[0,suffix{n}]" for n in range(1, 5)]
    lines += [f"H{row:+d}:%x[{row},shape]" for row in range(-1, 2)]
    lines += ["C:%x[0,collapsed]", "HH:%x[-1,collapsed]/%x[0,collapsed]/%x[1,collapsed]"]
    lines += _further(columns)
    derived = {
        "lower": Derived(kind="lower"),
        "shape": Derived(kind="shape"),
        "collapsed": Derived(kind="collapsed-shape"),
        **_affixes(1, 4),
    }
    return _text(lines), derived


def _affixes(least: int, most: int) -> dict[str, Derived]:
    return {
        f"{kind}{n}": Derived(kind=kind, n=n) for kind in ("prefix", "suffix") for n in range(least, most + 1)
    }


def _further(columns: int) -> list[str]:
    """A window of each column after the first, and its bigrams."""
    lines: list[str] = []
    for column in range(1, columns):
        lines += [f"X{column}{row:+d}:%x[{row},{column}]" for row in range(-1, 2)]
        lines += [f"X{column}-:%x[-1,{column}]/%x[0,{column}]", f"X{column}+:%x[0,{column}]/%x[1,{column}]"]
    return lines


def _text(lines: Iterable[str]) -> str:
    return "\n".join([*("U" + line for line in lines), "B"])


PRESETS: dict[Preset, Callable[[int], FeatureSet]] = {
    "chunking": _chunking,
    "ner": _ner,
    "pos": _pos,
    "segmentation": _segmentation,
    "generic": _generic,
}
