"""Tagging: from lists of strings to lists of labels, with the strings left behind at the first step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.corpus.bag import Cells, joined, merged
from core.corpus.corpus import Corpus
from core.corpus.named import Gathered, WrongAttribute
from core.errors import Fault, Invalid
from core.features.index import UNKNOWN, Slots, feature_key, find
from core.features.matching import Text
from core.features.several import NO_CELLS, Family
from core.inference import vector as v
from core.inference.chain import Floats, viterbi
from core.jit import inner, kernel, readonly
from core.model.file import CorruptModel, load
from core.model.model import Model
from core.specs_base import pointer

#: A sentence is a list of tokens, of rows of columns, or of objects of named attributes.
Sentence = Sequence[str] | Sequence[Sequence[str]] | Sequence[Mapping[str, Any]]


#: Up to so many bytes, weights are laid out as a row of labels an attribute when a model is opened: three times as fast
#: to add up as the sparse form they are stored in. Larger models are served from that form, which processes share.
DENSE_BYTES = 128 << 20


class Lookup(NamedTuple):
    """How the attributes of one kind are found."""

    slots: Slots
    keys: NDArray[np.uint64]
    rows: NDArray[np.int32]


class Weights(NamedTuple):
    """What the tagging kernel reads of a model."""

    lookup: Lookup
    dense: Floats  # ((attributes + 1) * width,) the last row zero; or empty, and the sparse form serves
    starts: NDArray[np.int64]
    labels: NDArray[np.int16]
    weights: NDArray[np.float32]
    transitions: Floats  # (Y * width,)


class RichWeights(NamedTuple):
    """What it reads besides, of edge attributes; without any, arrays of nothing."""

    lookup: Lookup
    starts: NDArray[np.int64]
    places: NDArray[np.int32]  # of each weight, in a matrix of transitions
    weights: NDArray[np.float32]


class Scratch(NamedTuple):
    """What the tagging kernel writes on the way; one call's own."""

    scores: Floats  # (longest * width,)
    matrices: Floats  # (longest * Y * width,) transitions into each token, or empty when all have the same
    keys: NDArray[np.uint64]  # (templates,)
    found: NDArray[np.int64]  # (templates,)


class Extra(NamedTuple):
    """Attributes of templates over several values, with theirs; `starts` is one cell when the model has none."""

    starts: NDArray[np.int64]  # (tokens + 1,)
    rows: NDArray[np.int32]
    values: NDArray[np.float32]  # or empty when all are 1


@inner
def find_attributes(
    w: Lookup, codes: NDArray[np.int32], begin: int, end: int, token: int, s: Scratch, missing: int
) -> None:
    """The attributes of a token, `missing` where a template has none.

    Keys first, then cells, then nothing that depends on what was found: no step waits for the memory of the one before,
    and no branch hangs on whether a feature is known.
    """
    templates = w.slots.seeds.shape[0]
    mask = np.uint64(w.keys.shape[0] - 1)
    for template in range(templates):
        s.keys[template] = feature_key(w.slots, template, codes, begin, end, token)
        v.prefetch(w.keys, np.int64(s.keys[template] & mask))
    for template in range(templates):
        attribute = find(w.keys, w.rows, s.keys[template])
        s.found[template] = attribute if attribute >= 0 else missing


@inner
def _add_extra(w: Weights, x: Extra, token: int, row: int, width: int, scores: Floats) -> None:
    """Add to the scores of a token what its attributes of several values bring."""
    for k in range(x.starts[token], x.starts[token + 1]):
        attribute = np.int64(x.rows[k])
        value = x.values[k] if x.values.shape[0] > 0 else np.float32(1)
        if w.dense.shape[0] > 0:
            for j in range(0, width, v.LANES):
                weights = v.load(w.dense, attribute * width + j)
                v.store(scores, row + j, v.fma(v.splat(value), weights, v.load(scores, row + j)))
        else:
            for i in range(w.starts[attribute], w.starts[attribute + 1]):
                scores[row + w.labels[i]] += value * w.weights[i]


