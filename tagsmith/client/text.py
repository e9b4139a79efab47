"""Tagged text: spans by character, with probabilities. Parsed sentences: heads and relations of tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tagsmith.wire import TagResponse, TagSpan


@dataclass(frozen=True, slots=True)
class Span:
    """A labelled part of a text: characters `start` to `end`, the latter excluded.

    `probability` is that of exactly this span with this label, summed over all sequences of tags. Models of margin
    trainers have no true probabilities: see `TaggedText.calibrated`.
    """

    text: str
    label: str
    start: int
    end: int
    probability: float

    @classmethod
    def of(cls, span: TagSpan, text: str) -> "Span":
        """Read a span of a response to a text."""
        assert span.begin is not None, "spans of text have characters"
        assert span.end is not None, "spans of text have characters"
        assert span.probability is not None, "the request asks for probabilities"
        return cls(text[span.begin : span.end], span.type, span.begin, span.end, span.probability)


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text, its tokens and spans, and the version that tagged it. Iterating over it yields the spans."""

    text: str
    model: str
    version: int
    #: The tokens; the words for models that segment text into words.
    tokens: list[str]
    spans: list[Span]
    #: First token of each sentence and the first after it. For models that segment text, tokens are characters here.
    sentences: list[tuple[int, int]]
    #: False if the trainer of the model does not fit probabilities: they only rank.
    calibrated: bool = True

    @classmethod
    def of(cls, text: str, response: TagResponse) -> "TaggedText":
        """Read a response to this one text."""
        (found,), (sentences,) = response.spans, response.sentences
        (tokens,) = response.tokens or response.words
        spans = [Span.of(span, text) for span in found]
        return cls(text, response.model, response.version, tokens, spans, sentences, response.calibrated)

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

    def __len__(self) -> int:
        return len(self.spans)


@dataclass(frozen=True, slots=True)
class SentenceTree:
    """The dependency tree of one sentence, in parallel lists."""

    #: The tokens, as they were given; those of a text are strings.
    tokens: list[Any]
    #: The number of the head of each token within the sentence, from 1; 0 for a root.
    heads: list[int]
    #: The relation of each token to its head; None if the parser has no relations.
    relations: list[str] | None
    #: The probability of each head; None unless they were requested.
    marginals: list[float] | None = None


@dataclass(frozen=True, slots=True)
class ParsedSentences:
    """The trees of all sentences, and the version that found them. Iterating over it yields the sentences."""

    model: str
    version: int
    sentences: list[SentenceTree]
    #: False if the trainer of the model does not fit probabilities: they only rank.
    calibrated: bool = True

    @classmethod
    def of(cls, response: TagResponse, given: Sequence[Sequence[Any]] | None) -> "ParsedSentences":
        """Read a response to these sentences, or to texts. Raise ValueError if it has tags, not trees."""
        if response.tags:
            message = f"{response.model}:{response.version} gives tags, not trees. Call `tag`."
            raise ValueError(message)
        entries = response.tokens if given is None else given
        ranges = response.sentences if given is None else [[(0, len(tokens))] for tokens in entries]
        sentences = [
            _sentence(response, i, list(entries[i]), first, stop)
            for i, of_entry in enumerate(ranges)
            for first, stop in of_entry
        ]
        return cls(response.model, response.version, sentences, response.calibrated)

    def __iter__(self) -> Iterator[SentenceTree]:
        return iter(self.sentences)

    def __len__(self) -> int:
        return len(self.sentences)


def _sentence(response: TagResponse, i: int, tokens: list[Any], first: int, stop: int) -> SentenceTree:
    """Return the sentence that begins at token `first` of entry `i`, whose heads count the tokens of the entry."""
    return SentenceTree(
        tokens[first:stop],
        [head - first if head else 0 for head in response.heads[i][first:stop]],
        response.relations[i][first:stop] if response.relations else None,
        response.marginals[i][first:stop] if response.marginals else None,
    )
