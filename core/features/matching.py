"""Columns whose values depend on the whole sentence or on a lexicon, computed.

Each token becomes a token of the matcher, once a distinct string; kernels match the sentences; what they find, a raw
code, becomes a value of the column's vocabulary. Tagging does the same as training, but for the dictionaries of
training text: see `core.lexicon.dictionary`.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import Ids, Places
from core.corpus.corpus import Corpus
from core.corpus.segmentation import is_coding, word_starts
from core.corpus.vocabulary import Vocabulary, pack
from core.errors import Fault, Invalid
from core.features.index import UNKNOWN, Table
from core.features.matched import (
    ClusterColumn,
    LexiconColumn,
    MatchedSpec,
    SameColumn,
    TextColumn,
    WordColumn,
    WordLengthColumn,
    WordPairColumn,
)
from core.jit import kernel, readonly
from core.lexicon.dictionary import Dictionary, pairs_in
from core.lexicon.lexicon import Kind, Lexicon
from core.lexicon.ngrams import ngrams_of
from core.lexicon.trie import Nodes, Trie

#: Lexicons by id.
Lexicons = Mapping[str, Lexicon]
#: For features that need none.
NO_LEXICONS: Lexicons = {}
#: Kinds of lexicons that a kind of column can use.
_FITS: dict[str, tuple[Kind, ...]] = {
    "lexicon": ("words", "typed", "categories"),
    "cluster": ("clusters",),
    "text": ("text",),
}
#: Columns made from the labels of the training text.
GATHERED = (WordColumn, WordPairColumn, WordLengthColumn)
#: Raw codes of `same` columns.
_SAME = ("other", "same")


class Text(NamedTuple):
    """A column of text: entries of the model's vocabulary, and behind those the strings it lacks."""

    ids: Ids  # (tokens,)
    lacking: Sequence[str]
    offsets: Places


class Folding(NamedTuple):
    """What is done to strings before they are compared."""

    case: bool
    width: bool

    def __call__(self, strings: Sequence[str]) -> list[str]:
        if self.width:
            strings = [unicodedata.normalize("NFKC", text) for text in strings]
        return [text.casefold() for text in strings] if self.case else list(strings)


