"""The tokenizer: splits text into tokens and sentences, in the same way for corpora, models and commands.

Its version is a part of it. A rule that changes becomes a new version, and models keep the version that they were
trained for. Version 1 is that of models from before tokenizers were kept: see `first_version`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from tagsmith.core.base.arrays import Places
from tagsmith.core.corpus.text import first_version
from tagsmith.core.corpus.text.abbreviations import CLITICS, join_stops, quiet_stops, split_clitics
from tagsmith.core.corpus.text.kinds import BLANK, code_points, kinds_of
from tagsmith.core.corpus.text.patterns import automaton_of, matches
from tagsmith.core.corpus.text.sentences import find_sentences
from tagsmith.core.corpus.text.words import Kinds, Points, find_words

TokenizerKind = Literal["words", "blanks", "characters", "pattern"]
#: By rules, and at line breaks; or at line breaks only.
SentenceRule = Literal["rules", "lines"]

#: The version of new tokenizers.
VERSION = 2
_ALIASES = {"whitespace": "blanks"}
_FIELDS = frozenset({"kind", "version", "pattern", "clitics", "sentences"})


@dataclass(frozen=True, eq=False, slots=True)
class TextTokens:
    """The tokens and sentences of a text."""

    starts: Places  # first character of each token
    stops: Places  # character after each token
    ends: Places  # tokens up to the end of each sentence

    def strings(self, text: str) -> list[str]:
        """Return the tokens as strings."""
        return [
            text[start:stop] for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A rule for tokens and its version. Sentences are split by the same version."""

    kind: TokenizerKind = "words"
    version: int = VERSION
    #: Of kind `pattern`: tokens are what it matches.
    pattern: str | None = None
    #: Of kind `words`: parts to split from words, such as `'s`, as the training corpus splits them.
    clitics: tuple[str, ...] = ()
    #: What ends a sentence. `lines` suits sequences that have stops inside, such as references.
    sentences: SentenceRule = "rules"

    @classmethod
    def of(cls, given: object) -> "Tokenizer":
        """Return the tokenizer of a name, of a record or of JSON text; raise ValueError with the reason."""
        if isinstance(given, Tokenizer):
            return given
        if isinstance(given, str) and given.lstrip().startswith("{"):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                raise ValueError(f"{_EXPECTED} The value is not valid JSON.") from None
        if isinstance(given, str):
            given = {"kind": given}
        if not isinstance(given, Mapping) or not given.keys() <= _FIELDS:
            raise ValueError(_EXPECTED)
        return cls._of_record(given)

    @classmethod
    def _of_record(cls, record: Mapping[str, Any]) -> "Tokenizer":
        pattern = record.get("pattern")
        kind = record.get("kind", "pattern" if pattern is not None else None)
        kind = _ALIASES.get(kind, kind) if isinstance(kind, str) else kind
        version = record.get("version", VERSION)
        clitics = record.get("clitics", ())
        if kind not in get_args(TokenizerKind) or (kind == "pattern") != isinstance(pattern, str):
            raise ValueError(_EXPECTED)
        if (
            type(version) is not int
            or not 1 <= version <= VERSION
            or (kind == "pattern" and version < VERSION)
        ):
            raise ValueError(f"Version {version!r} of {kind} is unknown. The newest is {VERSION}.")
        if not isinstance(clitics, (list, tuple)) or not all(
            isinstance(part, str) and part in CLITICS for part in clitics
        ):
            raise ValueError(f"Clitics can be {', '.join(sorted(CLITICS))}.")
        if clitics and (kind != "words" or version < VERSION):
            raise ValueError("Only words of version 2 have clitics.")
        sentences = record.get("sentences", "rules")
        if sentences not in get_args(SentenceRule):
            raise ValueError(f"Sentences can be {' or '.join(get_args(SentenceRule))}.")
        if pattern is not None:
            automaton_of(pattern)
        return cls(cast(TokenizerKind, kind), version, pattern, tuple(clitics), cast(SentenceRule, sentences))

    def record(self) -> dict[str, Any]:
        """Return plain values for JSON, as in model files. `of` reads them."""
        found: dict[str, Any] = {"kind": self.kind, "version": self.version}
        if self.pattern is not None:
            found["pattern"] = self.pattern
        if self.sentences != "rules":
            found["sentences"] = self.sentences
        return found | ({"clitics": list(self.clitics)} if self.clitics else {})

    def split(self, text: str) -> TextTokens:
        """Return the tokens and sentences of a text."""
        if self.version == 1:
            return TextTokens(*first_version.split(text, self.kind))
        points = code_points(text)
        kinds = kinds_of(points)
        starts, stops = self._tokens(text, points, kinds)
        ends = np.empty(starts.size, np.int64)
        if self.sentences == "lines" or not starts.size:
            quiet = np.ones(starts.size, np.bool_)
        else:
            quiet = quiet_stops(text, points, kinds, starts, stops)
        count = find_sentences(points, kinds, starts, stops, quiet, ends)
        return TextTokens(starts, stops, ends[:count])

    def _tokens(self, text: str, points: Points, kinds: Kinds) -> tuple[Places, Places]:
        if self.kind == "pattern":
            assert self.pattern is not None
            return matches(points, self.pattern)
        token = (kinds & BLANK) == 0
        if self.kind == "characters":
            starts = np.flatnonzero(token)
            return starts, starts + 1
        if self.kind == "blanks":
            edges = np.flatnonzero(np.diff(token, prepend=False, append=False))
            return edges[::2].copy(), edges[1::2].copy()
        starts, stops = np.empty(points.size, np.int64), np.empty(points.size, np.int64)
        count = find_words(points, kinds, starts, stops)
        starts, stops = join_stops(text, points, kinds, starts[:count].copy(), stops[:count].copy())
        return split_clitics(text, kinds, starts, stops, self.clitics) if self.clitics else (starts, stops)


_EXPECTED = 'Give words, blanks, characters or {"pattern": "a regular expression"}.'


def warm() -> None:
    """Compile the kernels, or load them from the cache."""
    for given in ("words", {"pattern": r"\w+"}):
        Tokenizer.of(given).split("a b")
