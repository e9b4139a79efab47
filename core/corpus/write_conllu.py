"""Write a corpus as CoNLL-U, the fields that it has no column for as `_`."""

from collections.abc import Iterator, Sequence
from itertools import repeat

from core.corpus.conllu import FIELDS
from core.corpus.corpus import Column, Corpus
from core.corpus.write import Cells, batches, unwritable
from core.errors import Fault, Invalid

#: Fields in which the format allows spaces.
_WITH_SPACES = frozenset({"form", "lemma", "misc"})


def write_conllu(corpus: Corpus, columns: Sequence[str], label: str) -> Iterator[bytes]:
    """The corpus as UTF-8 chunks, its attribute columns as the fields `columns`, in order, its labels as `label`.

    Words are numbered anew, whatever a column `id` says.
    """
    if len(columns) != len(corpus.columns):
        have = len(corpus.columns)
        raise Invalid(
            f"The corpus has {have} attribute column{'s' * (have != 1)}; `columns` names {len(columns)}.",
            [Fault(f"{have} fields are needed, one for each attribute column", parameter="columns")],
            code="invalid_options",
        )
    cells = {name: _cells(name, column) for name, column in zip(columns, corpus.columns, strict=True)}
    if corpus.labels is not None:
        cells[label] = _cells(label, corpus.labels)
    cells.pop("id", None)
    return _chunks(cells, corpus.offsets.tolist())


def _chunks(cells: dict[str, Cells], bounds: list[int]) -> Iterator[bytes]:
    written = [field for field in FIELDS[1:] if field in cells]
    for found, cuts in batches([cells[field] for field in written], bounds):
        by_field = dict(zip(written, found, strict=True))
        numbers = [str(number) for a, b in cuts for number in range(1, b - a + 1)]
        fields = [by_field.get(field, repeat("_")) for field in FIELDS[1:]]
        rows = ["\t".join(row) for row in zip(numbers, *fields, strict=False)]
        yield "".join("\n".join(rows[a:b]) + "\n\n" for a, b in cuts).encode()


def _cells(field: str, column: Column) -> Cells:
    strings = column.vocabulary.strings()
    least = " " if field in _WITH_SPACES else "!"
    for string in strings:
        if not string or any(c < least or c == "\x7f" for c in string):
            raise unwritable(f"the field {field} of CoNLL-U", column.name, string)
    return strings, column.ids
