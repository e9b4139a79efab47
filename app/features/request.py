"""The request to preview features. It contains a feature spec, which only the server parses."""

from typing import Annotated, Any

from pydantic import Field, TypeAdapter, WithJsonSchema, field_validator

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.spec import Spec, validated
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.store.ids import CorpusId

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
    corpus: CorpusId | None = Field(None, description="Also count what this corpus would produce.")

    @field_validator("sentence")
    @classmethod
    def _tokens(cls, sentence: list[Any]) -> list[Any]:
        faults = [Fault(reason, pointer=f"/sentence{pointer}") for pointer, reason in _faults_of(sentence)]
        if faults:
            raise Invalid("The sentence cannot be read.", faults[:100], code="invalid_request")
        return sentence

    @property
    def rows(self) -> list[list[str]]:
        """The sentence as rows of columns."""
        return [[token] if isinstance(token, str) else token for token in self.sentence]


def _faults_of(sentence: list[Any]) -> list[tuple[str, str]]:
    """Return the faults of a sentence as (pointer, reason)."""
    if not 1 <= len(sentence) <= MAX_TOKENS:
        return [("", f"A sentence must have 1 to {MAX_TOKENS} tokens. This one has {len(sentence)}.")]
    rows = isinstance(sentence[0], list)
    if rows and not 1 <= len(sentence[0]) <= MAX_COLUMNS:
        return [("/0", f"A row must have 1 to {MAX_COLUMNS} columns. This one has {len(sentence[0])}.")]
    faults: list[tuple[str, str]] = []
    for i, token in enumerate(sentence):
        if isinstance(token, list) != rows:
            faults.append((f"/{i}", "All tokens must be strings, or all must be rows of columns."))
        elif rows and len(token) != len(sentence[0]):
            faults.append(
                (f"/{i}", f"The row has {len(token)} columns, and the first one has {len(sentence[0])}.")
            )
        else:
            for j, value in enumerate(token if rows else [token]):
                if not isinstance(value, str) or len(value) > MAX_VALUE:
                    faults.append(
                        (
                            f"/{i}/{j}" if rows else f"/{i}",
                            f"A value must be a string of at most {MAX_VALUE} characters.",
                        )
                    )
    return faults


_REQUEST: TypeAdapter[PreviewRequest] = TypeAdapter(PreviewRequest)


def parse(body: Any) -> PreviewRequest:
    """Parse a request. Raise Invalid with a pointer to each fault."""
    return validated(_REQUEST, body, "The preview")