@kernel
def score(
    w: Weights, codes: NDArray[np.int32], x: Extra, begin: int, end: int, width: int, s: Scratch
) -> None:
    """Scores of every label at every token of the sentence `begin:end`."""
    templates = w.lookup.slots.seeds.shape[0]
    attributes = w.starts.shape[0] - 1
    for token in range(begin, end):
        row = (token - begin) * width
        find_attributes(w.lookup, codes, begin, end, token, s, attributes)
        for j in range(0, width, v.LANES):
            acc = v.zero(s.scores)
            if w.dense.shape[0] > 0:
                for template in range(templates):
                    acc = v.add(acc, v.load(w.dense, s.found[template] * width + j))
            v.store(s.scores, row + j, acc)
        if w.dense.shape[0] == 0:
            for template in range(templates):
                attribute = s.found[template]
                if attribute < attributes:
                    for k in range(w.starts[attribute], w.starts[attribute + 1]):
                        s.scores[row + w.labels[k]] += w.weights[k]
        if x.starts.shape[0] > 1:
            _add_extra(w, x, token, row, width, s.scores)


@kernel
def score_edges(
    w: Weights, rich: RichWeights, codes: NDArray[np.int32], begin: int, end: int, s: Scratch
) -> None:
    """Transitions into every token of the sentence but the first: those of all, and those of its edge attributes."""
    size, attributes = w.transitions.shape[0], rich.starts.shape[0] - 1
    for token in range(begin + 1, end):
        first = (token - begin) * size
        find_attributes(rich.lookup, codes, begin, end, token, s, attributes)
        for k in range(0, size, v.LANES):
            v.store(s.matrices, first + k, v.load(w.transitions, k))
        for template in range(rich.lookup.slots.seeds.shape[0]):
            attribute = s.found[template]
            if attribute < attributes:
                for k in range(rich.starts[attribute], rich.starts[attribute + 1]):
                    s.matrices[first + rich.places[k]] += rich.weights[k]


@kernel
def _tag(
    w: Weights, codes: NDArray[np.int32], x: Extra, offsets: NDArray[np.int64], labels: int, width: int, s: Scratch,
    out: NDArray[np.int32],
) -> None:  # fmt: skip
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        if end > begin:
            score(w, codes, x, begin, end, width, s)
            viterbi(s.scores, end - begin, w.transitions, 0, labels, width, out, begin)


@kernel
def _tag_rich(
    w: Weights, rich: RichWeights, codes: NDArray[np.int32], x: Extra, offsets: NDArray[np.int64], labels: int,
    width: int, s: Scratch, out: NDArray[np.int32],
) -> None:  # fmt: skip
    """The same with edge attributes. Apart, because handing their arrays over takes as long as some tokens."""
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        if end > begin:
            score(w, codes, x, begin, end, width, s)
            score_edges(w, rich, codes, begin, end, s)
            viterbi(s.scores, end - begin, s.matrices, labels * width, labels, width, out, begin)


