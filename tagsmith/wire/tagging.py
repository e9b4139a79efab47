"""Requests to tag, their responses, and explanations of tags."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from tagsmith.wire.base import WireRequest
from tagsmith.wire.names import MAX_REFERENCE, REFERENCE_PATTERN, ChunkCoding, TokenizerName
from tagsmith.wire.problems import ErrorLocation

_TOKENS = {"type": "array", "items": {"type": "string"}}
_OBJECTS = {"type": "array", "items": {"type": "object"}}
_ROWS = {"type": "array", "items": {"type": "array", "items": {"type": "string"}, "minItems": 1}}

#: The server checks the tokens itself, all at once: validating a million of them one by one would be slow.
Sentences = Annotated[
    list[list[Any]],
    WithJsonSchema({"anyOf": [{"type": "array", "items": kind} for kind in (_TOKENS, _ROWS, _OBJECTS)]}),
]


class TokenizerSpec(WireRequest):
    """A tokenizer: a kind with its version, or a pattern whose matches are the tokens."""

    kind: TokenizerName | Literal["pattern"] | None = None
    version: int | None = Field(
        None, description="By default the newest. Models keep the version of their training."
    )
    pattern: str | None = Field(
        None,
        max_length=500,
        description="A regular expression without anchors, lookaround and back references.",
    )
    clitics: list[str] | None = Field(
        None,
        description="Parts that `words` splits from words, as the training corpus does.",
        examples=[["'s"]],
    )
    sentences: Literal["rules", "lines"] | None = Field(
        None,
        description="What ends a sentence: rules for stops, and line breaks; or line breaks only, for models whose "
        "training sequences have stops inside, such as references.",
    )


class TagConstraints(WireRequest):
    """What the tags must satisfy. Probabilities are conditional on the constraints."""

    tags: list[list[str | None] | None] | None = Field(
        None,
        description="For each token of each sentence, the tag that it must have, or null.",
        examples=[[[None, "B-NP", None]]],
    )
    forbid: list[tuple[str, str]] = Field(
        default_factory=list,
        description="Pairs of tags of which the second may not follow the first.",
        examples=[[["O", "I-NP"]]],
    )
    valid: ChunkCoding | None = Field(
        None, description="A chunk coding that the tags must follow.", examples=["iob2"]
    )


class TagOptions(WireRequest):
    """Which model to use, and what to return."""

    model: str = Field(
        max_length=MAX_REFERENCE,
        description="`name` (its alias `champion`, else the newest version), `name@alias` or `name:3`.",
        examples=["chunker", "chunker@champion", "chunker:3"],
        json_schema_extra={"pattern": REFERENCE_PATTERN},
    )
    tokenizer: TokenizerName | TokenizerSpec | None = Field(
        None,
        description="How to split text into tokens: `words`, `blanks` (at white space), `characters`, or an object "
        "with a `pattern`. The default is the tokenizer of the model, which its signature shows.",
        examples=["blanks", {"pattern": "[A-Za-z]+|[0-9]+"}],
    )
    output: Literal["tags", "spans", "both", "conll", "conllu"] = Field(
        "tags",
        description="One tag per token, labelled spans, both, or column text with tags. For a parser: `tags` gives "
        "heads and relations, `conll` column text with both, and `conllu` CoNLL-U.",
    )
    decode: Literal["viterbi", "posterior"] = Field(
        "viterbi",
        description="The most probable sequence of tags, or the one with the fewest expected wrong tags.",
    )
    marginals: bool = Field(
        False,
        description="Return the probability of each tag or head, and of each sequence or tree (`probabilities`).",
    )
    distributions: bool = Field(False, description="Return the probability of every label at every token.")
    nbest: int = Field(
        1, ge=1, le=100, description="Return this many most probable sequences, with their probabilities."
    )
    constraints: TagConstraints | None = None

    @property
    def wants_tags(self) -> bool:
        """Whether the response has tags."""
        return self.output in ("tags", "both")

    @property
    def wants_spans(self) -> bool:
        """Whether the response has spans."""
        return self.output in ("spans", "both")


#: One of the two is required, and not both; a text of null counts as absent.
_TEXT = {"required": ["text"], "properties": {"text": {"anyOf": [{"type": "string"}, _TOKENS]}}}
_SENTENCES_OR_TEXT: dict[str, Any] = {
    "anyOf": [{"required": ["sentences"], "not": _TEXT}, {**_TEXT, "not": {"required": ["sentences"]}}]
}


class TagRequest(TagOptions):
    """Sentences or text to tag."""

    model_config = ConfigDict(json_schema_extra=_SENTENCES_OR_TEXT)

    sentences: Sentences = Field(
        default_factory=list,
        description="Each sentence is a list of tokens, of rows of columns if the model uses several, or of objects of "
        "named attributes if the model was trained on such.",
        examples=[
            [["Rockwell", "said", "so"]],
            [[["Rockwell", "NNP"], ["said", "VBD"]]],
            [[{"word": "Rockwell", "capital": True}, {"word": "said", "length": 4}]],
        ],
    )
    text: str | list[str] | None = Field(
        None,
        description="Raw text instead of sentences, for a model that needs no other column. It is split into "
        "sentences, also at line breaks.",
        examples=["共同创造美好的新世纪", ["共同创造", "美好的新世纪"]],
    )
    explain: bool | Annotated[list[tuple[int, int]], Field(max_length=1000)] = Field(
        False,
        description="Explain the tags or heads of all tokens, or of those given as [sentence, token], from 0.",
        examples=[True, [[0, 3]]],
    )

    @property
    def plain(self) -> bool:
        """Whether the request is for the best tags of sentences and nothing else."""
        return self.text is None and self.tokenizer is None and not self.beyond

    @property
    def beyond(self) -> bool:
        """Whether the request is for more than the best tags."""
        return (
            self.marginals
            or self.distributions
            or self.nbest > 1
            or self.constraints is not None
            or self.explain is not False
            or self.decode != "viterbi"
        )

    @property
    def probable(self) -> bool:
        """Whether the response has probabilities."""
        return self.marginals or self.distributions or self.nbest > 1 or self.explain is not False

    @property
    def texts(self) -> list[str]:
        """The texts to tokenize."""
        return [self.text] if isinstance(self.text, str) else self.text or []


class LineOptions(TagOptions):
    """The first line of a stream: the options of all lines. `constraints.tags` cannot be used."""

    explain: bool = False


class TagLine(WireRequest):
    """Every further line of a stream: a sentence or a text, and an id that the response repeats."""

    id: str | int | None = None
    tokens: list[Any] | None = Field(None, description="A sentence, as in `sentences` of a plain request.")
    text: str | None = None


class TagSpan(BaseModel):
    """A labelled span of a sentence or text. The fields about characters are those of a text."""

    type: str
    start: int = Field(description="First token.")
    stop: int = Field(description="First token after the span.")
    begin: int | None = Field(None, description="In a text: its first character.")
    end: int | None = Field(None, description="In a text: the first character after it.")
    text: str | None = Field(
        None, description="In a text: its characters. In a sentence: its tokens with spaces between them."
    )
    probability: float | None = Field(
        None,
        description="With `marginals`: the probability that exactly this span with this type is there, summed over all "
        "tag sequences.",
    )


class TagSequences(BaseModel):
    """The most probable tag sequences of one sentence, best first."""

    tags: list[list[str]] = []
    spans: list[list[TagSpan]] = Field(
        [], description="Instead of tags if `output` is spans, beside them if it is both."
    )
    probabilities: list[float]


class CandidateTransitions(BaseModel):
    """Weights of label pairs, as parallel lists."""

    before: list[str]
    after: list[str]
    features: list[str | None] = Field(description="The feature that the pair is joined with, if any.")
    weights: list[float]


class LabelCandidate(BaseModel):
    """A label that a token could have, and every weight that adds to its score."""

    tag: str
    probability: float
    score: float = Field(description="The sum of all weights below.")
    features: list[str]
    weights: list[float] = Field(description="Of each feature, times its value.")
    transitions: CandidateTransitions


class TokenExplanation(BaseModel):
    """The label chosen for a token, and the most probable other one."""

    sentence: int
    token: int
    chosen: LabelCandidate
    runner_up: LabelCandidate | None = Field(description="Null if there is no other label.")


class HeadChoice(BaseModel):
    """A word that could be the head of a word, and every weight that adds to the score of the arc."""

    head: int = Field(description="Number of the word, from 1; 0 for the root.")
    probability: float
    score: float = Field(description="The sum of all weights below.")
    features: list[str]
    weights: list[float]


class RelationChoice(BaseModel):
    """A relation that a word could have to its head, and every weight that adds to its score."""

    relation: str
    probability: float = Field(description="Given the head.")
    score: float = Field(description="The sum of all weights below.")
    features: list[str]
    weights: list[float]


class ExplainedArc(BaseModel):
    """The head chosen for a word, its relation to it, and the most probable other ones."""

    sentence: int
    token: int
    head: HeadChoice
    runner_up: HeadChoice | None = Field(None, description="Null if no other word can be the head.")
    relation: RelationChoice | None = Field(None, description="Null if the parser has no relations.")
    other_relation: RelationChoice | None = None


class TagResponse(BaseModel):
    """The version that tagged, and what was requested; other fields are absent. A text counts as one sentence."""

    model: str
    version: int
    tags: list[list[str]] = Field([], description="For each sentence, one tag per token.")
    spans: list[list[TagSpan]] = []
    heads: list[list[int]] = Field(
        [],
        description="Of a parser. For each token of each sentence, the number of its head among them, from 1; 0 for a "
        "root.",
    )
    relations: list[list[str]] = Field(
        [],
        description="Of a parser that has them. For each token of each sentence, its relation to its head.",
    )
    conll: str = Field(
        "", description="One token per line: its columns and its tag, or its head and its relation."
    )
    conllu: str = Field(
        "", description="CoNLL-U: the columns of the model that have names of fields, heads and relations."
    )
    words: list[list[str]] = Field([], description="For each text of characters, its words.")
    tokens: list[list[str]] = Field(
        [], description="For each text, its tokens; for a text of characters only if the response has tags."
    )
    offsets: list[list[tuple[int, int]]] = Field(
        [], description="For each word or token, its first character in the text and the first after it."
    )
    probabilities: list[float] = Field(
        [], description="For each sentence, the probability of its tags, or of its tree without relations."
    )
    marginals: list[list[float]] = Field(
        [], description="For each token of each sentence, the probability of its tag or of its head."
    )
    relation_marginals: list[list[float]] = Field(
        [],
        description="Of a parser. For each token of each sentence, the probability of its head with its relation.",
    )
    labels: list[str] = Field([], description="The labels of `distributions`, in order.")
    distributions: list[list[list[float]]] = Field(
        [], description="For each token of each sentence, the probability of every label."
    )
    nbest: list[TagSequences] = []
    explain: list[TokenExplanation] = []
    arcs: list[ExplainedArc] = Field([], description="Of a parser, in place of `explain`.")
    sentences: list[list[tuple[int, int]]] = Field(
        [], description="For each text, the first token of each of its sentences and the first after it."
    )
    calibrated: bool = Field(
        True,
        description="False with probabilities of a model whose trainer does not fit them: they only rank. Else absent.",
    )


class LineError(BaseModel):
    """Why one line of a stream was not tagged."""

    code: str
    detail: str
    errors: list[ErrorLocation] = []


class TaggedLine(BaseModel):
    """The response to one line of a stream: its own part of what a plain response has, or an error."""

    line: int
    id: str | int | None = None
    error: LineError | None = None
    tags: list[str] = []
    spans: list[TagSpan] = []
    heads: list[int] = []
    relations: list[str] = []
    conll: str = ""
    conllu: str = ""
    words: list[str] = []
    tokens: list[str] = []
    offsets: list[tuple[int, int]] = []
    probability: float | None = None
    marginals: list[float] = []
    relation_marginals: list[float] = []
    distributions: list[list[float]] = []
    nbest: TagSequences | None = None
    explain: list[dict[str, Any]] = []
    arcs: list[dict[str, Any]] = []
    sentences: list[tuple[int, int]] = []
