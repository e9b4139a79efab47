"""Shapes of tagging on the wire."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from app.body import Body
from app.tagging.texts import Tokenizer
from core.corpus.labels import LabelCoding
from core.model.constraints import Constraints
from core.model.explanation import Explanation
from core.specs import REFERENCE_PATTERN

_TOKENS = {"type": "array", "items": {"type": "string"}}
_OBJECTS = {"type": "array", "items": {"type": "object"}}
_ROWS = {"type": "array", "items": {"type": "array", "items": {"type": "string"}, "minItems": 1}}

#: Characters of a model reference; the longest that can be is 129.
MAX_REFERENCE = 200

#: The tokens are checked by hand, all at once: a million of them must not become a million validations.
Sentences = Annotated[
    list[list[Any]],
    WithJsonSchema({"anyOf": [{"type": "array", "items": kind} for kind in (_TOKENS, _ROWS, _OBJECTS)]}),
]


class TagConstraints(Body):
    """What sequences of tags must keep to. Probabilities are then those given that."""

    tags: list[list[str | None] | None] | None = Field(
        None,
        description="For each sentence, and each token of it, the tag it must have, or null.",
        examples=[[[None, "B-NP", None]]],
    )
    forbid: list[tuple[str, str]] = Field(
        default_factory=list,
        description="Pairs of tags of which the second may not follow the first.",
        examples=[[["O", "I-NP"]]],
    )
    valid: LabelCoding | None = Field(
        None, description="A coding of chunks that must not be broken.", examples=["iob2"]
    )

    @property
    def stated(self) -> Constraints:
        """The constraints as the inside takes them."""
        return Constraints(self.tags, self.forbid, self.valid)


class TagOptions(Body):
    """By which model to tag, and what to tell."""

    model: str = Field(
        max_length=MAX_REFERENCE,
        description="`name` (its alias `champion`, else the newest version), `name@alias` or `name:3`.",
        examples=["chunker", "chunker@champion", "chunker:3"],
        json_schema_extra={"pattern": REFERENCE_PATTERN},
    )
    tokenizer: Tokenizer | None = Field(
        None,
        description="What the tokens of a text are: `words` (runs of letters and digits, or any other character by "
        "itself), `blanks` (what stands between blanks) or `characters`. By default `characters` for models that cut "
        "text into words, `words` for others.",
    )
    output: Literal["tags", "spans", "conll"] = "tags"
    decode: Literal["viterbi", "posterior"] = Field(
        "viterbi",
        description="The most probable sequence of tags, or that with the fewest wrong tags by expectation.",
    )
    marginals: bool = Field(
        False, description="Give the probability of each tag, and of each sequence (`probabilities`)."
    )
    distributions: bool = Field(False, description="Give the probability of every label at every token.")
    nbest: int = Field(
        1, ge=1, le=100, description="Give so many most probable sequences, with their probabilities."
    )
    constraints: TagConstraints | None = None


#: Either is given, and not both; a text that is null is none.
_TEXT = {"required": ["text"], "properties": {"text": {"anyOf": [{"type": "string"}, _TOKENS]}}}
_SENTENCES_OR_TEXT: dict[str, Any] = {
    "anyOf": [{"required": ["sentences"], "not": _TEXT}, {**_TEXT, "not": {"required": ["sentences"]}}]
}


class TagRequest(TagOptions):
    """Sentences to tag, or text."""

    model_config = ConfigDict(json_schema_extra=_SENTENCES_OR_TEXT)

    sentences: Sentences = Field(
        default_factory=list,
        description="Each a list of tokens, of rows of columns when the model uses several, or of objects of named "
        "attributes when it was trained on such.",
        examples=[
            [["Rockwell", "said", "so"]],
            [[["Rockwell", "NNP"], ["said", "VBD"]]],
            [[{"word": "Rockwell", "capital": True}, {"word": "said", "length": 4}]],
        ],
    )
    text: str | list[str] | None = Field(
        None,
        description="Instead of sentences, raw text for a model that needs no other column. A line is a sentence.",
        examples=["共同创造美好的新世纪", ["共同创造", "美好的新世纪"]],
    )
    explain: bool | Annotated[list[tuple[int, int]], Field(max_length=1000)] = Field(
        False,
        description="Say what decided: for all tokens, or for those given as [sentence, token], from 0.",
        examples=[True, [[0, 3]]],
    )

    @property
    def plain(self) -> bool:
        """Whether nothing but the best tags of sentences is asked for."""
        return self.text is None and self.tokenizer is None and not self.beyond

    @property
    def beyond(self) -> bool:
        """Whether more is asked of a model than its best tags."""
        return (
            self.marginals
            or self.distributions
            or self.nbest > 1
            or self.constraints is not None
            or self.explain is not False
            or self.decode != "viterbi"
        )

    @property
    def texts(self) -> list[str]:
        """The texts to cut into words."""
        return [self.text] if isinstance(self.text, str) else self.text or []


class LineOptions(TagOptions):
    """The first line of a stream: what is asked for of every line. `constraints.tags` has no meaning there."""

    explain: bool = False


class TagLine(Body):
    """Every further line of a stream: a sentence or a text, and an id that its answer repeats."""

    id: str | int | None = None
    tokens: list[Any] | None = Field(None, description="A sentence, as in `sentences` of a plain request.")
    text: str | None = None


class Span(BaseModel):
    """A labelled stretch of a sentence or text."""

    type: str
    start: int = Field(description="First token.")
    stop: int = Field(description="First token after it.")
    begin: int | None = Field(None, description="Of a text: its first character.")
    end: int | None = Field(None, description="Of a text: the first character after it.")


class Sequences(BaseModel):
    """The most probable sequences of tags of one sentence, best first."""

    tags: list[list[str]] | None = None
    spans: list[list[Span]] | None = Field(None, description="Instead of tags, when `output` is spans.")
    probabilities: list[float]


class TagResponse(BaseModel):
    """The answer: which version gave it, and what was asked for. Of a text, a sentence is the whole text."""

    model: str
    version: int
    tags: list[list[str]] | None = Field(None, description="For each sentence, a tag a token.")
    spans: list[list[Span]] | None = None
    conll: str | None = Field(None, description="The columns as given and the tag, a token a line.")
    words: list[list[str]] | None = Field(None, description="For each text of characters, its words.")
    tokens: list[list[str]] | None = Field(None, description="For each other text, its tokens.")
    offsets: list[list[tuple[int, int]]] | None = Field(
        None, description="For each word or token, the characters of the text where it starts and stops."
    )
    probabilities: list[float] | None = Field(None, description="For each sentence, that of its tags.")
    marginals: list[list[float]] | None = Field(
        None, description="For each sentence, a token's probability of the tag it got."
    )
    labels: list[str] | None = Field(None, description="What `distributions` are over.")
    distributions: list[list[list[float]]] | None = Field(
        None, description="For each sentence, and each token, the probability of every label."
    )
    nbest: list[Sequences] | None = None
    explain: list[Explanation] | None = None
