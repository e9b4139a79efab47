"""Tagging text: sentences and tokens with their places in the text, and spans with their probability."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tagsmith.core.evaluate.spans import spans_of
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.model.use.usage import takes


@dataclass(frozen=True, slots=True)
class TextSentence:
    """The tokens of a sentence, with the start and stop offset of each in its text."""

    text: int
    tokens: list[str]
    starts: list[int]
    stops: list[int]


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A labelled part of a text: tokens `start` to `stop` - 1, characters `begin` to `end` - 1."""

    type: str
    start: int
    stop: int
    begin: int
    end: int
    text: str
    #: That exactly this span with this type is there.
    probability: float


@dataclass(frozen=True, slots=True)
class TextTagging:
    """A text with its tokens, tags and spans. Offsets are in characters, sentences in tokens."""

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    sentences: list[tuple[int, int]]
    tags: list[str]
    spans: list[TextSpan]
    #: Whether the model was trained to give probabilities; None if unknown.
    calibrated: bool | None


def tokenizer_of(tagger: Tagger, given: Tokenizer | None = None) -> Tokenizer:
    """Return the tokenizer for texts: the given one, else that of the model. Raise Invalid if it does not take text."""
    if tagger.columns != 1:
        message = takes(tagger.columns, tagger.model.usage)
        fault = Fault("this model does not tag text; give sentences", pointer="/text")
        raise Invalid(message, [fault], code="text_not_supported")
    return tagger.model.usage.tokenizer_for(given, tagger.model.labels)


def sentences_of(texts: Sequence[str], tokenizer: Tokenizer) -> list[TextSentence]:
    """Split texts into sentences. Every text has at least one, if an empty one."""
    sentences: list[TextSentence] = []
    for number, text in enumerate(texts):
        found = tokenizer.split(text)
        starts, stops, tokens = found.starts.tolist(), found.stops.tolist(), found.strings(text)
        for first, last in pairwise([0, *(found.ends.tolist() or [0])]):
            sentences.append(TextSentence(number, tokens[first:last], starts[first:last], stops[first:last]))
    return sentences


def spans_in(
    text: str,
    sentence: TextSentence,
    tags: Sequence[str],
    labels: Sequence[str],
    before: int,
    probabilities: NDArray[np.float64],
) -> list[TextSpan]:
    """Return the spans of one sentence, which `before` tokens of the text precede.

    `probabilities` has that of each span at its first token.
    """
    made = []
    for span in spans_of(tags, labels):
        begin, end = sentence.starts[span.start], sentence.stops[span.stop - 1]
        probability = float(probabilities[span.start])
        made.append(
            TextSpan(
                span.type, before + span.start, before + span.stop, begin, end, text[begin:end], probability
            )
        )
    return made


def tag_text(tagger: Tagger, text: str, tokenizer: Tokenizer | None = None) -> TextTagging:
    """Split a text into sentences and tokens, tag it, and find its spans, each with its probability."""
    sentences = sentences_of([text], tokenizer_of(tagger, tokenizer))
    coded = tagger.code([sentence.tokens for sentence in sentences])
    decoded = decode(tagger, coded, DecodingOptions(spans=True))
    tags = tagger.named(decoded.labels)
    bounds = list(pairwise(coded.offsets.tolist()))
    spans = [
        span
        for sentence, (a, b) in zip(sentences, bounds, strict=True)
        for span in spans_in(text, sentence, tags[a:b], tagger.labels, a, decoded.span_probabilities[a:b])
    ]
    return TextTagging(
        text=text,
        tokens=[token for sentence in sentences for token in sentence.tokens],
        offsets=[place for each in sentences for place in zip(each.starts, each.stops, strict=True)],
        sentences=[bound for bound in bounds if bound[1] > bound[0]],
        tags=tags,
        spans=spans,
        calibrated=tagger.model.usage.calibrated,
    )
