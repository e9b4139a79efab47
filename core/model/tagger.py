"""Tagging: strings become codes first, and labels are decoded from the codes."""

from collections.abc import Mapping, Sequence
from hashlib import file_digest
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.hash_table import find
from tagsmith.core.base.jit import inner, kernel, readonly
from tagsmith.core.corpus.bag import Cells
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.features.columns.bags import NO_CELLS, attributes_of
from tagsmith.core.features.columns.tokens import TokenTable
from tagsmith.core.features.index import Slots, feature_key
from tagsmith.core.inference.chain import Floats, viterbi
from tagsmith.core.model.file import CorruptModel, load
from tagsmith.core.model.importing import open_model
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.parsing.weights import ArcWeights, arc_weights, parsing_bytes
from tagsmith.core.model.use.tokens import bag_of, check_lists, columns_of

if TYPE_CHECKING:
    from tagsmith.core.model.use.text import TextTagging

#: A sentence is a list of strings, of rows of columns, or of objects with named attributes.
Sentence = Sequence[str] | Sequence[Sequence[str]] | Sequence[Mapping[str, Any]]


#: Opening a model expands its weights to one row of labels per attribute if they fit in this size: adding up dense rows
#: is three times as fast as the stored sparse form. Larger models use the sparse form, which processes share.
DENSE_BYTES = 128 << 20

#: A value that no model knows.
_PROBE = "-"


class AttributeLookup(NamedTuple):
    """The index that finds attributes of one kind: those of labels, or those of label pairs."""

    slots: Slots
    keys: NDArray[np.uint64]
    rows: NDArray[np.int32]


class TaggingWeights(NamedTuple):
    """The weights of a model, as the tagging kernels read them."""

    lookup: AttributeLookup
    dense: (
        Floats  # ((attributes + 1) * width,) last row zero; empty if the model is served from the sparse form
    )
    starts: NDArray[np.int64]
    labels: NDArray[np.int16]
    weights: NDArray[np.float32]
    transitions: Floats  # (Y * width,)
    label_count: int  # Y
    width: int  # Y, padded to whole vectors


class ParsedSentence(NamedTuple):
    """A sentence with the head of each token, from 1, and its relation to it. 0 is the root."""

    heads: list[int]
    relations: list[str]  # empty if the model has no relations


class EdgeWeights(NamedTuple):
    """The weights of edge attributes; its arrays are empty if the model has none."""

    lookup: AttributeLookup
    starts: NDArray[np.int64]
    places: NDArray[np.int32]  # index of each weight in a transition matrix
    weights: NDArray[np.float32]


class TaggingScratch(NamedTuple):
    """Buffers of one call of a tagging kernel."""

    scores: Floats  # (longest * width,)
    matrices: Floats  # (longest * Y * width,) transitions into each token; empty if the model has no edge attributes
    keys: NDArray[np.uint64]  # (templates,)
    found: NDArray[np.int64]  # (templates,)


