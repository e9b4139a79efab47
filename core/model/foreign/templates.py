"""Models of programs with templates. Their weights belong to texts that a template makes from its values.

These programs look up texts, but we look up values. So each text is parsed back into the values of every template that
can make it. If a text is ambiguous (`U:a/b/c` of `U:%x[-1,0]/%x[0,0]`), each reading becomes an attribute with the
weights of the text, so that all values that make the text find them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import ranges
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.hash_table import Table
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.columns.coder import Coder, DerivedColumn
from tagsmith.core.features.columns.codes import UNKNOWN, boundary_code
from tagsmith.core.features.index import Slots, edge_slots_of, keys_of, slots_of
from tagsmith.core.features.resolve import resolve_features
from tagsmith.core.features.resolved import Features, ResolvedSlot
from tagsmith.core.features.templates.template import MAX_ROW, WAPITI_REACH, Template
from tagsmith.core.model.file import CorruptModel
from tagsmith.core.model.foreign.weights import SparseRows, rows_of, transitions_of
from tagsmith.core.model.model import EdgeAttributes, ModelAttributes, SparseModel

#: Maximum number of readings of one text. Words with one or two slashes have a few; only a crafted file has more.
MAX_READINGS = 64
#: Maximum number of steps of the search for readings. Most texts need one step per slot.
MAX_STEPS = 4096

_BOUNDARY = re.compile(r"_B([+-]\d{1,3})|_x([+-])([1-4]|#)")


@dataclass(frozen=True, eq=False, slots=True)
class TextWeights:
    """The weights of texts in one long row. The weights of text i start at `starts[i]`.

    A text with `pairs` set has one weight per label pair, any other text one per label.
    """

    texts: Sequence[str]
    starts: NDArray[np.int64]
    pairs: NDArray[np.bool_]
    places: NDArray[np.int64]  # indices of the non-zero weights, in rising order
    weights: NDArray[np.float64]


def model_of(
    labels: Sequence[str], templates: tuple[Template, ...], weighed: TextWeights, *, independent: bool = False
) -> SparseModel:
    """Build a model from the weights of texts, or raise CorruptModel."""
    columns = max((s.column for t in templates for s in t.slots if isinstance(s.column, int)), default=0) + 1
    names = [str(number) for number in range(columns)]
    features = resolve_features(templates, {}, names, 1, structure="independent" if independent else "chain")
    singles, pairs = _rows(weighed, len(labels))
    values = _Values()
    parsed = _ParsedTexts(features.unigrams, features.slots, values).parse_all(weighed.texts, singles)
    edges = _ParsedTexts(features.rich, features.edge_slots, values)
    # Texts of the label pair itself, made by bigram templates without slots.
    plain = {t.literals[0] for t in features.templates if t.kind == "B" and not t.slots}
    bare = [i for i in pairs.used if weighed.texts[i] in plain]
    if not independent:
        edges.parse_all(weighed.texts, pairs, plain)
    coder = values.coder(features)
    slots, edge_slots = slots_of(features, coder.vocabularies), edge_slots_of(features, coder.vocabularies)
    attributes, table = parsed.attributes(slots, singles, np.dtype(np.int16))
    edge_attributes, edge_table = edges.attributes(edge_slots, pairs, np.dtype(np.int32))
    return SparseModel(
        labels=tuple(labels),
        features=features,
        coder=coder,
        table=table,
        attributes=attributes,
        transitions=pairs.matrix([] if independent else bare, len(labels)),
        edges=EdgeAttributes(edge_table, edge_attributes) if features.rich else None,
    )


@dataclass(frozen=True, eq=False, slots=True)
class _KindWeights:
    """The weights of one kind of text: one row per text, empty for texts of the other kind."""

    rows: SparseRows

    @property
    def used(self) -> list[int]:
        """The texts that have a weight."""
        return np.flatnonzero(np.diff(self.rows.starts)).tolist()

    def matrix(self, texts: Sequence[int], labels: int) -> NDArray[np.float32]:
        """Return the sum of the weights of these texts, as a matrix of label pairs."""
        chosen = np.array(texts, np.int64)
        at = ranges(self.rows.starts[chosen], self.rows.starts[chosen + 1])
        places = self.rows.places[at]
        return transitions_of(
            places // labels, places % labels, self.rows.weights[at].astype(np.float64), labels
        )


def _rows(weighed: TextWeights, labels: int) -> tuple[_KindWeights, _KindWeights]:
    """Return the weights of texts of single labels, and of texts of label pairs."""
    order = np.argsort(weighed.starts, kind="stable")
    found = np.searchsorted(weighed.starts[order], weighed.places, side="right") - 1
    if len(found) and (len(order) == 0 or found.min() < 0):
        raise CorruptModel("The file has a weight that belongs to no feature.")
    text = order[found]
    within = weighed.places - weighed.starts[text]
    widths = np.where(weighed.pairs[text], labels * labels, labels)
    if (within >= widths).any():
        raise CorruptModel("The file has a weight that belongs to no feature.")
    made = []
    for kind, width in ((False, labels), (True, labels * labels)):
        own = weighed.pairs[text] == kind
        made.append(
            _KindWeights(rows_of(text[own], within[own], weighed.weights[own], len(weighed.texts), width))
        )
    return made[0], made[1]


@dataclass(frozen=True, eq=False, slots=True)
class _Values:
    """The values found so far, numbered per column."""

    numbers: dict[int, dict[str, int]] = field(default_factory=dict)

    def code(self, template: Template, place: ResolvedSlot, value: str) -> int:
        """Return the code of a slot's value: a value of its column, or a position outside the sentence."""
        if place.slot.take == "value" and value.startswith("_") and (row := _row_outside(template, value)):
            return boundary_code(row)
        column = self.numbers.setdefault(place.column, {})
        return column.setdefault(value, len(column))

    def coder(self, features: Features) -> Coder:
        """Return a coder whose vocabularies are these values."""
        strings = [list(self.numbers.get(i, ())) for i in range(features.columns + len(features.derived))]
        base = tuple(Vocabulary.from_strings(each) for each in strings[: features.columns])
        derived = []
        for number, (name, chain) in enumerate(features.derived, start=features.columns):
            known, made = self.numbers.get(number, {}), chain.values(strings[chain.of])
            ids = [UNKNOWN if value is None else known.get(value, UNKNOWN) for value in made]
            vocabulary = Vocabulary.from_strings(strings[number])
            derived.append(DerivedColumn(name, chain, vocabulary, np.array(ids, np.int32)))
        return Coder(base, tuple(derived))


