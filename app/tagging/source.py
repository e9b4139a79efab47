"""The input to tag: the sentences of a request, or those of its texts.

A chain is what is decoded at once: a sentence. A response has one entry per sentence of the request or per text. An
entry of a text covers the chains of all its sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np

from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.model.use.text import TextSentence, sentences_of, tokenizer_of
from tagsmith.core.model.use.words import joins_words
from tagsmith.wire import TagRequest, TokenizerSpec


@dataclass(frozen=True, slots=True)
class Source:
    """The input to tag."""

    chains: Sequence[Sequence[Any]]
    #: Index of the first chain of each entry, then the end of the last entry.
    entries: list[int]
    #: The sentences of texts; empty if the request has sentences.
    sentences: list[TextSentence]
    texts: list[str]
    #: Whether tokens are characters that the tags join into words.
    words: bool

    @classmethod
    def of(cls, tagger: Tagger, request: TagRequest) -> "Source":
        """Return the sentences of a request, or those of its texts."""
        if request.text is None:
            if request.tokenizer is not None:
                raise refused("Only text is split by a tokenizer. Send text, or leave it out.", "/tokenizer")
            return cls(request.sentences, list(range(len(request.sentences) + 1)), [], [], words=False)
        tokenizer = tokenizer_of(tagger, _tokenizer(request.tokenizer))
        sentences = sentences_of(request.texts, tokenizer)
        counts = np.bincount([sentence.text for sentence in sentences], minlength=len(request.texts))
        return cls(
            [sentence.tokens for sentence in sentences],
            [0, *np.cumsum(counts).tolist()],
            sentences,
            request.texts,
            words=joins_words(tokenizer, tagger.labels),
        )

    @property
    def name(self) -> str:
        """The field of the request that has the input."""
        return "text" if self.sentences else "sentences"

    def tokens(self, bounds: Sequence[int]) -> list[list[Any]]:
        """Return the tokens of each entry, given the bounds of the entries in tokens."""
        tokens = list(chain.from_iterable(self.chains))
        return [tokens[begin:end] for begin, end in pairwise(bounds)]

    def sentence_ranges(self) -> list[list[tuple[int, int]]]:
        """Return, for each text, the first token of each sentence and the first token after it."""
        made = []
        for first, last in pairwise(self.entries):
            ends = np.cumsum([0, *(len(each) for each in self.chains[first:last])]).tolist()
            made.append([(a, b) for a, b in pairwise(ends) if b > a])
        return made


def _tokenizer(given: str | TokenizerSpec | None) -> Tokenizer | None:
    if given is None:
        return None
    record = given if isinstance(given, str) else given.model_dump(exclude_none=True)
    try:
        return Tokenizer.of(record)
    except ValueError as error:
        raise refused(str(error), "/tokenizer") from None


def refused(reason: str, pointer: str, kind: FaultType = FaultType.INCONSISTENT) -> Invalid:
    """Make the error for a request that cannot be tagged."""
    fault = Fault(reason, pointer=pointer, type=kind)
    return Invalid("The request cannot be tagged.", [fault], code="invalid_request")
