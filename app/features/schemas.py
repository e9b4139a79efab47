"""Shapes of feature previews on the wire."""

from typing import Annotated, Any

from pydantic import Field, TypeAdapter, WithJsonSchema, field_validator

from app.params import Out
from core.errors import Fault, Invalid
from core.features.short import SCHEMA
from core.features.spec import FeatureSpec
from core.specs.parts import CorpusId
from core.specs_base import Spec, validated

#: A preview is for reading; a text is for training.
MAX_TOKENS = 500
#: Longer than any word, so that a name of 64 of them is still a line.
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
    """A sentence to see the features of, and a corpus to count them in."""

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
        faults = [Fault(reason, pointer=f"/sentence{place}") for place, reason in _wrong(sentence)]
        if faults:
            raise Invalid("The sentence cannot be read.", faults[:100], code="invalid_request")
        return sentence

    @property
    def rows(self) -> list[list[str]]:
        """The sentence as rows of columns."""
        return [[token] if isinstance(token, str) else token for token in self.sentence]


def _wrong(sentence: list[Any]) -> list[tuple[str, str]]:
    """What is wrong with a sentence: (place, reason)."""
    if not 1 <= len(sentence) <= MAX_TOKENS:
        return [("", f"a sentence has 1 to {MAX_TOKENS} tokens; this has {len(sentence)}")]
    rows = isinstance(sentence[0], list)
    if rows and not 1 <= len(sentence[0]) <= MAX_COLUMNS:
        return [("/0", f"a row has 1 to {MAX_COLUMNS} columns; this has {len(sentence[0])}")]
    found: list[tuple[str, str]] = []
    for i, token in enumerate(sentence):
        if isinstance(token, list) != rows:
            found.append((f"/{i}", "tokens are all strings or all rows of columns"))
        elif rows and len(token) != len(sentence[0]):
            found.append((f"/{i}", f"this row has {len(token)} columns, the first one {len(sentence[0])}"))
        else:
            for j, value in enumerate(token if rows else [token]):
                if not isinstance(value, str) or len(value) > MAX_VALUE:
                    found.append(
                        (
                            f"/{i}/{j}" if rows else f"/{i}",
                            f"a value is a string of at most {MAX_VALUE} characters",
                        )
                    )
    return found


_REQUEST: TypeAdapter[PreviewRequest] = TypeAdapter(PreviewRequest)


def parse(body: Any) -> PreviewRequest:
    """Read a request, or raise Invalid with a pointer to each fault."""
    return validated(_REQUEST, body, "The preview")


class Printed(Out):
    """The templates in each syntax that can say them."""

    crfpp: str | None = Field(serialization_alias="crf++", description="As a CRF++ template file.")
    wapiti: str | None = Field(description="As Wapiti patterns.")
    short: Annotated[list[Any] | None, WithJsonSchema({"anyOf": [SCHEMA, {"type": "null"}]})] = Field(
        description="As the list of a spec."
    )


class TemplateCount(Out):
    """What one template makes of a corpus."""

    template: str
    attributes: int = Field(description="Distinct features, those under the cutoff left out.")
    occurrences: int


class Counts(Out):
    """What a corpus would produce."""

    tokens: int
    labels: int
    attributes: int
    parameters: int = Field(description="Weights that training would learn.")
    templates: list[TemplateCount]


class Preview(Out):
    """The features of a sentence."""

    columns: int = Field(description="Columns a token needs.")
    templates: Printed
    edges: bool = Field(description="Whether pairs of labels have weights too.")
    features: list[list[str]] = Field(
        description="For each token, the features by name, a template after another."
    )
    counts: Counts | None = None
