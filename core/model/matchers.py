"""What a model file holds of columns that look at sentences and lexicons: all that they need to tag by themselves.

Matchers that several columns share are stored once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.corpus.vocabulary import Vocabulary
from core.errors import Invalid
from core.features.index import Table
from core.features.matched import MatchedSpec, SameColumn
from core.features.matching import GATHERED, Folding, MatchedColumn, Matcher, raw_size, trie_of
from core.flat_file import FlatFile

VOCABULARY = {"text": np.uint8, "offsets": np.int64, "table": np.int32}


def description(columns: Sequence[MatchedColumn]) -> dict[str, Any]:
    """The part of the header: the matchers, and which of them each column uses."""
    distinct, used = _shared(columns)
    return {
        "used": used,
        "made": [{"of": m.of, "case": m.folding.case, "width": m.folding.width} for m in distinct],
    }


def arrays(columns: Sequence[MatchedColumn]) -> dict[str, NDArray[Any]]:
    """The arrays of columns and matchers."""
    out: dict[str, NDArray[Any]] = {}
    for i, column in enumerate(columns):
        out[f"matched.{i}.value_of"] = column.value_of
    for i, matcher in enumerate(_shared(columns)[0]):
        for part in VOCABULARY:
            out[f"matcher.{i}.tokens.{part}"] = getattr(matcher.tokens, part)
        nodes = matcher.trie.nodes
        out[f"matcher.{i}.of_base"], out[f"matcher.{i}.kinds"] = matcher.of_base, matcher.kinds
        out[f"matcher.{i}.keys"], out[f"matcher.{i}.rows"] = nodes.keys, nodes.rows
        out[f"matcher.{i}.entries"] = nodes.entries
        out[f"matcher.{i}.pairs.keys"], out[f"matcher.{i}.pairs.rows"] = (
            matcher.pairs.keys,
            matcher.pairs.rows,
        )
    return out


def columns(
    source: FlatFile,
    specs: Sequence[tuple[str, MatchedSpec]],
    vocabularies: Sequence[Vocabulary],
    base: Sequence[Vocabulary],
) -> tuple[MatchedColumn, ...]:
    """The columns of a file, or Invalid when its arrays contradict each other."""
    header = source.header["matchers"]
    made = [_matcher(source, i, said, base) for i, said in enumerate(header["made"])]
    out = []
    for i, ((name, spec), vocabulary, number) in enumerate(
        zip(specs, vocabularies, header["used"], strict=True)
    ):
        matcher = None if number is None else made[int(number)]
        column = MatchedColumn(
            name, spec, vocabulary, source.array(f"matched.{i}.value_of", np.int32), matcher
        )
        if not _fits(column):
            raise Invalid(f"What the file says of the column {name} contradicts itself")
        out.append(column)
    return tuple(out)


def is_sound(table: Table, entries: int) -> bool:
    """Whether every search in a table ends, at one of so many entries."""
    capacity = len(table.keys)
    filled = table.keys != 0
    return (
        capacity == len(table.rows)
        and capacity >= 2
        and capacity & (capacity - 1) == 0
        and 2 * int(np.count_nonzero(filled)) <= capacity
        and within(table.rows[filled], 0, entries)
    )


def within(ids: NDArray[Any], least: int, count: int) -> bool:
    """Whether ids lie from `least` to `count` - 1."""
    return len(ids) == 0 or (int(ids.min()) >= least and int(ids.max()) < count)


def _shared(columns: Sequence[MatchedColumn]) -> tuple[list[Matcher], list[int | None]]:
    numbers: dict[int, int] = {}
    distinct: list[Matcher] = []
    used: list[int | None] = []
    for column in columns:
        if column.matcher is None:
            used.append(None)
            continue
        if id(column.matcher) not in numbers:
            numbers[id(column.matcher)] = len(distinct)
            distinct.append(column.matcher)
        used.append(numbers[id(column.matcher)])
    return distinct, used


def _matcher(source: FlatFile, number: int, said: Mapping[str, Any], base: Sequence[Vocabulary]) -> Matcher:
    def array(name: str, dtype: Any) -> NDArray[Any]:
        return source.array(f"matcher.{number}.{name}", dtype)

    made = Matcher(
        Folding(bool(said["case"]), bool(said["width"])),
        int(said["of"]),
        Vocabulary(**{part: array(f"tokens.{part}", dtype) for part, dtype in VOCABULARY.items()}),
        array("of_base", np.int32),
        trie_of(array("keys", np.uint64), array("rows", np.int32), array("entries", np.int32)),
        array("kinds", np.int32),
        Table(array("pairs.keys", np.uint64), array("pairs.rows", np.int32)),
    )
    nodes = made.trie.nodes
    sound = (
        0 <= made.of < len(base)
        and len(made.of_base) == len(base[made.of])
        and within(made.of_base, -1, len(made.tokens))
        and len(nodes.entries) >= 1
        and is_sound(Table(nodes.keys, nodes.rows), len(nodes.entries) - 1)
        and within(nodes.entries, -1, len(nodes.entries))
        and within(made.kinds, 0, 1 << 30)
        and is_sound(made.pairs, int(np.count_nonzero(made.pairs.keys)))
        and bool((made.pairs.rows[made.pairs.keys == 0] < 0).all())
    )
    if not sound:
        raise Invalid("The arrays of a lexicon contradict each other")
    return made


def _fits(column: MatchedColumn) -> bool:
    """Whether everything that the column can find has a place among its values."""
    spec, matcher = column.spec, column.matcher
    if (matcher is None) != isinstance(spec, SameColumn):
        return False
    if matcher is not None and (spec.of != matcher.of or not _classes_fit(spec, matcher)):
        return False
    return len(column.value_of) == raw_size(spec, matcher) and within(
        column.value_of, -1, len(column.vocabulary)
    )


def _classes_fit(spec: MatchedSpec, matcher: Matcher) -> bool:
    if isinstance(spec, GATHERED):
        return True
    of_tokens = spec.kind == "cluster"
    return len(matcher.kinds) == (len(matcher.tokens) if of_tokens else matcher.entries)
