"""What a model gets wrong: which labels it confuses, and sentences with wrong labels."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.sentences import Sentences

#: Pairs of labels in a result: more than a person reads.
MAX_PAIRS = 200
#: Wrong sentences in a result, and the tokens in all of them. The second limit is for corpora of whole documents.
MAX_SENTENCES = 50
MAX_TOKENS = 10_000


class LabelPair(TypedDict):
    """How often tokens with the label `gold` got the label `predicted`."""

    gold: str
    predicted: str
    count: int


class WrongSentence(TypedDict):
    """A sentence with at least one wrong label; `index` counts from 0."""

    index: int
    tokens: list[str]
    gold: list[str]
    predicted: list[str]


def confusion(names: Sequence[str], gold: NDArray[np.int32], predicted: NDArray[np.int32]) -> list[LabelPair]:
    """Count pairs of labels, most frequent first. If there are too many, correct pairs are left out first."""
    codes, counts = np.unique(gold.astype(np.int64) * len(names) + predicted, return_counts=True)
    pairs: list[LabelPair] = [
        {"gold": names[code // len(names)], "predicted": names[code % len(names)], "count": count}
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
    ]
    pairs.sort(key=lambda pair: (pair["gold"] == pair["predicted"], -pair["count"]))
    return sorted(pairs[:MAX_PAIRS], key=lambda pair: -pair["count"])


def wrong_sentences(
    corpus: Corpus, names: Sequence[str], gold: NDArray[np.int32], predicted: NDArray[np.int32]
) -> list[WrongSentence]:
    """Return the first sentences with a wrong label."""
    offsets = corpus.offsets
    wrong = np.concatenate([np.zeros(1, np.int64), np.cumsum(gold != predicted)])
    places = np.flatnonzero(np.diff(wrong[offsets]))[:MAX_SENTENCES].tolist()
    if not places:
        return []
    sentences, found, left = Sentences(corpus), list[WrongSentence](), MAX_TOKENS
    for index in places:
        first, last = offsets[index : index + 2].tolist()
        left -= last - first
        if left < 0:
            break
        found.append(
            {
                "index": index,
                "tokens": sentences.read(index).tokens,
                "gold": [names[label] for label in gold[first:last].tolist()],
                "predicted": [names[label] for label in predicted[first:last].tolist()],
            }
        )
    return found