@dataclass(frozen=True, eq=False)
class Matcher:
    """What columns look things up in. Those that would need the same one share it."""

    folding: Folding
    of: int
    tokens: Vocabulary
    of_base: Ids  # (base entries,) the token each is, or -1
    trie: Trie
    kinds: Ids  # (entries,) the class of each entry, or of each token where there is no trie; empty without classes
    pairs: Table

    def tokens_of(self, text: Text) -> Ids:
        """The tokens of a text, -1 where no entry has such a one."""
        known = self.of_base
        if text.lacking:
            known = np.concatenate([known, self.tokens.lookup(*pack(self.folding(text.lacking)))])
        return readonly(known[text.ids], np.int32)

    @property
    def classes(self) -> int:
        return int(self.kinds.max(initial=-1)) + 1

    @property
    def entries(self) -> int:
        return int(self.trie.nodes.entries.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class MatchedColumn:
    """A column of this sort: its values, and the value that each raw code stands for."""

    name: str
    spec: MatchedSpec
    vocabulary: Vocabulary
    value_of: Ids  # (raw codes,) id here, or UNKNOWN
    matcher: Matcher | None

    def codes(self, text: Text) -> Ids:
        """The values of a text that was not trained on."""
        return self.of_raw(raw_codes(self.spec, self.matcher, text))

    def of_raw(self, raw: Ids) -> Ids:
        """The values of raw codes, -1 among them for nothing found."""
        return np.append(self.value_of, np.int32(UNKNOWN))[raw]


@dataclass(frozen=True, eq=False)
class Trained:
    """Columns made from a training corpus, and their values on it."""

    columns: tuple[MatchedColumn, ...]
    codes: tuple[Ids, ...]


def raw_size(spec: MatchedSpec, matcher: Matcher | None) -> int:
    """How many raw codes a column can have."""
    if matcher is None:
        return len(_SAME)
    if isinstance(spec, LexiconColumn):
        return 1 + matcher.classes * _places(spec)
    if isinstance(spec, WordColumn):
        return matcher.entries
    if isinstance(spec, WordLengthColumn):
        return spec.longest + 1
    return len(matcher.pairs.rows[matcher.pairs.rows >= 0]) if spec.kind == "word-pair" else matcher.classes


def raw_codes(
    spec: MatchedSpec, matcher: Matcher | None, text: Text, left_out: Dictionary | None = None
) -> Ids:
    """What is found at each token, -1 for nothing. `left_out` is the dictionary when the text is what it is from."""
    if isinstance(spec, SameColumn) or matcher is None:
        out = np.empty(len(text.ids), np.int32)
        _same(readonly(text.ids, np.int32), text.offsets, getattr(spec, "n", 1), out)
        return out
    tokens, offsets = matcher.tokens_of(text), text.offsets
    if isinstance(spec, LexiconColumn):
        match = matcher.trie.forward if spec.match == "forward" else matcher.trie.backward
        return match(matcher.kinds, tokens, offsets, _places(spec))
    if isinstance(spec, ClusterColumn):
        return np.append(matcher.kinds, np.int32(-1))[tokens]
    if isinstance(spec, TextColumn):
        found = matcher.trie.starting(tokens, offsets, spec.n)
        return np.append(matcher.kinds, np.int32(-1))[found]
    return _gathered_codes(spec, matcher, tokens, offsets, left_out)


def _gathered_codes(
    spec: WordColumn | WordLengthColumn | WordPairColumn,
    matcher: Matcher,
    tokens: Ids,
    offsets: Places,
    left_out: Dictionary | None,
) -> Ids:
    """What is found of a dictionary of training text."""
    words = left_out.words if left_out else None
    if isinstance(spec, WordColumn):
        return matcher.trie.starting(tokens, offsets, spec.n, words)
    if isinstance(spec, WordLengthColumn):
        return matcher.trie.lengths(tokens, offsets, spec.longest, spec.side, words)
    lengths, bigrams = (spec.shortest, spec.longest), left_out.bigrams if left_out else None
    return pairs_in(matcher.trie, matcher.pairs, tokens, offsets, lengths, spec.rank, bigrams)


@kernel
def _same(ids: Ids, offsets: Places, n: int, out: Ids) -> None:
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        for t in range(begin, end):
            out[t] = (1 if ids[t] == ids[t + n] else 0) if t + n < end else -1


def _places(spec: LexiconColumn) -> int:
    return 2 if spec.coding == "iob" else 4


# -- making columns from a training corpus --


def trained(specs: Sequence[tuple[str, MatchedSpec]], corpus: Corpus, lexicons: Lexicons) -> Trained:
    """Make the columns of a training corpus. Lexicons are given by id."""
    bench = _Workbench(corpus, lexicons, [spec for _, spec in specs])
    made = [bench.column(name, spec) for name, spec in specs]
    return Trained(tuple(column for column, _ in made), tuple(codes for _, codes in made))


@dataclass(frozen=True, eq=False)
class _Source:
    """A matcher while training: also what its raw codes are called, and the dictionary it is."""

    matcher: Matcher
    classes: list[str] = field(default_factory=list)
    dictionary: Dictionary | None = None


class _Workbench:
    """The matchers made so far."""

    def __init__(self, corpus: Corpus, lexicons: Lexicons, specs: Sequence[MatchedSpec]) -> None:
        self._corpus, self._lexicons, self._specs = corpus, lexicons, specs
        self._sources: dict[tuple[object, ...], _Source] = {}

    def column(self, name: str, spec: MatchedSpec) -> tuple[MatchedColumn, Ids]:
        """A column, and its values on the corpus."""
        ids = self._corpus.columns[spec.of].ids
        text = Text(ids, (), self._corpus.offsets)
        source = None if isinstance(spec, SameColumn) else self._source(name, spec)
        matcher = source.matcher if source else None
        raw = raw_codes(spec, matcher, text, source.dictionary if source else None)
        used = np.unique(raw[raw >= 0])
        named = self._names(spec, source)
        numbers: dict[str, int] = {}
        value_of = np.full(raw_size(spec, matcher), UNKNOWN, np.int32)
        for code in used.tolist():
            value_of[code] = numbers.setdefault(named(code), len(numbers))
        vocabulary = Vocabulary.from_strings(list(numbers))
        column = MatchedColumn(name, spec, vocabulary, readonly(value_of, np.int32), matcher)
        return column, column.of_raw(raw)

    def _names(self, spec: MatchedSpec, source: _Source | None) -> Callable[[int], str]:
        """What raw codes are called."""
        if source is None:
            return lambda code: _SAME[code]
        if isinstance(spec, LexiconColumn):
            return lambda code: _match_name(code, source.classes, spec)
        if source.dictionary is None:
            return lambda code: source.classes[code]
        known, strings = source.dictionary, self._strings(spec)
        ids = self._corpus.columns[spec.of].ids

        def word(number: int) -> str:
            start = int(known.word_at[number])
            return "".join(strings[i] for i in ids[start : start + int(known.length_of[number])].tolist())

        if isinstance(spec, WordColumn):
            return word
        if isinstance(spec, WordLengthColumn):
            return str
        return lambda code: "{} {}".format(*map(word, known.pair_of[code].tolist()))

    def _strings(self, spec: MatchedSpec) -> list[str]:
        return _folding(spec)(self._corpus.columns[spec.of].vocabulary.strings())

    def _source(self, name: str, spec: MatchedSpec) -> _Source:
        key = _key(spec)
        if key not in self._sources:
            if isinstance(spec, GATHERED):
                self._sources[key] = self._gathered(name, spec)
            else:
                self._sources[key] = self._looked_up(name, spec)
        return self._sources[key]

    def _looked_up(self, name: str, spec: MatchedSpec) -> _Source:
        lexicon = _lexicon_of(name, spec, self._lexicons)
        if isinstance(spec, TextColumn):
            found = ngrams_of(lexicon.entries, spec.n, spec.measure)
            sequences = [[found.characters[i] for i in row] for row in found.ids.tolist()]
            classes, kinds = [str(i) for i in range(int(found.bins.max(initial=-1)) + 1)], found.bins.tolist()
        else:
            sequences, classes, kinds = _entries(spec, lexicon)
        matcher = self._matcher(spec, sequences, kinds)
        return _Source(matcher, classes)

    def _matcher(self, spec: MatchedSpec, sequences: list[list[str]], kinds: list[int]) -> Matcher:
        """The matcher of sequences of strings, each of a class."""
        folding = _folding(spec)
        flat = folding([token for sequence in sequences for token in sequence])
        numbers = {token: number for number, token in enumerate(dict.fromkeys(flat))}
        ids = np.fromiter((numbers[token] for token in flat), np.int32, len(flat))
        starts = np.concatenate([[0], np.cumsum([len(s) for s in sequences], dtype=np.int64)]).astype(
            np.int64
        )
        kind_of = np.array(kinds, np.int32)
        if isinstance(spec, ClusterColumn):
            # Of a word that stands in several clusters, or does once it is folded, the first one counts.
            _, first = np.unique(ids, return_index=True)
            trie, kind_of = Trie.of(ids[:0], starts[:1])[0], kind_of[first]
        else:
            trie, entry_of = Trie.of(ids, starts)
            _, first = np.unique(entry_of, return_index=True)
            kind_of = kind_of[first]
        tokens = Vocabulary.from_strings(list(numbers))
        return Matcher(
            folding,
            spec.of,
            tokens,
            self._of_base(spec, tokens),
            trie,
            readonly(kind_of, np.int32),
            no_pairs(),
        )

    def _of_base(self, spec: MatchedSpec, tokens: Vocabulary) -> Ids:
        return readonly(tokens.lookup(*pack(self._strings(spec))), np.int32)

    def _word_starts(self, name: str) -> NDArray[np.bool_]:
        """Where words start; text without labels, which only a preview has, is of no known words."""
        corpus, labels = self._corpus, self._corpus.labels
        if labels is None:
            return np.zeros(corpus.tokens, np.bool_)
        names = labels.vocabulary.strings()
        if not is_coding([names[i] for i in np.unique(labels.ids).tolist()]):
            fault = Fault(
                "words are gathered from labels that cut the text into words (B I, B M E S or B B2 B3 M E S)",
                pointer=f"/features/derived/{name}",
            )
            raise Invalid("The corpus is not one of segmentation", [fault], code="not_segmented")
        return word_starts(names, labels.ids, corpus.offsets)

    def _gathered(self, name: str, spec: WordColumn | WordPairColumn | WordLengthColumn) -> _Source:
        corpus = self._corpus
        tokens = Vocabulary.from_strings(list(dict.fromkeys(self._strings(spec))))
        of_base = self._of_base(spec, tokens)
        alike = [each for each in self._specs if _key(each) == _key(spec)]
        found = Dictionary.gathered(
            of_base[corpus.columns[spec.of].ids],
            self._word_starts(name),
            corpus.offsets,
            (min(map(_shortest, alike)), max(map(_longest, alike))),
            spec.least,
        )
        none = readonly(np.empty(0, np.int32), np.int32)
        matcher = Matcher(_folding(spec), spec.of, tokens, of_base, found.trie, none, found.pairs)
        return _Source(matcher, dictionary=found)


def _key(spec: MatchedSpec) -> tuple[object, ...]:
    """What two columns must have in common to share a matcher."""
    if isinstance(spec, GATHERED):
        return ("training", spec.of, spec.fold_width, spec.least)
    apart = {"match", "coding"} if isinstance(spec, LexiconColumn) else set[str]()
    return (spec.kind, spec.model_dump_json(exclude=apart))


def _shortest(spec: MatchedSpec) -> int:
    if isinstance(spec, WordPairColumn):
        return spec.shortest
    return spec.n if isinstance(spec, WordColumn) else 2


def _longest(spec: MatchedSpec) -> int:
    return spec.n if isinstance(spec, WordColumn) else int(getattr(spec, "longest", 1))


def _folding(spec: MatchedSpec) -> Folding:
    return Folding(getattr(spec, "fold_case", False), spec.fold_width)


def _lexicon_of(name: str, spec: MatchedSpec, lexicons: Lexicons) -> Lexicon:
    lexicon_id = spec.lexicon_id or ""
    found = lexicons.get(lexicon_id)
    pointer = f"/features/derived/{name}/lexicon"
    if found is None:
        raise Invalid(
            f"There is no lexicon {lexicon_id}",
            [Fault("unknown lexicon", pointer=pointer)],
            code="lexicon_not_found",
        )
    check_kind(spec, found.kind, pointer)
    return found


def check_kind(spec: MatchedSpec, kind: str, pointer: str) -> None:
    """Raise Invalid when a column cannot use a lexicon of that kind."""
    fits = _FITS.get(spec.kind, ())
    if kind not in fits:
        fault = Fault(f"a {spec.kind} column takes {' or '.join(fits)}; this is {kind}", pointer=pointer)
        raise Invalid("The lexicon is of another kind", [fault], code="wrong_lexicon_kind")


def _entries(spec: MatchedSpec, lexicon: Lexicon) -> tuple[list[list[str]], list[str], list[int]]:
    """Entries as sequences of tokens, names of classes, and the class of each entry.

    An entry of several types is of the class that names them all, in order: `LOC+PER`.
    """
    names: dict[str, set[str]] = {}
    wanted = getattr(spec, "type", None)
    for place, entry in enumerate(lexicon.entries):
        name = lexicon.classes[place] if lexicon.classes else ""
        if wanted is None or name == wanted:
            names.setdefault(entry, set()).add(_cut(spec, name))
    classes = sorted({_joined(spec, each) for each in names.values()})
    number = {name: i for i, name in enumerate(classes)}
    characters = getattr(spec, "unit", "token") == "character"
    sequences = [
        [entry]
        if isinstance(spec, ClusterColumn)
        else list(entry.replace(" ", ""))
        if characters
        else entry.split(" ")
        for entry in names
    ]
    return sequences, classes, [number[_joined(spec, each)] for each in names.values()]


def _cut(spec: MatchedSpec, name: str) -> str:
    length = spec.n if isinstance(spec, ClusterColumn) else getattr(spec, "prefix", None)
    return name[:length] if length else name


def _joined(spec: MatchedSpec, names: set[str]) -> str:
    return min(names) if isinstance(spec, ClusterColumn) else "+".join(sorted(names))


def _match_name(code: int, classes: Sequence[str], spec: LexiconColumn) -> str:
    if code == 0:
        return "O"
    places = "BI" if spec.coding == "iob" else "BMES"
    kind, place = divmod(code - 1, len(places))
    return f"{places[place]}-{classes[kind]}" if classes[kind] else places[place]


def no_pairs() -> Table:
    """The table of no bigrams."""
    return Table.of(np.empty(0, np.uint64))


def restricted(column: MatchedColumn, vocabulary: Vocabulary, value_of: NDArray[np.int32]) -> MatchedColumn:
    """The column with fewer values."""
    return replace(column, vocabulary=vocabulary, value_of=readonly(value_of, np.int32))


def trie_of(keys: NDArray[np.uint64], rows: Ids, entries: Ids) -> Trie:
    """A trie from its arrays."""
    return Trie(Nodes(keys, rows, entries))
