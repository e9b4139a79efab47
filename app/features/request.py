"""The request to preview features. It contains a feature spec, which only the server parses."""

from typing import Annotated, Any

from pydantic import Field, TypeAdapter, WithJsonSchema, field_validator

from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.base.spec import Spec, validated
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.store.ids import CorpusReference

#: A preview is read by people. Longer input belongs in a corpus.
MAX_TOKENS = 500
#: Longer than any real word. The limit bounds the length of a feature name, which can join 64 values.
MAX_VALUE = 1000
MAX_COLUMNS = 256

_TOKENS = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_TOKENS}
_ROWS = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_COLUMNS},
    "minItems": 1,
    "maxItems": MAX_TOKENS,
}


class PreviewRequest(Spec):
    """A sentence whose features are shown and, optionally, a corpus in which features are counted."""

    features: FeatureSpec = FeatureSpec()
    sentence: Annotated[
        list[Any],
        WithJsonSchema({"anyOf": [_TOKENS, _ROWS]}),
        Field(description="Tokens, or rows of columns when the features use several."),
    ]
    corpus: CorpusReference | None = Field(None, description="Also count what this corpus would produce.")

    @field_validator("sentence")
    @classmethod
    def _tokens(cls, sentence: list[Any]) -> list[Any]:
        faults = _faults_of(sentence)
        if faults:
            raise Invalid("The sentence cannot be read.", faults[:100], code="invalid_request")
        return sentence

    @property
    def rows(self) -> list[list[str]]:
        """The sentence as rows of columns."""
        return [[token] if isinstance(token, str) else token for token in self.sentence]


def _faults_of(sentence: list[Any]) -> list[Fault]:
    """Return the faults of a sentence."""
    if not 1 <= len(sentence) <= MAX_TOKENS:
        reason = f"A sentence must have 1 to {MAX_TOKENS} tokens. This one has {len(sentence)}."
        return [_fault("", reason, _length(sentence))]
    rows = isinstance(sentence[0], list)
    if rows and not 1 <= len(sentence[0]) <= MAX_COLUMNS:
        row = sentence[0]
        reason = f"A row must have 1 to {MAX_COLUMNS} columns. This one has {len(row)}."
        return [_fault("/0", reason, _length(row))]
    faults: list[Fault] = []
    for i, token in enumerate(sentence):
        if isinstance(token, list) != rows:
            reason = "All tokens must be strings, or all must be rows of columns."
            faults.append(_fault(f"/{i}", reason, FaultType.MIXED_TYPES))
        elif rows and len(token) != len(sentence[0]):
            reason = f"The row has {len(token)} columns, and the first one has {len(sentence[0])}."
            faults.append(_fault(f"/{i}", reason, FaultType.INCONSISTENT))
        else:
            for j, value in enumerate(token if rows else [token]):
                if not isinstance(value, str) or len(value) > MAX_VALUE:
                    kind = "string_too_long" if isinstance(value, str) else "string_type"
                    reason = f"A value must be a string of at most {MAX_VALUE} characters."
                    faults.append(_fault(f"/{i}/{j}" if rows else f"/{i}", reason, kind))
    return faults


def _fault(place: str, reason: str, kind: str) -> Fault:
    return Fault(reason, pointer=f"/sentence{place}", type=kind)


def _length(values: list[Any]) -> str:
    """Return pydantic's name for a list of a wrong length."""
    return "too_long" if values else "too_short"


_REQUEST: TypeAdapter[PreviewRequest] = TypeAdapter(PreviewRequest)


def parse(body: Any) -> PreviewRequest:
    """Parse a request. Raise Invalid with a pointer to each fault."""
    return validated(_REQUEST, body, "The preview")
