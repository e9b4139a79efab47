"""Scores of word segmentation, as in the SIGHAN bakeoffs.

A word is correct if both its boundaries are. Precision, recall and F1 are those of words. A word of the test text is
out of vocabulary if it is not a word of the training text; recall is reported separately for such words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.labels.chunks import codes_chunks
from tagsmith.core.corpus.labels.segmentation import codes_words, word_starts
from tagsmith.core.evaluate import spans
from tagsmith.core.evaluate.spans import Metrics, ScoreName
from tagsmith.core.features.lexicon.trie import Trie

_WORDS = ("B-W", "I-W")


@dataclass(frozen=True, slots=True)
class VocabularyScore:
    """Recall of words in and out of the vocabulary of the training text, in percent."""

    out_of_vocabulary: int  # words of the test text
    out_of_vocabulary_rate: float
    out_of_vocabulary_recall: float
    in_vocabulary_recall: float


def score_name(names: Sequence[str]) -> ScoreName:
    """Choose the score to compare by: F1 if the labels encode chunks or words, otherwise token accuracy."""
    return "f1" if codes_chunks(names) or codes_words(names) else "accuracy"


def evaluate(names: Sequence[str], gold: Ids, predicted: Ids, offsets: Places) -> Metrics:
    """Score labels: by words if they encode words, else by spans. Accuracy is always that of labels."""
    if not codes_words(names):
        return replace(spans.evaluate(names, gold, predicted, offsets), score=score_name(names))
    found = spans.evaluate(
        _WORDS, _as_words(names, gold, offsets), _as_words(names, predicted, offsets), offsets
    )
    right = int(np.count_nonzero(gold == predicted))
    accuracy = 100.0 * right / gold.size if gold.size else 0.0
    return replace(found, accuracy=accuracy, tokens_correct=right, by_type={})


def sentence_counts(names: Sequence[str], gold: Ids, predicted: Ids, offsets: Places) -> NDArray[np.int64]:
    """Return `spans.sentence_counts`, of words if the labels encode words."""
    if codes_words(names):
        gold, predicted = _as_words(names, gold, offsets), _as_words(names, predicted, offsets)
        names = _WORDS
    return spans.sentence_counts(names, gold, predicted, offsets)


def _as_words(names: Sequence[str], labels: Ids, offsets: Places) -> Ids:
    return np.where(word_starts(names, labels, offsets), 0, 1).astype(np.int32)


def vocabulary_score(
    train: Corpus, test: Corpus, names: Sequence[str], predicted: Ids
) -> VocabularyScore | None:
    """Score the words of `test` by whether `train` has them; None if the labels do not encode words."""
    if train.labels is None or test.labels is None or not codes_words(names):
        return None
    begins, lengths = _words(test, test.labels)
    known = _known(train, test, begins, lengths)
    right = _right(begins, lengths, word_starts(names, predicted, test.offsets))
    missing, words = int(np.count_nonzero(~known)), len(known)
    return VocabularyScore(
        missing,
        _percent(missing, words),
        _percent(int(np.count_nonzero(right & ~known)), missing),
        _percent(int(np.count_nonzero(right & known)), words - missing),
    )


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def _words(corpus: Corpus, labels: Column) -> tuple[Places, Places]:
    """Return the starts and the lengths of the words of a corpus."""
    begins = np.flatnonzero(word_starts(labels.vocabulary.strings(), labels.ids, corpus.offsets))
    return begins, np.diff(np.append(begins, corpus.tokens))


def _right(begins: Places, lengths: Places, starts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each word is one of the words that `starts` marks."""
    bounds = np.append(starts, True)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(starts)])
    stops = begins + lengths
    one: NDArray[np.bool_] = bounds[begins] & bounds[stops] & (before[stops] - before[begins] == 1)
    return one


def _known(train: Corpus, test: Corpus, begins: Places, lengths: Places) -> NDArray[np.bool_]:
    """Whether each word of `test` is a word of `train`."""
    assert train.labels is not None
    column, other = train.columns[0], test.columns[0].vocabulary
    _, size = _words(train, train.labels)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    # The words of a corpus are adjacent.
    trie, _ = Trie.of(column.ids, starts)
    ids = column.vocabulary.lookup(other.text, other.offsets[:-1], other.offsets[1:])
    tokens = readonly(ids[test.columns[0].ids], np.int32)
    known = np.zeros(len(begins), np.bool_)
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        if length <= int(size.max(initial=0)):
            known[chosen] = trie.starting(tokens, test.offsets, length)[begins[chosen]] >= 0
    return known