class Coded(NamedTuple):
    """Sentences in the codes of a model. Kernels take it as it is."""

    codes: NDArray[np.int32]  # (columns, tokens)
    offsets: NDArray[np.int64]  # (sentences + 1,)
    #: Attributes of bag features, as CSR over tokens; a single cell if the model has no bag features.
    bag_starts: NDArray[np.int64] = NO_CELLS.starts  # (tokens + 1,)
    bag_rows: NDArray[np.int32] = NO_CELLS.ids
    bag_values: NDArray[np.float32] = NO_CELLS.values  # empty if all values are 1

    @classmethod
    def of(cls, codes: NDArray[np.int32], offsets: NDArray[np.int64], bag: Cells) -> "Coded":
        """Combine the codes of columns with the attributes of bag features."""
        return cls(codes, offsets, bag.starts, bag.ids, bag.values)

    def part(self, first: int, last: int) -> "Coded":
        """Return sentences `first:last`."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        bag = Cells(self.bag_starts, self.bag_rows, self.bag_values)
        return Coded.of(
            readonly(self.codes[:, begin:end], np.int32),
            readonly(self.offsets[first : last + 1] - begin, np.int64),
            bag.part(begin, end) if bag.tokens else bag,
        )

    @property
    def longest(self) -> int:
        """The number of tokens of the longest sentence."""
        if self.offsets.size == 2:
            return int(self.offsets[1])
        return int(np.max(np.diff(self.offsets), initial=0))


@inner
def find_attributes(
    w: AttributeLookup,
    codes: NDArray[np.int32],
    begin: int,
    end: int,
    token: int,
    s: TaggingScratch,
    missing: int,
) -> None:
    """Find the attribute of each template at a token, `missing` where the model has none.

    First all keys, then all cells: no step waits for memory that the step before it reads, and no branch depends on
    whether a feature is known.
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
def _add_bag(w: TaggingWeights, x: Coded, token: int, row: int, scores: Floats) -> None:
    """Add the weights of a token's bag features to its scores."""
    for k in range(x.bag_starts[token], x.bag_starts[token + 1]):
        attribute = np.int64(x.bag_rows[k])
        value = x.bag_values[k] if x.bag_values.shape[0] > 0 else np.float32(1)
        if w.dense.shape[0] > 0:
            for j in range(0, w.width, v.LANES):
                weights = v.load(w.dense, attribute * w.width + j)
                v.store(scores, row + j, v.fma(v.splat(value), weights, v.load(scores, row + j)))
        else:
            for i in range(w.starts[attribute], w.starts[attribute + 1]):
                scores[row + w.labels[i]] += value * w.weights[i]


@kernel
def score(w: TaggingWeights, x: Coded, begin: int, end: int, s: TaggingScratch) -> None:
    """Fill `s.scores` with the score of every label at every token of the sentence `begin:end`."""
    templates, width = w.lookup.slots.seeds.shape[0], w.width
    attributes = w.starts.shape[0] - 1
    for token in range(begin, end):
        row = (token - begin) * width
        find_attributes(w.lookup, x.codes, begin, end, token, s, attributes)
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
        if x.bag_starts.shape[0] > 1:
            _add_bag(w, x, token, row, s.scores)


@kernel
def score_edges(
    w: TaggingWeights, edges: EdgeWeights, x: Coded, begin: int, end: int, s: TaggingScratch
) -> None:
    """Fill `s.matrices` with the transitions into every token of the sentence but the first."""
    size, attributes = w.transitions.shape[0], edges.starts.shape[0] - 1
    for token in range(begin + 1, end):
        first = (token - begin) * size
        find_attributes(edges.lookup, x.codes, begin, end, token, s, attributes)
        for k in range(0, size, v.LANES):
            v.store(s.matrices, first + k, v.load(w.transitions, k))
        for template in range(edges.lookup.slots.seeds.shape[0]):
            attribute = s.found[template]
            if attribute < attributes:
                for k in range(edges.starts[attribute], edges.starts[attribute + 1]):
                    s.matrices[first + edges.places[k]] += edges.weights[k]


@kernel
def _tag(w: TaggingWeights, x: Coded, s: TaggingScratch, out: NDArray[np.int32]) -> None:
    for sentence in range(x.offsets.shape[0] - 1):
        begin, end = x.offsets[sentence], x.offsets[sentence + 1]
        if end > begin:
            score(w, x, begin, end, s)
            viterbi(s.scores, end - begin, w.transitions, 0, w.label_count, w.width, out, begin)


@kernel
def _tag_with_edges(
    w: TaggingWeights, edges: EdgeWeights, x: Coded, s: TaggingScratch, out: NDArray[np.int32]
) -> None:
    """Tag with edge attributes. A separate kernel: passing their arrays takes as long as tagging some tokens."""
    for sentence in range(x.offsets.shape[0] - 1):
        begin, end = x.offsets[sentence], x.offsets[sentence + 1]
        if end > begin:
            score(w, x, begin, end, s)
            score_edges(w, edges, x, begin, end, s)
            size = w.label_count * w.width
            viterbi(s.scores, end - begin, s.matrices, size, w.label_count, w.width, out, begin)


