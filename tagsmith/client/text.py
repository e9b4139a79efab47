"""Tagged text: spans by character, with probabilities."""

from dataclasses import dataclass

from tagsmith.wire import TagResponse


@dataclass(frozen=True, slots=True)
class Span:
    """A labelled part of a text: characters `start` to `end`, the latter excluded.

    `probability` is the smallest probability that the model gives to the tag of one of its tokens. That is an upper
    bound of the probability of the whole span. Models of margin trainers have no true probabilities.
    """

    text: str
    label: str
    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text, its tokens and spans, and the version that tagged it."""

    text: str
    model: str
    version: int
    #: The tokens; the words for models that segment text into words.
    tokens: list[str]
    spans: list[Span]

    @classmethod
    def of(cls, text: str, response: TagResponse) -> "TaggedText":
        """Combine the spans of a response, which must be of this one text, with their probabilities."""
        (found,), (marginals,) = response.spans, response.marginals
        spans = []
        for span in found:
            assert span.begin is not None, "spans of text have characters"
            assert span.end is not None, "spans of text have characters"
            probability = min(marginals[span.start : span.stop])
            spans.append(Span(text[span.begin : span.end], span.type, span.begin, span.end, probability))
        (tokens,) = response.tokens or response.words
        return cls(text, response.model, response.version, tokens, spans)
