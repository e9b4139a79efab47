"""Shapes of tagging on the wire."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, WithJsonSchema

from app.body import Body

_TOKENS = {"type": "array", "items": {"type": "string"}}
_OBJECTS = {"type": "array", "items": {"type": "object"}}
_ROWS = {"type": "array", "items": {"type": "array", "items": {"type": "string"}, "minItems": 1}}

#: The tokens are checked by hand, all at once: a million of them must not become a million validations.
Sentences = Annotated[
    list[list[Any]],
    WithJsonSchema({"type": "array", "items": {"anyOf": [_TOKENS, _ROWS, _OBJECTS]}}),
]


class TagRequest(Body):
    """Sentences to tag, or text."""

    model: str = Field(
        max_length=200,
        description="`name` (its alias `champion`, else the newest version), `name@alias` or `name:3`.",
        examples=["chunker", "chunker@champion", "chunker:3"],
    )
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
        description="Instead of sentences, raw text for a model that cuts it into words.",
        examples=["共同创造美好的新世纪", ["共同创造", "美好的新世纪"]],
    )
    output: Literal["tags", "spans", "conll"] = "tags"
    marginals: bool = False
    nbest: int = 1
    constraints: Any = None
    explain: bool = False

    @property
    def texts(self) -> list[str]:
        """The texts to cut into words."""
        return [self.text] if isinstance(self.text, str) else self.text or []


class Span(BaseModel):
    """A labelled stretch of a sentence."""

    type: str
    start: int = Field(description="First token.")
    stop: int = Field(description="First token after it.")


class TagResponse(BaseModel):
    """The answer: which version gave it, and the one part that `output` asked for."""

    model: str
    version: int
    tags: list[list[str]] | None = Field(None, description="For each sentence, a tag a token.")
    spans: list[list[Span]] | None = None
    words: list[list[str]] | None = Field(None, description="For each text, its words.")
    offsets: list[list[tuple[int, int]]] | None = Field(
        None, description="For each word, the characters of the text where it starts and stops."
    )
    conll: str | None = Field(None, description="The columns as given and the tag, a token a line.")
