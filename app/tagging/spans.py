"""Spans and n-best lists of the entries of a response. The sequences of an entry join those of its sentences."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.app.tagging.source import Source
from tagsmith.core.evaluate.spans import spans_of
from tagsmith.core.model.decoding import Decoded
from tagsmith.core.model.tagger import Coded, Tagger
from tagsmith.wire import TagRequest

#: The tags of one sentence.
Tags = Sequence[str]


def entry_spans(
    labels: Sequence[str],
    source: Source,
    entry: int,
    tags: Sequence[Tags],
    probabilities: Sequence[NDArray[np.float64]] | None = None,
) -> list[dict[str, Any]]:
    """Return the spans of one entry, from the tags of each of its sentences. A span never crosses sentences.

    `probabilities` has, for each sentence, the probability of each span at its first token.
    """
    found: list[dict[str, Any]] = []
    before = 0
    for number, (chain, own) in enumerate(zip(range(*source.entries[entry : entry + 2]), tags, strict=True)):
        for span in spans_of(own, labels):
            described: dict[str, Any] = {
                "type": span.type,
                "start": before + span.start,
                "stop": before + span.stop,
            }
            if source.sentences:
                sentence = source.sentences[chain]
                begin, end = sentence.starts[span.start], sentence.stops[span.stop - 1]
                described |= {"begin": begin, "end": end, "text": source.texts[entry][begin:end]}
            else:
                described |= _text_of(source.chains[chain][span.start : span.stop])
            if probabilities is not None:
                described["probability"] = float(probabilities[number][span.start])
            found.append(described)
        before += len(own)
    return found


def _text_of(tokens: Sequence[Any]) -> dict[str, str]:
    """Return the text of a span of given tokens. Tokens of named attributes have none."""
    if isinstance(tokens[0], dict):
        return {}
    return {"text": " ".join(token if isinstance(token, str) else token[0] for token in tokens)}


def sequences(
    tagger: Tagger, source: Source, coded: Coded, decoded: Decoded, request: TagRequest
) -> Iterator[dict[str, Any]]:
    """Yield the most probable sequences of each entry: their tags, unless only spans are wanted, and spans."""
    rows = [tagger.named(path) for path in decoded.paths]
    bounds = list(pairwise(coded.offsets.tolist()))
    for entry, (first, last) in enumerate(pairwise(source.entries)):
        choices, logs = _joined(decoded, first, last, request.nbest)
        tags = [
            [rows[row][slice(*bounds[first + i])] for i, row in enumerate(each)] for each in choices.tolist()
        ]
        found: dict[str, Any] = {}
        if request.output != "spans":
            found["tags"] = [[tag for sentence in own for tag in sentence] for own in tags]
        if request.wants_spans:
            found["spans"] = [entry_spans(tagger.labels, source, entry, own) for own in tags]
        yield {**found, "probabilities": np.exp(logs).tolist()}


def _joined(
    decoded: Decoded, first: int, last: int, count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the best combinations of the sequences of some sentences, which are independent of each other.

    Returns the number of the sequence of each sentence, (sequences, sentences), and logarithms of probabilities.
    """
    steps: list[
        tuple[NDArray[np.int64], NDArray[np.int64]]
    ] = []  # of each sentence: combination before, sequence
    logs = np.zeros(1)
    for chain in range(first, last):
        own = decoded.path_probabilities[chain, : max(int(decoded.path_counts[chain]), 1)]
        with np.errstate(divide="ignore"):
            totals = logs[:, None] + np.log(own)[None, :]
        best = np.argsort(-totals, axis=None, kind="stable")[:count]
        steps.append(np.divmod(best, own.size))
        logs = totals.reshape(-1)[best]
    choices, row = np.empty((logs.size, len(steps)), np.int64), np.arange(logs.size)
    for i, (before, here) in reversed(list(enumerate(steps))):
        choices[:, i], row = here[row], before[row]
    return choices, logs