@dataclass(frozen=True, eq=False)
class Coded:
    """Sentences in a model's codes."""

    codes: NDArray[np.int32]  # (columns, tokens)
    offsets: NDArray[np.int64]  # (sentences + 1,)
    several: Cells = NO_CELLS  # attributes of templates over several values, when the model has such

    def part(self, first: int, last: int) -> "Coded":
        """Sentences `first:last`."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        return Coded(
            readonly(self.codes[:, begin:end], np.int32),
            readonly(self.offsets[first : last + 1] - begin, np.int64),
            self.several if self.several is NO_CELLS else self.several.part(begin, end),
        )

    @property
    def longest(self) -> int:
        """Tokens of the longest sentence."""
        if self.offsets.size == 2:
            return int(self.offsets[1])
        return int(np.max(np.diff(self.offsets), initial=0))

    @property
    def extra(self) -> Extra:
        """The attributes of several values, as kernels take them."""
        return Extra(self.several.starts, self.several.ids, self.several.values)


class Tagger:
    """A model ready to tag. Immutable: any number of threads may share one."""

    def __init__(self, model: Model) -> None:
        self.model = model
        labels, self.width = len(model.labels), v.padded(len(model.labels))
        # Not read-only, like the matrices of each token: Viterbi is compiled for one kind.
        transitions = v.zeros(labels * self.width, np.float32)
        transitions.reshape(labels, -1)[:, :labels] = model.transitions
        a = model.attributes
        lookup = Lookup(model.slots, model.table.keys, model.table.rows)
        self.weights = Weights(lookup, _dense(model), a.starts, a.labels, a.weights, transitions)
        self.rich = _rich(model, self.width)
        self._names = np.array(model.labels, object)
        self._coded_columns = len(model.coder.vocabularies)

    @classmethod
    def open(cls, path: Path, sha256: str | None = None) -> "Tagger":
        """Map a model file; with `sha256` given, only if the file is that one."""
        if sha256 is not None:
            with path.open("rb") as source:
                if file_digest(source, "sha256").hexdigest() != sha256:
                    raise CorruptModel("The model file is not the one that was published")
        return cls(load(path))

    @property
    def labels(self) -> list[str]:
        return list(self.model.labels)

    @property
    def columns(self) -> int:
        """Attribute columns a token must have."""
        return self.model.features.columns

    def tag(self, sentences: Sequence[Sentence]) -> list[list[str]]:
        """Best labels of each sentence."""
        coded = self.code(sentences)
        names = self.named(self.decode(coded))
        bounds = coded.offsets.tolist()
        return [names[begin:end] for begin, end in pairwise(bounds)]

    def named(self, ids: NDArray[np.int32]) -> list[str]:
        """The names of labels."""
        names: list[str] = self._names[ids].tolist()
        return names

    def decode(self, coded: Coded) -> NDArray[np.int32]:
        """Best label of every token, as ids."""
        out = np.empty(int(coded.offsets[-1]), np.int32)
        labels, s = len(self.model.labels), self.scratch(coded.longest)
        if self.model.edges is None:
            _tag(self.weights, coded.codes, coded.extra, coded.offsets, labels, self.width, s, out)
        else:
            _tag_rich(
                self.weights, self.rich, coded.codes, coded.extra, coded.offsets, labels, self.width, s, out
            )
        return out

    def scratch(self, longest: int) -> Scratch:
        """Room for scoring sentences of up to so many tokens."""
        templates = max(len(self.weights.lookup.slots.seeds), len(self.rich.lookup.slots.seeds))
        size = 0 if self.model.edges is None else len(self.weights.transitions)
        return Scratch(
            np.empty(longest * self.width, np.float32),
            np.empty(longest * size, np.float32),
            np.empty(templates, np.uint64),
            np.empty(templates, np.int64),
        )

    def code_corpus(self, corpus: Corpus) -> Coded:
        """A corpus in the model's codes."""
        coder, families = self.model.coder, self.model.families
        codes = coder.code(corpus)
        parts = [
            part
            for family in families
            for part in family.of_tokens(family.cells(corpus, coder.base), corpus.offsets)
        ]
        return Coded(codes, corpus.offsets, merged(parts) if parts else NO_CELLS)

    def code(self, sentences: Sequence[Sentence]) -> Coded:
        """Look the strings up: the one place where tagging touches Python objects."""
        offsets = np.zeros(len(sentences) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, sentences), np.int64, len(sentences)), out=offsets[1:])
        tokens: list[Any] = list(chain.from_iterable(sentences))
        if self.columns == 0:
            return self._code_bags(tokens, readonly(offsets, np.int64))
        columns = self._columns(sentences, tokens)
        coder = self.model.coder
        codes = np.empty((self._coded_columns, len(tokens)), np.int32)
        for i, vocabulary in enumerate(coder.base):
            vocabulary.lookup_strings(columns[i], codes[i])
        for i, derived in enumerate(coder.derived, start=len(coder.base)):
            base = codes[derived.spec.of]
            known = base != UNKNOWN
            codes[i, known] = derived.of_base[base[known]]
            unknown = np.flatnonzero(~known)
            column = columns[derived.spec.of]
            codes[i, unknown] = derived.ids_of([column[k] for k in unknown.tolist()])
            derived.mark_first(codes[i], offsets)
        places = readonly(offsets, np.int64)
        texts: dict[int, Text] = {}
        for i, matched in enumerate(coder.matched, start=len(coder.base) + len(coder.derived)):
            of = matched.spec.of
            if of not in texts:
                texts[of] = _text(columns[of], codes[of], len(coder.base[of]), places)
            codes[i] = matched.codes(texts[of])
        if not self.model.families:
            return Coded(readonly(codes, np.int32), places)
        several = [
            part
            for family in self.model.families
            for part in family.of_tokens(_taken_apart(family, codes, columns), places)
        ]
        return Coded(readonly(codes, np.int32), places, merged(several))

    def _code_bags(self, tokens: list[Any], offsets: NDArray[np.int64]) -> Coded:
        gathered = Gathered()
        try:
            gathered.add_all(tokens)
        except WrongAttribute as error:
            raise _wrong_attribute(error, offsets) from None
        (family,) = self.model.families
        cells = gathered.cells(family.vocabulary.lookup(*gathered.spans()))
        codes = readonly(np.empty((0, len(tokens)), np.int32), np.int32)
        return Coded(codes, offsets, merged(family.of_tokens(cells, offsets)))

    def _columns(self, sentences: Sequence[Sentence], tokens: list[Any]) -> list[Sequence[str]]:
        """Transpose rows of columns; tokens that are plain strings are a first column."""
        if not tokens:
            return [[]] * self.columns
        kinds = set(map(type, tokens))
        if kinds == {str} and self.columns == 1:
            return [tokens]
        if str in kinds or dict in kinds or min(map(len, tokens)) < self.columns:
            raise self._wrong(sentences)
        return [[token[i] for token in tokens] for i in range(self.columns)]

    def _wrong(self, sentences: Sequence[Sentence]) -> Invalid:
        """Say which tokens have too few columns."""
        faults = []
        for i, sentence in enumerate(sentences):
            for j, token in enumerate(sentence):
                have = 1 if isinstance(token, str) else 0 if isinstance(token, Mapping) else len(token)
                if have < self.columns or (isinstance(token, str) and self.columns > 1):
                    reason = (
                        f"this token has {have} column{'s' * (have != 1)}; the model needs {self.columns}"
                    )
                    faults.append(Fault(reason, pointer=f"/sentences/{i}/{j}"))
                    if len(faults) == 100:
                        return Invalid("The tokens do not fit the model", faults, code="missing_column")
        return Invalid(
            "Every token must be a string, or every token a row of columns", faults, code="mixed_tokens"
        )


