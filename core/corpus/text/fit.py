"""Whether the tokens of a corpus could come from a tokenizer, and which tokenizer suits a corpus.

The sequences of a corpus are not always sentences: a reference or an address has stops inside. If the rules of
sentences would split many sequences, a model of the corpus gets a tokenizer that ends sentences at line breaks only.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.labels.segmentation import is_coding
from tagsmith.core.corpus.text.abbreviations import BEGINNINGS, CLITICS, ENDINGS
from tagsmith.core.corpus.text.kinds import SINGLE, code_points, kinds_of
from tagsmith.core.corpus.text.tokenizer import Tokenizer

#: Tokens to check, from the start of the corpus. They take about a tenth of a second.
_TOKENS = 50_000
#: `words` is the tokenizer of a corpus if at least this share of its tokens could come from it. It is 0.993 in
#: CoNLL-2000, 0.997 and 0.999 in the Spanish and Dutch parts of CoNLL-2002 and 0.991 in GENIA. Where the punctuation is
#: a part of the words, one token in ten differs.
_SUITS = 0.95
#: With a smaller share than this, training warns.
_WARNS = 0.99
#: A part of words, such as `'s`, is split if it is a token at least this often, and more often than a part of one.
_CLITIC_COUNT = 3
#: The rules of sentences suit a corpus unless they add more than this share of sentences. They add at most
#: 0.06 in CoNLL-2000, CoNLL-2002, GENIA and UD English EWT, and 1.6 in generated references.
_ADDED = 0.2
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Fit:
    """The share of tokens that the tokenizer gives again, and the first others with what it gives instead."""

    tokenizer: Tokenizer
    share: float
    examples: tuple[tuple[str, tuple[str, ...]], ...]
    #: Sentences that the tokenizer finds inside sequences, as a share of the sequences.
    added: float = 0.0

    def warning(self) -> str | None:
        """Return a sentence if too many tokens differ, else None."""
        if self.share >= _WARNS:
            return None
        shown = "; ".join(f"{token!r} becomes {' '.join(map(repr, found))}" for token, found in self.examples)
        return (
            f"The tokenizer {self.tokenizer.kind} cannot produce {100 * (1 - self.share):.1f} % of the training tokens "
            f"({shown}). Text will be split differently from the corpus. Choose another tokenizer at upload, or send "
            "tokens."
        )


def fit_of(tokenizer: Tokenizer, corpus: Corpus) -> Fit:
    """Tokenize the first sentences of a corpus again, with blanks between tokens, and compare."""
    last = int(np.searchsorted(corpus.offsets, _TOKENS, "right")) - 1
    last = max(last, min(1, corpus.sentences))
    strings = corpus.columns[0].vocabulary.strings()
    tokens = [strings[i] for i in corpus.columns[0].ids[: corpus.offsets[last]].tolist()]
    lengths = np.array([len(token) for token in tokens], np.int64)
    stops = np.cumsum(lengths + 1) - 1
    starts = stops - lengths
    joined = np.full(len(tokens), " ", object)
    joined[corpus.offsets[1 : last + 1][np.diff(corpus.offsets[: last + 1]) > 0] - 1] = "\n"
    text = "".join(
        token.replace("\n", " ") + after for token, after in zip(tokens, joined.tolist(), strict=True)
    )
    found = tokenizer.split(text)
    # A token is given again if one with the same start has the same stop.
    place = np.searchsorted(found.starts, starts)
    inside = place < found.starts.size
    same = np.zeros(len(tokens), np.bool_)
    same[inside] = (found.starts[place[inside]] == starts[inside]) & (
        found.stops[place[inside]] == stops[inside]
    )
    examples: dict[str, tuple[str, ...]] = {}
    for token in np.flatnonzero(~same).tolist():
        first = int(np.searchsorted(found.stops, starts[token], "right"))
        pieces = []
        while first < found.starts.size and found.starts[first] < stops[token]:
            pieces.append(text[found.starts[first] : found.stops[first]])
            first += 1
        examples.setdefault(tokens[token], tuple(pieces))
        if len(examples) == _EXAMPLES:
            break
    sequences = int(np.count_nonzero(np.diff(corpus.offsets[: last + 1])))
    added = found.ends.size / sequences - 1 if sequences else 0.0
    return Fit(tokenizer, float(same.mean()) if tokens else 1.0, tuple(examples.items()), added)


def suitable(corpus: Corpus) -> Fit:
    """Return the tokenizer for models of a corpus: its own, or the one that its tokens and sequences suggest."""
    fit = _fit_of_tokens(corpus)
    if fit.added <= _ADDED or fit.tokenizer.version == 1:
        return fit
    return replace(fit, tokenizer=replace(fit.tokenizer, sentences="lines"))


def _fit_of_tokens(corpus: Corpus) -> Fit:
    if corpus.tokenizer is not None:
        given = corpus.tokenizer
        settled = given.kind != "words" or given.version == 1 or bool(given.clitics)
        return fit_of(given if settled else _with_clitics(given, corpus), corpus)
    characters = fit_of(Tokenizer("characters"), corpus)
    if characters.share >= _SUITS and _is_of_characters(corpus):
        return characters
    words = fit_of(_with_clitics(Tokenizer(), corpus), corpus)
    return words if words.share >= _SUITS else fit_of(Tokenizer("blanks"), corpus)


def _is_of_characters(corpus: Corpus) -> bool:
    """Whether the labels segment characters into words, or most tokens are letters of scripts without spaces."""
    if corpus.labels is not None and is_coding(corpus.labels.vocabulary.strings()):
        return True
    points = code_points("".join(corpus.columns[0].vocabulary.strings()))
    return bool(np.mean(kinds_of(points) & SINGLE != 0) > 0.5) if points.size else False


def _with_clitics(tokenizer: Tokenizer, corpus: Corpus) -> Tokenizer:
    """Return the tokenizer with the parts of words that the corpus splits, as `Ada 's` and `do n't`."""
    column = corpus.columns[0]
    counts = np.bincount(column.ids, minlength=len(column.vocabulary)).tolist()
    apart, attached = Counter[str](), Counter[str]()
    for string, count in zip(column.vocabulary.strings(), counts, strict=True):
        word = string.lower().replace("\u2019", "'")
        if "'" not in word:
            continue
        if word in CLITICS:
            apart[word] += count
            continue
        attached.update({part: count for part in ENDINGS if word.endswith(part)})
        attached.update({part: count for part in BEGINNINGS if word.startswith(part)})
    found = [part for part in (*ENDINGS, *BEGINNINGS) if apart[part] > max(attached[part], _CLITIC_COUNT - 1)]
    return replace(tokenizer, clitics=tuple(found))
