"""Models of programs that have templates: weights by the text that a template makes of its values.

Such a program looks a text up, we look values up. A text is therefore taken apart again into the values of every
template that can have made it. Where that is possible in several ways (`U:a/b/c` of `U:%x[-1,0]/%x[0,0]`) each is an
attribute with the weights of the text, so that whichever values make the text find them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import ranges
from core.corpus.vocabulary import Vocabulary
from core.errors import Invalid
from core.features.columns import Coder, DerivedColumn
from core.features.index import UNKNOWN, Slots, Table, boundary_code, edge_slots_of, keys_of, slots_of
from core.features.settled import Features, Place, settle
from core.features.template import MAX_ROW, WAPITI_REACH, Template
from core.model.file import CorruptModel
from core.model.foreign.weights import Rows, rows_of, transitions_of
from core.model.model import Attributes, Model, RichEdges

#: Ways to take one text apart. Words with a slash or two have a few; a file with more was made to have them.
MAX_WAYS = 64
#: Steps of the search for them: most texts need one a slot, and a search that finds nothing must end too.
MAX_STEPS = 4096

_BOUNDARY = re.compile(r"_B([+-]\d{1,3})|_x([+-])([1-4]|#)")


@dataclass(frozen=True, eq=False, slots=True)
class Weighed:
    """The weights of texts, by their place in one long row: text i has its own from `starts[i]` on.

    `pairs` says of which texts they are of pairs of labels, a square of them, rather than one a label.
    """

    texts: Sequence[str]
    starts: NDArray[np.int64]
    pairs: NDArray[np.bool_]
    places: NDArray[np.int64]  # of weights that are not zero, in rising order
    weights: NDArray[np.float64]


def model_of(
    labels: Sequence[str], templates: tuple[Template, ...], weighed: Weighed, *, independent: bool = False
) -> Model:
    """The model of such weights, or CorruptModel."""
    columns = max((s.column for t in templates for s in t.slots if isinstance(s.column, int)), default=0) + 1
    names = [str(number) for number in range(columns)]
    features = settle(templates, {}, names, 1, seen_pairs=False, independent=independent)
    singles, pairs = _rows(weighed, len(labels))
    values = _Values()
    taken = _Taken(features.unigrams, features.slots, values).all_of(weighed.texts, singles)
    edges = _Taken(features.rich, features.edge_slots, values)
    # The pair of labels by itself: what the templates of pairs that look at nothing say.
    plain = {t.literals[0] for t in features.templates if t.kind == "B" and not t.slots}
    bare = [i for i in pairs.used if weighed.texts[i] in plain]
    if not independent:
        edges.all_of(weighed.texts, pairs, plain)
    coder = values.coder(features)
    slots, edge_slots = slots_of(features, coder.vocabularies), edge_slots_of(features, coder.vocabularies)
    attributes, table = taken.attributes(slots, singles, np.dtype(np.int16))
    edge_attributes, edge_table = edges.attributes(edge_slots, pairs, np.dtype(np.int32))
    return Model(
        labels=tuple(labels),
        features=features,
        coder=coder,
        table=table,
        attributes=attributes,
        transitions=pairs.matrix([] if independent else bare, len(labels)),
        edges=RichEdges(edge_table, edge_attributes) if features.rich else None,
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Weights:
    """The weights of one kind of text: a row a text, empty for those of the other kind."""

    rows: Rows

    @property
    def used(self) -> list[int]:
        """Texts that have a weight."""
        return np.flatnonzero(np.diff(self.rows.starts)).tolist()

    def matrix(self, texts: Sequence[int], labels: int) -> NDArray[np.float32]:
        """The weights of these texts together, by pairs of labels."""
        chosen = np.array(texts, np.int64)
        at = ranges(self.rows.starts[chosen], self.rows.starts[chosen + 1])
        places = self.rows.places[at]
        return transitions_of(
            places // labels, places % labels, self.rows.weights[at].astype(np.float64), labels
        )


def _rows(weighed: Weighed, labels: int) -> tuple[_Weights, _Weights]:
    """The weights of texts of single labels, and of those of pairs."""
    order = np.argsort(weighed.starts, kind="stable")
    found = np.searchsorted(weighed.starts[order], weighed.places, side="right") - 1
    if len(found) and (len(order) == 0 or found.min() < 0):
        raise CorruptModel("The file has weights that belong to nothing")
    text = order[found]
    within = weighed.places - weighed.starts[text]
    widths = np.where(weighed.pairs[text], labels * labels, labels)
    if (within >= widths).any():
        raise CorruptModel("The file has weights that belong to nothing")
    made = []
    for kind, width in ((False, labels), (True, labels * labels)):
        own = weighed.pairs[text] == kind
        made.append(
            _Weights(rows_of(text[own], within[own], weighed.weights[own], len(weighed.texts), width))
        )
    return made[0], made[1]


@dataclass(frozen=True, eq=False, slots=True)
class _Values:
    """The values met so far, numbered in each column."""

    numbers: dict[int, dict[str, int]] = field(default_factory=dict)

    def code(self, template: Template, place: Place, value: str) -> int:
        """The code of what a slot has seen: a value of its column, or a place outside the sentence."""
        if place.slot.take == "value" and value.startswith("_") and (row := _row_outside(template, value)):
            return boundary_code(row)
        column = self.numbers.setdefault(place.column, {})
        return column.setdefault(value, len(column))

    def coder(self, features: Features) -> Coder:
        """The columns with these values."""
        strings = [list(self.numbers.get(i, ())) for i in range(features.columns + len(features.derived))]
        base = tuple(Vocabulary.from_strings(each) for each in strings[: features.columns])
        derived = []
        for number, (name, chain) in enumerate(features.derived, start=features.columns):
            known, function = self.numbers.get(number, {}), chain.function()
            made = (function(text) for text in strings[chain.of])
            ids = [UNKNOWN if value is None else known.get(value, UNKNOWN) for value in made]
            vocabulary = Vocabulary.from_strings(strings[number])
            derived.append(DerivedColumn(name, chain, vocabulary, np.array(ids, np.int32)))
        return Coder(base, tuple(derived))


def _row_outside(template: Template, value: str) -> int:
    """How far outside the sentence the place of that name is; 0 for what names none."""
    found = _BOUNDARY.fullmatch(value)
    if found is None or (found[1] is None) != (template.syntax == "wapiti"):
        return 0
    if found[1] is None:
        return int(found[2] + found[3].replace("#", str(WAPITI_REACH)))
    return int(found[1]) if abs(int(found[1])) <= MAX_ROW else 0


@dataclass(frozen=True, eq=False)
class _Taken:
    """Texts of one kind of template, taken apart."""

    templates: tuple[Template, ...]
    places: tuple[tuple[Place, ...], ...]
    values: _Values
    texts: list[int] = field(default_factory=list)  # the text of each attribute
    numbers: list[int] = field(default_factory=list)  # its template
    codes: list[tuple[int, ...]] = field(default_factory=list)

    def all_of(self, texts: Sequence[str], weights: _Weights, others: set[str] | None = None) -> "_Taken":
        """Take those apart that have a weight and are not among `others`."""
        by_start = self._by_start()
        lengths = sorted({len(start) for start in by_start})
        for i in weights.used:
            text, before = texts[i], len(self.texts)
            for number in (n for length in lengths for n in by_start.get(text[:length], ())):
                template, places = self.templates[number], self.places[number]
                for way in _ways(template, text):
                    codes = map(self.values.code, [template] * len(places), places, way)
                    self.texts.append(i)
                    self.numbers.append(number)
                    self.codes.append(tuple(codes))
                    if len(self.texts) - before > MAX_WAYS:
                        raise CorruptModel(f"{text[:80]!r} can be made in more than {MAX_WAYS} ways")
            if len(self.texts) == before and text not in (others or ()):
                raise CorruptModel(f"No template of the file makes {text[:80]!r}")
        return self

    def _by_start(self) -> Mapping[str, list[int]]:
        """Templates by the text they begin with; of those that make the same features, the first."""
        found: dict[str, list[int]] = {}
        seen: set[str] = set()
        for number, template in enumerate(self.templates):
            if template.identity not in seen:
                seen.add(template.identity)
                found.setdefault(template.literals[0], []).append(number)
        return found

    def attributes(self, slots: Slots, weights: _Weights, kind: np.dtype[np.int16] | np.dtype[np.int32]) -> tuple[
        Attributes, Table
    ]:  # fmt: skip
        """The attributes, and the table that finds them."""
        rows, texts = weights.rows, np.array(self.texts, np.int64)
        begins, ends = rows.starts[texts], rows.starts[texts + 1]
        own = ranges(begins, ends)
        value_starts = np.concatenate([[0], np.cumsum([len(codes) for codes in self.codes], dtype=np.int64)])
        values = np.array([code for codes in self.codes for code in codes], np.int32)
        templates = np.array(self.numbers, np.int16)
        made = Attributes(
            starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - begins)]),
            labels=rows.places[own].astype(kind),
            weights=rows.weights[own],
            templates=templates,
            value_starts=value_starts.astype(np.int64),
            values=values,
        )
        return made, Table.of(keys_of(slots, templates, made.value_starts, values))


def _ways(template: Template, text: str) -> Iterator[tuple[str, ...]]:
    """Every way in which a template can have made a text: the values of its slots."""
    first, *between = template.literals
    if not template.slots:
        if text == first:
            yield ()
        return
    # Columns hold no empty values; what an expression matches may be empty.
    least = [0 if slot.take == "match" else 1 for slot in template.slots]
    steps = 0

    def rest(at: int, slot: int) -> Iterator[tuple[str, ...]]:
        nonlocal steps
        steps += 1
        if steps > MAX_STEPS:
            raise CorruptModel(f"{text[:80]!r} takes too long to take apart")
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
    """The labels, unless there are none, too many, or two of a name."""
    if not 0 < len(labels) <= most or len(set(labels)) < len(labels):
        raise CorruptModel(f"A model has 1 to {most} labels, each of its own name")
    return labels


def decoded(text: bytes) -> str:
    """The text of a file, which must be UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise Invalid("The file is not UTF-8 text; convert it first", code="not_utf8") from None
