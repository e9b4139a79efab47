"""Columns that match sentences or lexicons, in the model file. Tagging needs nothing else.

A matcher that several columns share is stored once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.flat_file import FlatFile
from tagsmith.core.base.hash_table import Table
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.columns.matched.base import Folding, MatchedBase, MatchedColumn, Matcher
from tagsmith.core.features.lexicon.trie import Nodes, Trie

VOCABULARY = {"text": np.uint8, "offsets": np.int64, "table": np.int32}


def description(columns: Sequence[MatchedColumn]) -> dict[str, Any]:
    """Return the header entries: the matchers, and the matcher of each column."""
    distinct, used = _shared(columns)
    return {
        "used": used,
        "made": [{"of": m.of, "case": m.folding.case, "width": m.folding.width} for m in distinct],
    }


def arrays(columns: Sequence[MatchedColumn]) -> dict[str, NDArray[Any]]:
    """Return the arrays of columns and matchers."""
    out: dict[str, NDArray[Any]] = {}
    for i, column in enumerate(columns):
        out[f"matched.{i}.value_of"] = column.value_of
    for i, matcher in enumerate(_shared(columns)[0]):
        for part in VOCABULARY:
            out[f"matcher.{i}.tokens.{part}"] = getattr(matcher.tokens, part)
        nodes = matcher.trie.nodes
        out[f"matcher.{i}.of_base"], out[f"matcher.{i}.kinds"] = matcher.of_base, matcher.class_of
        out[f"matcher.{i}.keys"], out[f"matcher.{i}.rows"] = nodes.keys, nodes.rows
        out[f"matcher.{i}.entries"] = nodes.entries
        out[f"matcher.{i}.pairs.keys"], out[f"matcher.{i}.pairs.rows"] = (
            matcher.pairs.keys,
            matcher.pairs.rows,
        )
    return out


def columns(
    source: FlatFile,
    specs: Sequence[tuple[str, MatchedBase]],
    vocabularies: Sequence[Vocabulary],
    base: Sequence[Vocabulary],
) -> tuple[MatchedColumn, ...]:
    """Read the columns of a file, or raise Invalid if its arrays are inconsistent."""
    header = source.header["matchers"]
    made = [_matcher(source, i, entry, base) for i, entry in enumerate(header["made"])]
    out = []
    for i, ((name, spec), vocabulary, number) in enumerate(
        zip(specs, vocabularies, header["used"], strict=True)
    ):
        matcher = None if number is None else made[int(number)]
        column = MatchedColumn(
            name, spec, vocabulary, source.array(f"matched.{i}.value_of", np.int32), matcher
        )
        if not _fits(column):
            raise Invalid(f"The arrays of column {name} are inconsistent. The file is damaged.")
        out.append(column)
    return tuple(out)


def is_sound(table: Table, entries: int) -> bool:
    """Whether every search in a table ends, at one of `entries` entries."""
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
    """Whether all ids are between `least` and `count` - 1."""
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


def _matcher(source: FlatFile, number: int, entry: Mapping[str, Any], base: Sequence[Vocabulary]) -> Matcher:
    def array(name: str, dtype: Any) -> NDArray[Any]:
        return source.array(f"matcher.{number}.{name}", dtype)

    made = Matcher(
        Folding(bool(entry["case"]), bool(entry["width"])),
        int(entry["of"]),
        Vocabulary(**{part: array(f"tokens.{part}", dtype) for part, dtype in VOCABULARY.items()}),
        array("of_base", np.int32),
        Trie(Nodes(array("keys", np.uint64), array("rows", np.int32), array("entries", np.int32))),
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
        and within(made.class_of, 0, 1 << 30)
        and is_sound(made.pairs, int(np.count_nonzero(made.pairs.keys)))
        and bool((made.pairs.rows[made.pairs.keys == 0] < 0).all())
    )
    if not sound:
        raise Invalid("The arrays of a matcher are inconsistent. The file is damaged.")
    return made


def _fits(column: MatchedColumn) -> bool:
    """Whether the matcher is of the right kind, and every raw code has a value in the vocabulary."""
    return (
        column.spec.fits(column.matcher)
        and len(column.value_of) == column.spec.raw_size(column.matcher)
        and within(column.value_of, -1, len(column.vocabulary))
    )
