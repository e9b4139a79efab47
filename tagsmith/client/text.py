"""Tagged text: spans by character, with probabilities."""

from dataclasses import dataclass

from tagsmith.wire import TagResponse


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


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text, its tokens and spans, and the version that tagged it."""

    text: str
    model: str
    version: int
    #: The tokens; the words for models that segment text into words.
    tokens: list[str]
    spans: list[Span]
    #: First token of each sentence and the first after it.
    sentences: list[tuple[int, int]]
    #: False if the trainer of the model does not fit probabilities: they only rank.
    calibrated: bool = True

    @classmethod
    def of(cls, text: str, response: TagResponse) -> "TaggedText":
        """Return the tokens and spans of a response, which must be of this one text."""
        (found,), (sentences,) = response.spans, response.sentences
        spans = []
        for span in found:
            assert span.begin is not None, "spans of text have characters"
            assert span.end is not None, "spans of text have characters"
            assert span.probability is not None, "the request asks for probabilities"
            where = text[span.begin : span.end]
            spans.append(Span(span.text or where, span.type, span.begin, span.end, span.probability))
        (tokens,) = response.tokens or response.words
        return cls(text, response.model, response.version, tokens, spans, sentences, response.calibrated)