def _row_outside(template: Template, value: str) -> int:
    """Return the distance from the sentence that a boundary value names; 0 if it is not a boundary value."""
    found = _BOUNDARY.fullmatch(value)
    if found is None or (found[1] is None) != (template.syntax == "wapiti"):
        return 0
    if found[1] is None:
        return int(found[2] + found[3].replace("#", str(WAPITI_REACH)))
    return int(found[1]) if abs(int(found[1])) <= MAX_ROW else 0


@dataclass(frozen=True, eq=False)
class _ParsedTexts:
    """Texts of one kind of template, parsed into values."""

    templates: tuple[Template, ...]
    places: tuple[tuple[ResolvedSlot, ...], ...]
    values: _Values
    texts: list[int] = field(default_factory=list)  # text of each attribute
    numbers: list[int] = field(default_factory=list)  # template of each attribute
    codes: list[tuple[int, ...]] = field(default_factory=list)

    def parse_all(
        self, texts: Sequence[str], weights: _KindWeights, others: set[str] | None = None
    ) -> "_ParsedTexts":
        """Parse all texts that have a weight. Texts in `others` need no template."""
        by_start = self._by_start()
        lengths = sorted({len(start) for start in by_start})
        for i in weights.used:
            text, before = texts[i], len(self.texts)
            for number in (n for length in lengths for n in by_start.get(text[:length], ())):
                template, places = self.templates[number], self.places[number]
                for reading in _readings(template, text):
                    codes = map(self.values.code, [template] * len(places), places, reading)
                    self.texts.append(i)
                    self.numbers.append(number)
                    self.codes.append(tuple(codes))
                    if len(self.texts) - before > MAX_READINGS:
                        raise CorruptModel(f"The text {text[:80]!r} has more than {MAX_READINGS} readings.")
            if len(self.texts) == before and text not in (others or ()):
                raise CorruptModel(f"No template of the file makes the text {text[:80]!r}.")
        return self

    def _by_start(self) -> Mapping[str, list[int]]:
        """Return templates by the text they begin with; of equal templates only the first."""
        found: dict[str, list[int]] = {}
        seen: set[str] = set()
        for number, template in enumerate(self.templates):
            if template.identity not in seen:
                seen.add(template.identity)
                found.setdefault(template.literals[0], []).append(number)
        return found

    def attributes(self, slots: Slots, weights: _KindWeights, kind: np.dtype[np.int16] | np.dtype[np.int32]) -> tuple[
        ModelAttributes, Table
    ]:  # fmt: skip
        """Return the attributes, and the table that finds them."""
        rows, texts = weights.rows, np.array(self.texts, np.int64)
        begins, ends = rows.starts[texts], rows.starts[texts + 1]
        own = ranges(begins, ends)
        value_starts = np.concatenate([[0], np.cumsum([len(codes) for codes in self.codes], dtype=np.int64)])
        values = np.array([code for codes in self.codes for code in codes], np.int32)
        templates = np.array(self.numbers, np.int16)
        made = ModelAttributes(
            starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - begins)]),
            labels=rows.places[own].astype(kind),
            weights=rows.weights[own],
            templates=templates,
            value_starts=value_starts.astype(np.int64),
            values=values,
        )
        return made, Table.of(keys_of(slots, templates, made.value_starts, values))


def _readings(template: Template, text: str) -> Iterator[tuple[str, ...]]:
    """Yield every reading of a text: the values of the template's slots."""
    first, *between = template.literals
    if not template.slots:
        if text == first:
            yield ()
        return
    # Columns have no empty values, but the match of an expression can be empty.
    least = [0 if slot.take == "match" else 1 for slot in template.slots]
    steps = 0

    def rest(at: int, slot: int) -> Iterator[tuple[str, ...]]:
        nonlocal steps
        steps += 1
        if steps > MAX_STEPS:
            raise CorruptModel(f"The text {text[:80]!r} takes too long to parse.")
        literal = between[slot]
        if slot == len(least) - 1:
            end = len(text) - len(literal)
            if end >= at + least[slot] and text.endswith(literal):
                yield (text[at:end],)
            return
        end = text.find(literal, at + least[slot])
        while end >= 0:
            for others in rest(end + len(literal), slot + 1):
                yield (text[at:end], *others)
            end = text.find(literal, end + 1)

    yield from rest(len(first), 0)


def checked_labels(labels: Sequence[str], most: int) -> Sequence[str]:
    """Return the labels, or raise CorruptModel if there are none, too many, or duplicates."""
    if not 0 < len(labels) <= most or len(set(labels)) < len(labels):
        raise CorruptModel(f"A model must have 1 to {most} labels with distinct names.")
    return labels


def decoded(text: bytes) -> str:
    """Decode the text of a file, which must be UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise Invalid("The file is not UTF-8 text. Convert it first.", code="not_utf8") from None
