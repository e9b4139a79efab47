"""Ready-made feature sets for dependency trees: functions of the names of the columns of a corpus.

A pattern is a join of places: a side, a column and an offset. `hc-1` is the coarse part of speech before the head, `bc`
that of any token between head and modifier. A letter that stands for several columns makes a pattern for each:

| letter   | column                                                          |
|----------|-----------------------------------------------------------------|
| `w`, `l` | the word, the lemma                                             |
| `c`, `f` | the coarse and the fine part of speech                          |
| `s`      | the shape of the word                                           |
| `x`, `y` | word or lemma: `hx mx` is two patterns, `hx my` is four         |
| `p`, `q` | coarse or fine part of speech                                   |

A pattern that needs a column that the corpus lacks is left out. Each pattern makes a template by itself and others that
join it with the direction and the distance of the arc. The name of a template begins with its kind:
`pos-pos:head.upos|modifier.upos|direction`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from tagsmith.core.features.columns.derived import Derived

#: The entries of a list of templates, and the derived columns that they name.
ArcFeatureSet = tuple[list[Any], Mapping[str, Derived]]

#: Names of columns in CoNLL-U and CoNLL-X.
_FORM, _LEMMA, _COARSE, _FINE, _FEATS = "form", "lemma", ("upos", "cpostag"), ("xpos", "postag"), "feats"
_SIDES = {"h": "head", "m": "modifier", "b": "between"}
_CHOICES = {"x": "wl", "y": "wl", "p": "cf", "q": "cf"}

#: By kind. The kinds are those of Table 3 of Martins et al. (2011), and others for what they leave open.
_WIDE = {
    # Only the direction and the distance.
    "attachment": ("",),
    # Words and lemmas of one side, and of its neighbours.
    "lex": ("hx", "mx", "hx hp", "mx mp"),
    "context-lex": (
        "hx-1", "hx+1", "mx-1", "mx+1",
        "hc mc hx-1", "hc mc hx+1", "hc mc mx-1", "hc mc mx+1",
    ),
    "pos": ("hp", "mp", "hc hf", "mc mf"),
    "bilexical": ("hx my", "hx hp mx", "hx mx mp", "hx hp mx mp"),
    "lex-pos": ("hx mp", "hx hp mp", "hx mp-1 mp", "hx mp mp+1"),
    "pos-lex": ("hp mx", "hp mx mp", "hp-1 hp mx", "hp hp+1 mx"),
    "pos-pos": ("hp mq", "hc hf mc", "hc hf mf", "hc mc mf", "hf mc mf", "hc hf mc mf"),
    "context-pos": (
        "hp-1", "hp+1", "mp-1", "mp+1",
        "hp-1 hp", "hp hp+1", "mp-1 mp", "mp mp+1",
        "hp-1 hp hp+1", "mp-1 mp mp+1",
        "hp-1 hp mp", "hp hp+1 mp", "hp mp-1 mp", "hp mp mp+1",
        "hp-1 hp mp-1 mp", "hp-1 hp mp mp+1", "hp hp+1 mp-1 mp", "hp hp+1 mp mp+1",
        "hp-1 hp hp+1 mp", "hp mp-1 mp mp+1", "hp-1 hp hp+1 mp-1 mp mp+1",
    ),
    "middle-pos": ("bp", "hp bp", "bp mp", "hp bp mp", "hx bp mp", "hp bp mx"),
    "shape": (
        "hs", "ms", "hs hp", "ms mp",
        "hs ms", "hs mx", "hx ms", "hs mp", "hp ms",
        "hs hp mp", "hp ms mp", "hs hp ms mp",
    ),
}  # fmt: skip
#: The places of the arc that each pattern is joined with.
_ATTACHMENTS = ((), ("direction",), ("distance",), ("direction", "distance"))

#: First-order features of McDonald, Crammer and Pereira (2005), each by itself and with direction and distance.
_COMPACT = {
    "lex": ("hw", "mw", "hw hc", "mw mc"),
    "pos": ("hc", "mc"),
    "bilexical": ("hw mw", "hw hc mw mc", "hw hc mw", "hw mw mc"),
    "lex-pos": ("hw mc", "hw hc mc"),
    "pos-lex": ("hc mw", "hc mw mc"),
    "pos-pos": ("hc mc",),
    "context-pos": ("hc-1 hc mc-1 mc", "hc-1 hc mc mc+1", "hc hc+1 mc-1 mc", "hc hc+1 mc mc+1"),
    "middle-pos": ("hc bc mc",),
}


def _parsing(names: Sequence[str]) -> ArcFeatureSet:
    """Dependency trees, for parsers that train in minutes: words and parts of speech of head and modifier.

    The templates are the first-order features of McDonald, Crammer and Pereira (2005).
    """
    return _made(_COMPACT, ((), ("direction", "distance")), _columns(names))


def _parsing_wide(names: Sequence[str]) -> ArcFeatureSet:
    """Dependency trees, to select templates from: hundreds of joins of words, shapes, lemmas and parts of speech.

    They are of the kinds that Martins, Smith, Figueiredo and Aguiar (2011) describe: 684 with a lemma and two parts of
    speech.
    """
    return _made(_WIDE, _ATTACHMENTS, _columns(names))


def _columns(names: Sequence[str]) -> dict[str, str]:
    """Return the column of each letter; letters without a column are left out."""
    given = [next((name for name in alike if name in names), None) for alike in (_COARSE, _FINE, (_FEATS,))]
    tags = [name for name in given if name is not None]
    words = sorted(
        (name for name in names if name not in tags), key=lambda name: (name != _FORM, name == _LEMMA)
    )
    lemmas = [name for name in words[1:] if name == _LEMMA]
    found = {"w": words[:1], "l": lemmas, "c": tags[:1], "f": tags[1:2]}
    columns = {letter: column for letter, each in found.items() for column in each}
    return columns if "w" not in columns else {**columns, "s": "shape"}


def _made(
    patterns: Mapping[str, Sequence[str]], attachments: Sequence[tuple[str, ...]], columns: Mapping[str, str]
) -> ArcFeatureSet:
    """Return the entries of all patterns with all attachments, and the derived columns that they use."""
    joins = dict.fromkeys(
        (kind, (*places, *attachment))
        for kind, of_kind in patterns.items()
        for pattern in of_kind
        for places in _places(pattern, columns)
        for attachment in attachments
    )
    entries = [{"join": list(join), "name": f"{kind}:{'|'.join(join) or 'all'}"} for kind, join in joins]
    used = {place.partition(".")[2].partition("[")[0] for _, join in joins for place in join}
    return entries, {name: derived for name, derived in _derived(columns).items() if name in used}


def _places(pattern: str, columns: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the joins of a pattern: one for each choice of its columns that the corpus has."""
    marks = pattern.split()
    letters = list(dict.fromkeys(mark[1] for mark in marks))
    for chosen in product(*(_CHOICES.get(letter, letter) for letter in letters)):
        choice = dict(zip(letters, chosen, strict=True))
        if all(letter in columns for letter in chosen):
            yield tuple(
                f"{_SIDES[mark[0]]}.{columns[choice[mark[1]]]}" + (f"[{int(mark[2:])}]" if mark[2:] else "")
                for mark in marks
            )


def _derived(columns: Mapping[str, str]) -> dict[str, Derived]:
    """Return the derived columns of the presets."""
    if "w" not in columns:
        return {}
    word = columns["w"]
    return {"shape": Derived(kind="collapsed-shape", of=int(word) if word.isdigit() else word)}


#: By name. The function gets the names of the columns of the corpus.
ARC_PRESETS: dict[str, Callable[[Sequence[str]], ArcFeatureSet]] = {
    "parsing": _parsing,
    "parsing-wide": _parsing_wide,
}