def _taken_apart(family: Family, codes: NDArray[np.int32], columns: list[Sequence[str]]) -> Cells:
    """The entries of each token's values, computed only for those that the base column does not know."""
    assert family.spec.chain is not None
    of = family.spec.chain.of
    known = codes[of] != UNKNOWN
    unknown = np.flatnonzero(~known)
    seen = family.of_base.of_tokens(codes[of][known].astype(np.int64))
    if not unknown.size:
        return seen
    place = np.empty(len(known), np.int64)
    place[known] = np.arange(seen.tokens)
    place[unknown] = seen.tokens + np.arange(unknown.size)
    new = family.cells_of([columns[of][k] for k in unknown.tolist()])
    return joined([seen, new]).of_tokens(place)


def _wrong_attribute(error: WrongAttribute, offsets: NDArray[np.int64]) -> Invalid:
    """Say in which token of which sentence an attribute is wrong."""
    token = int(error.path[0])
    sentence = int(np.searchsorted(offsets, token, side="right")) - 1
    place = pointer(("sentences", sentence, token - int(offsets[sentence]), *error.path[1:]))
    return Invalid(
        "The tokens do not fit the model", [Fault(error.reason, pointer=place)], code="invalid_attribute"
    )


def _rich(model: Model, width: int) -> RichWeights:
    """The edge attributes as the kernel reads them: weights stay sparse, of pairs few are seen with an attribute."""
    slots = model.edge_slots
    if model.edges is None:
        lookup = Lookup(slots, model.table.keys, model.table.rows)
        return RichWeights(
            lookup, readonly(np.zeros(1), np.int64), slots.rows, readonly(np.empty(0), np.float32)
        )
    a, table, labels = model.edges.attributes, model.edges.table, len(model.labels)
    places = readonly(a.labels // labels * width + a.labels % labels, np.int32)
    return RichWeights(Lookup(slots, table.keys, table.rows), a.starts, places, a.weights)


def _text(strings: Sequence[str], codes: NDArray[np.int32], known: int, offsets: NDArray[np.int64]) -> Text:
    """A column as those that look at sentences take it: strings that the model lacks are numbered behind its own."""
    ids = codes.copy()
    numbers: dict[str, int] = {}
    for place in np.flatnonzero(codes == UNKNOWN).tolist():
        ids[place] = numbers.setdefault(strings[place], known + len(numbers))
    return Text(ids, list(numbers), offsets)


def _dense(model: Model) -> Floats:
    """The weights as rows, with a row of zeros behind the last attribute; or nothing when that would be too large."""
    a, width = model.attributes, v.padded(len(model.labels))
    size = (a.size + 1) * width
    if 4 * size > DENSE_BYTES:
        return readonly(np.empty(0, np.float32), np.float32)
    rows = v.zeros(size, np.float32)
    rows.reshape(-1, width)[np.repeat(np.arange(a.size), np.diff(a.starts)), a.labels] = a.weights
    return readonly(rows, np.float32)
