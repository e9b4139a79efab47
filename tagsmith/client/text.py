"""Tagged text: spans by character, with probabilities."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tagsmith.wire import TagResponse, TagSpan


@dataclass(frozen=True, slots=True)
class Span:
    """A labelled part of a text: characters `start` to `end`, the latter excluded.

    `probability` is the probability that exactly this span with this label is there. A server that does not compute it
    has the client use an upper bound: the smallest probability of the tag of one of its tokens. Models of margin
    trainers have no true probabilities.
    """

    text: str
    label: str
    start: int
    end: int
    probability: float

    @classmethod
    def of(cls, span: TagSpan, text: str, marginals: Sequence[float]) -> "Span":
        """Make a span of what a response has: the span, its text, and the probabilities of the tags of the tokens."""
        assert span.begin is not None, "spans of text have characters"
        assert span.end is not None, "spans of text have characters"
        part = text[span.begin : span.end] if span.text is None else span.text
        bound = min(marginals[span.start : span.stop])
        probability = bound if span.probability is None else span.probability
        return cls(part, span.type, span.begin, span.end, probability)


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text, its tokens and spans, and the version that tagged it. Iterating over it yields the spans."""

    text: str
    model: str
    version: int
    #: The tokens; the words for models that segment text into words.
    tokens: list[str]
    spans: list[Span]

    @classmethod
    def of(cls, text: str, response: TagResponse) -> "TaggedText":
        """Read a response to this one text."""
        (found,), (marginals,) = response.spans, response.marginals
        (tokens,) = response.tokens or response.words
        spans = [Span.of(span, text, marginals) for span in found]
        return cls(text, response.model, response.version, tokens, spans)

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

    def __len__(self) -> int:
        return len(self.spans)