class Tagger:
    """A model that is ready to tag or, if it is a parser, to parse. It is immutable, so threads can share it."""

    def __init__(self, model: SparseModel) -> None:
        self.model = model
        labels, self.width = len(model.labels), v.padded(len(model.labels))
        #: The number of attribute columns that each token must have.
        self.columns = model.features.columns
        self._names = np.array(model.labels, object)
        self._chains = None if self.is_parser else _ChainWeights(model)
        self._arcs = arc_weights(model) if self.is_parser else None
        self.transitions_per_token = labels * labels
        #: The most steps that coding takes per character, for columns for which these are many.
        self.steps_per_character = model.features.steps_per_character

    @property
    def is_parser(self) -> bool:
        """Whether the model finds heads instead of labels."""
        return self.model.trees is not None

    @property
    def weights(self) -> TaggingWeights:
        """The weights for tagging. Raise Invalid if the model is a parser."""
        return self._tagging().weights

    @property
    def edge_weights(self) -> EdgeWeights:
        """The weights of edge attributes. Raise Invalid if the model is a parser."""
        return self._tagging().edges

    @property
    def arcs(self) -> ArcWeights:
        """The weights for parsing. Raise Invalid if the model is not a parser."""
        if self._arcs is None:
            raise Invalid("The model finds labels, not heads. Use tag.", code="invalid_request")
        return self._arcs

    def _tagging(self) -> "_ChainWeights":
        if self._chains is None:
            raise Invalid(
                "The model is a parser: it finds heads, not labels. Use parse.", code="invalid_request"
            )
        return self._chains

    @classmethod
    def open(cls, path: Path | str, sha256: str | None = None) -> "Tagger":
        """Open a model file of Tagsmith, CRFsuite, CRF++ (text) or Wapiti, or raise CorruptModel.

        With `sha256`, the file must be one of Tagsmith with this checksum. It is trusted, so opening it is fast.
        """
        path = Path(path)
        if sha256 is None:
            tagger = cls(open_model(path))
            tagger.tag_probe()
            return tagger
        with path.open("rb") as source:
            if file_digest(source, "sha256").hexdigest() != sha256:
                raise CorruptModel("The model file differs from the published one. Fetch it again.")
        return cls(load(path))

    @property
    def labels(self) -> list[str]:
        return list(self.model.labels)

    def tag(self, sentences: Sequence[Sentence]) -> list[list[str]]:
        """Return the best labels of each sentence."""
        self._tagging()
        check_lists(sentences)
        coded = self.code(sentences)
        names = self.named(self.decode(coded))
        bounds = coded.offsets.tolist()
        return [names[begin:end] for begin, end in pairwise(bounds)]

    def parse(self, sentences: Sequence[Sentence]) -> list[ParsedSentence]:
        """Return the best tree of each sentence. Raise Invalid if the model is not a parser."""
        from tagsmith.core.model.parser import parse  # noqa: PLC0415  # imports this module

        check_lists(sentences)
        coded = self.code(sentences)
        parsed = parse(self, coded)
        heads = parsed.heads.tolist()
        relations = self.named(parsed.relations) if self.model.relations else []
        return [
            ParsedSentence(heads[begin:end], relations[begin:end])
            for begin, end in pairwise(coded.offsets.tolist())
        ]

    def tag_text(self, text: str, tokenizer: object = None) -> "TextTagging":
        """Tag a text, and find its spans by character, each with its probability.

        `tokenizer` is a name, or an object with a `pattern`; by default the tokenizer of the model.
        """
        from tagsmith.core.corpus.text.tokenizer import Tokenizer  # noqa: PLC0415
        from tagsmith.core.model.use.text import tag_text  # noqa: PLC0415  # imports this module

        return tag_text(self, text, None if tokenizer is None else Tokenizer.of(tokenizer))

    def tag_probe(self) -> None:
        """Tag or parse one token that no model knows, to test an imported model."""
        probe = [[[_PROBE] * self.columns]]
        if self.is_parser:
            self.parse(probe)
        else:
            self.tag(probe)

    def named(self, ids: NDArray[np.int32]) -> list[str]:
        """Return the names of label ids."""
        names: list[str] = self._names[ids].tolist()
        return names

    def decode(self, coded: Coded) -> NDArray[np.int32]:
        """Return the id of the best label of every token."""
        out = np.empty(int(coded.offsets[-1]), np.int32)
        s = self.scratch(coded.longest)
        if self.model.edges is None:
            _tag(self.weights, coded, s, out)
        else:
            _tag_with_edges(self.weights, self.edge_weights, coded, s, out)
        return out

    def scratch_bytes(self, longest: int, *, posterior: bool = False) -> int:
        """Return the memory that decoding a sentence takes; with `posterior`, that of its probabilities, too."""
        if self._arcs is not None:
            return parsing_bytes(self._arcs, longest)
        numbers = longest * (self.width + self._tagging().matrix_size)
        return 4 * numbers if not posterior else 4 * 8 * numbers

    def scratch(self, longest: int) -> TaggingScratch:
        """Allocate buffers for sentences of up to `longest` tokens."""
        chains = self._tagging()
        return TaggingScratch(
            np.empty(longest * self.width, np.float32),
            np.empty(longest * chains.matrix_size, np.float32),
            np.empty(chains.templates, np.uint64),
            np.empty(chains.templates, np.int64),
        )

    def code_corpus(self, corpus: Corpus) -> Coded:
        """Code a corpus."""
        return self._coded(self.model.coder.tokens_of(corpus))

    def code(self, sentences: Sequence[Sentence]) -> Coded:
        """Code sentences. All later steps work on arrays only."""
        offsets = np.array(list(accumulate(map(len, sentences), initial=0)), np.int64)
        offsets.flags.writeable = False
        tokens: list[Any] = list(chain.from_iterable(sentences))
        if self.columns == 0:
            return self._coded(TokenTable((), offsets, bag_of(tokens, offsets)))
        columns = columns_of(sentences, tokens, self.columns, self.model.usage)
        return self._coded(self.model.coder.tokens_of_strings(columns, offsets))

    def _coded(self, tokens: TokenTable) -> Coded:
        codes = self.model.coder.code(tokens)
        if not self.model.bags:
            return Coded(codes, tokens.offsets)
        return Coded.of(codes, tokens.offsets, attributes_of(self.model.bags, tokens))


