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
    Field(
        description="Each a list of tokens, of rows of columns when the model uses several, or of objects of named "
        "attributes when it was trained on such.",
        examples=[
            [["Rockwell", "said", "so"]],
            [[["Rockwell", "NNP"], ["said", "VBD"]]],
            [[{"word": "Rockwell", "capital": True}, {"word": "said", "length": 4}]],
        ],
    ),
]


class TagRequest(Body):
    """Sentences to tag."""

    model: str = Field(
        max_length=200,
        description="`name` (its alias `champion`, else the newest version), `name@alias` or `name:3`.",
        examples=["chunker", "chunker@champion", "chunker:3"],
    )
    sentences: Sentences
    output: Literal["tags", "spans", "conll"] = "tags"
    marginals: bool = False
    nbest: int = 1
    constraints: Any = None
    explain: bool = False


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
    conll: str | None = Field(None, description="The columns as given and the tag, a token a line.")
