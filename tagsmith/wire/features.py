"""Previews of features. The request holds a feature spec, which is defined with the code that reads it."""

from typing import Any

from pydantic import AliasChoices, Field

from tagsmith.wire.base import WireResponse


class PrintedTemplates(WireResponse):
    """The templates in each syntax that can express them."""

    crfpp: str | None = Field(
        validation_alias=AliasChoices("crf++", "crfpp"),
        serialization_alias="crf++",
        description="As a CRF++ template file.",
    )
    wapiti: str | None = Field(description="As Wapiti patterns.")
    short: list[str | list[str] | dict[str, Any]] | None = Field(description="As the list of a spec.")


class TemplateOccurrences(WireResponse):
    """What one template produces on a corpus."""

    template: str
    attributes: int = Field(description="Distinct features that reach the cutoff.")
    occurrences: int


class FeatureCounts(WireResponse):
    """What a spec produces on a corpus."""

    tokens: int
    labels: int
    attributes: int
    parameters: int = Field(description="Number of weights to learn.")
    templates: list[TemplateOccurrences]


class FeaturePreview(WireResponse):
    """The features of a sentence."""

    columns: int = Field(description="Number of columns that each token needs.")
    templates: PrintedTemplates
    edges: bool = Field(description="Whether pairs of labels have weights.")
    features: list[list[str]] = Field(
        description="The names of the features of each token, in the order of templates; for trees, of each arc."
    )
    arcs: list[tuple[int, int]] = Field(
        default_factory=list,
        description="For trees: the number of the head (from 1, 0 for the root) and of the word of each arc.",
    )
    counts: FeatureCounts | None = None