class _ChainWeights:
    """The weights of a tagger, and the sizes of its buffers."""

    def __init__(self, model: SparseModel) -> None:
        labels, width = len(model.labels), v.padded(len(model.labels))
        # Writable, like the matrices of single tokens: Viterbi is then compiled for one array type only.
        transitions = v.zeros(labels * width, np.float32)
        transitions.reshape(labels, -1)[:, :labels] = model.transitions
        a, lookup = model.attributes, AttributeLookup(model.slots, model.table.keys, model.table.rows)
        self.weights = TaggingWeights(
            lookup, _dense(model), a.starts, a.labels, a.weights, transitions, labels, width
        )
        self.edges = _edge_weights(model, width)
        self.templates = max(len(lookup.slots.seeds), len(self.edges.lookup.slots.seeds))
        self.matrix_size = 0 if model.edges is None else transitions.size


def _edge_weights(model: SparseModel, width: int) -> EdgeWeights:
    """Lay out the edge attributes for the kernels. They stay sparse: most attributes occur with few label pairs."""
    slots = model.edge_slots
    if model.edges is None:
        lookup = AttributeLookup(slots, model.table.keys, model.table.rows)
        return EdgeWeights(
            lookup, readonly(np.zeros(1), np.int64), slots.rows, readonly(np.empty(0), np.float32)
        )
    a, table, labels = model.edges.attributes, model.edges.table, len(model.labels)
    places = readonly(a.labels // labels * width + a.labels % labels, np.int32)
    return EdgeWeights(AttributeLookup(slots, table.keys, table.rows), a.starts, places, a.weights)


def _dense(model: SparseModel) -> Floats:
    """Expand the weights to dense rows, with a last row of zeros; empty if they exceed DENSE_BYTES."""
    a, width = model.attributes, v.padded(len(model.labels))
    size = (a.size + 1) * width
    if 4 * size > DENSE_BYTES:
        return readonly(np.empty(0, np.float32), np.float32)
    rows = v.zeros(size, np.float32)
    rows.reshape(-1, width)[np.repeat(np.arange(a.size), np.diff(a.starts)), a.labels] = a.weights
    return readonly(rows, np.float32)
