"""Making matched columns from a training corpus."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tagsmith.core.base.arrays import Ids
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.columns.codes import UNKNOWN
from tagsmith.core.features.columns.matched.base import (
    MatchedBase,
    MatchedColumn,
    TrainedMatcher,
    TrainingData,
)
from tagsmith.core.features.columns.tokens import TokenColumn
from tagsmith.core.features.lexicon.lexicon import Lexicons


@dataclass(frozen=True, eq=False)
class TrainedColumns:
    """Columns made from a training corpus, and their values on it."""

    columns: tuple[MatchedColumn, ...]
    codes: tuple[Ids, ...]


def train_columns(
    specs: Sequence[tuple[str, MatchedBase]], corpus: Corpus, lexicons: Lexicons
) -> TrainedColumns:
    """Make the columns of a training corpus, by name. Columns with the same sharing key share a matcher."""
    data = TrainingData(corpus, lexicons, [spec for _, spec in specs])
    matchers: dict[tuple[object, ...], TrainedMatcher | None] = {}
    made = []
    for name, spec in specs:
        if spec.sharing_key not in matchers:
            matchers[spec.sharing_key] = spec.train_matcher(name, data)
        made.append(_train_column(name, spec, matchers[spec.sharing_key], data))
    return TrainedColumns(tuple(column for column, _ in made), tuple(codes for _, codes in made))


def _train_column(
    name: str, spec: MatchedBase, trained: TrainedMatcher | None, data: TrainingData
) -> tuple[MatchedColumn, Ids]:
    """Make a column whose vocabulary has the values that occur in the corpus, and code the corpus with it."""
    text = TokenColumn(data.corpus.columns[spec.of].ids, data.corpus.offsets)
    matcher = trained.matcher if trained else None
    raw = spec.raw_codes(matcher, text, trained.dictionary if trained else None)
    value_name = spec.raw_names(trained, data)
    numbers: dict[str, int] = {}
    value_of = np.full(spec.raw_size(matcher), UNKNOWN, np.int32)
    for code in np.unique(raw[raw >= 0]).tolist():
        value_of[code] = numbers.setdefault(value_name(code), len(numbers))
    vocabulary = Vocabulary.from_strings(list(numbers))
    column = MatchedColumn(name, spec, vocabulary, readonly(value_of, np.int32), matcher)
    return column, column.of_raw(raw)
