"""Tagged text: spans by character, with probabilities."""

from collections.abc import Iterator
from dataclasses import dataclass

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
