"""Labelled spans of characters in texts, placed on tokens. The formats `brat` and `spans` have them."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

import numpy as np

from tagsmith.core.base.arrays import Ids, Places, numbered
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.intern import empty_pool, intern, vocabulary_of
from tagsmith.core.corpus.text.kinds import code_points
from tagsmith.core.corpus.text.tokenizer import TextTokens, Tokenizer
from tagsmith.core.corpus.vocabulary import Vocabulary

Conflicts = Literal["refuse", "resolve"]
#: (first token, token after the last, type)
TokenSpan = tuple[int, int, str]

# Whether a span is valid, and if not, why.
_VALID, _NO_TOKEN, _CROSSES_LINE, _CUTS_TOKEN = range(4)
_REASONS = (
    "",
    "contains no token",
    "crosses the end of a line of text",
    "begins or ends inside a token; choose another tokenizer, or extend it with conflicts=resolve",
)


class CharacterSpan(NamedTuple):
    """Characters `start` to `stop` - 1 have a type. `name` and `line` are for messages."""

    start: int
    stop: int
    type: str
    name: str
    line: int


class WrongSpan(NamedTuple):
    """A span that cannot become labels."""

    span: CharacterSpan
    reason: str


class LabelledTexts:
    """Collects the tokens of texts, with the labels of their spans in IOB2."""

    def __init__(self, tokenizer: Tokenizer, *, labelled: bool) -> None:
        self._tokenizer = tokenizer
        self._labelled = labelled
        self._pool = empty_pool(1)
        self._names = {"O": 0}  # label to id
        self._ids: list[Ids] = []
        self._labels: list[Ids] = []
        self._ends: list[Places] = []
        #: Tokens so far.
        self.tokens = 0

    def add(self, text: str, tokens: TextTokens, spans: Iterable[TokenSpan]) -> None:
        """Add a text that has been split into `tokens`."""
        encoded = np.frombuffer(text.encode(), np.uint8)
        offsets = _byte_offsets(text)
        self._pool, ids = intern(self._pool, encoded, offsets[tokens.starts], offsets[tokens.stops], 1)
        self._ids.append(ids)
        self._ends.append(tokens.ends + self.tokens)
        self.tokens += ids.size
        labels = np.zeros(ids.size, np.int32)
        for first, last, kind in spans:
            labels[first] = self._names.setdefault(f"B-{kind}", len(self._names))
            if last > first + 1:
                labels[first + 1 : last] = self._names.setdefault(f"I-{kind}", len(self._names))
        self._labels.append(labels)

    def join(self, first: int) -> None:
        """Join the texts from number `first` on into one: small arrays take several times the size of their data."""
        for parts in (self._ids, self._labels, self._ends):
            if len(parts) > first:
                parts[first:] = [np.concatenate(parts[first:])]

    def corpus(self) -> Corpus:
        """Return the corpus of all texts."""
        column = Column("0", vocabulary_of(self._pool, 0), np.concatenate(self._ids))
        offsets = np.concatenate([np.zeros(1, np.int64), *self._ends])
        if not self._labelled:
            return Corpus((column,), None, offsets, tokenizer=self._tokenizer)
        found, ids = numbered(np.concatenate(self._labels))
        names = list(self._names)
        vocabulary = Vocabulary.from_strings([names[code] for code in found.tolist()])
        return Corpus((column,), Column("label", vocabulary, ids), offsets, tokenizer=self._tokenizer)


def place(
    text: str, tokens: TextTokens, spans: Iterable[CharacterSpan], *, resolve: bool
) -> tuple[TextTokens, list[TokenSpan], list[WrongSpan]]:
    """Place spans on the tokens of a text. With `resolve`, extend spans to whole tokens and keep the longer of two.

    Return the tokens without sentence ends inside spans, the spans in order, and those that are wrong.
    """
    ordered = sorted(spans, key=attrgetter("start", "stop"))
    tokens = _undivided(text, tokens, ordered)
    placed: list[tuple[int, int, CharacterSpan]] = []
    wrong: list[WrongSpan] = []
    for span, first, last, reason in _aligned(ordered, tokens, resolve=resolve):
        if reason:
            wrong.append(WrongSpan(span, reason))
            continue
        if placed and first < placed[-1][1]:
            before = placed[-1]
            if not resolve:
                wrong.append(
                    WrongSpan(span, f"overlaps {before[2].name}; conflicts=resolve keeps the longer one")
                )
                continue
            if last - first <= before[1] - before[0]:
                continue
            placed.pop()
        placed.append((first, last, span))
    return tokens, [(first, last, span.type) for first, last, span in placed], wrong


def _aligned(
    spans: Sequence[CharacterSpan], tokens: TextTokens, *, resolve: bool
) -> Iterable[tuple[CharacterSpan, int, int, str]]:
    """Yield (span, its first token, the token after its last, why it is invalid or "")."""
    starts, stops = np.array([each[:2] for each in spans], np.int64).reshape(-1, 2).T
    first = np.searchsorted(tokens.stops, starts, "right")
    last = np.searchsorted(tokens.starts, stops, "left")
    reasons = np.where(first < last, _VALID, _NO_TOKEN)
    some = np.flatnonzero(first < last)
    a, b = first[some], last[some]
    if not resolve:
        cut = (tokens.starts[a] < starts[some]) | (tokens.stops[b - 1] > stops[some])
        reasons[some[cut]] = _CUTS_TOKEN
    reasons[some[b > tokens.ends[np.searchsorted(tokens.ends, a, "right")]]] = _CROSSES_LINE
    texts = [_REASONS[reason] for reason in reasons.tolist()]
    return zip(spans, first.tolist(), last.tolist(), texts, strict=True)


def _undivided(text: str, tokens: TextTokens, spans: Sequence[CharacterSpan]) -> TextTokens:
    """Return the tokens without sentence ends inside a span, such as after `Yahoo!`, except at line breaks."""
    kept = np.ones(tokens.ends.size, np.bool_)
    for each in spans:
        first = int(np.searchsorted(tokens.stops, each.start, "right"))
        last = int(np.searchsorted(tokens.starts, each.stop, "left"))
        inner = slice(*np.searchsorted(tokens.ends, [first + 1, last]).tolist())
        if inner.start < inner.stop and not text[each.start : each.stop].splitlines()[1:]:
            kept[inner] = False
    return TextTokens(tokens.starts, tokens.stops, tokens.ends[kept])


def _byte_offsets(text: str) -> Places:
    """(characters + 1,): where each character begins in UTF-8."""
    points = code_points(text)
    offsets = np.zeros(points.size + 1, np.int64)
    np.cumsum(1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000), out=offsets[1:])
    return offsets
