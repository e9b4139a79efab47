"""What a version has learned: its templates, features, transitions and weights; and how two versions differ."""

from typing import Any

from pydantic import Field

from tagsmith.wire.base import WireResponse


class TemplateInfo(WireResponse):
    """What a version has of one template."""

    name: str
    edge: bool = Field(description="Whether its features are joined with the pair of labels.")
    kept: bool = Field(description="Whether the version has features of it, and computes it when tagging.")
    norm: float = Field(description="L2 norm of its weights.")
    active_features: int = Field(description="Number of weights that are not zero.")
    attributes: int = Field(description="Number of values of the template that have such weights.")
    size_bytes: int = Field(description="Its part of the model file, without vocabularies and empty cells.")
    gain: float | None = Field(
        None, description="Information gain in bits, if templates were selected by it."
    )


class TemplateSelection(WireResponse):
    """How a trainer selected the templates that it kept."""

    path: list[dict[str, Any]] = Field(description="The templates kept after each pass.")
    peak_instantiated: int | None = Field(description="The most features in memory at one time.")
    instantiated_by_pass: list[int]


class VersionTemplates(WireResponse):
    """The templates of a version in the order of the spec, then those that were dropped; and their selection."""

    data: list[TemplateInfo]
    next_cursor: str | None = None
    selection: TemplateSelection | None = Field(description="Null if the trainer selects no templates.")


class WeightedFeature(WireResponse):
    """One weight of a feature, with a label or, if `before` is given, with a pair of labels."""

    feature: str
    template: str
    before: str | None
    label: str
    weight: float


class WeightedTransition(WireResponse):
    """The weight of one label after another."""

    before: str
    after: str
    weight: float


class WeightHistogram(WireResponse):
    """Number of non-zero weights between each two neighbours of `bounds`, by kind of weight.

    Weights of `edge_features` are joined with pairs of labels.
    """

    bounds: list[float]
    features: list[int]
    edge_features: list[int]
    transitions: list[int]


class MetricChange(WireResponse):
    """One metric of two versions; null for a version that does not have it."""

    name: str
    base: float | None
    head: float | None
    change: float | None


class SpecChange(WireResponse):
    """A place where the specs of two versions differ; null for a spec that has nothing there."""

    pointer: str
    base: Any
    head: Any


class ChangedWeight(WireResponse):
    """A weight that differs; 0 for a version that does not have it.

    Without a `feature` it is the weight of a label after another.
    """

    feature: str | None
    before: str | None
    label: str
    base: float
    head: float


class WeightComparison(WireResponse):
    """Number of weights that one version or both have, and those that differ most."""

    base: int
    head: int
    added: int
    removed: int
    changed: int
    unchanged: int
    top: list[ChangedWeight]


class VersionComparison(WireResponse):
    """All differences between two versions of a model."""

    model: str
    base: int
    head: int
    metrics: list[MetricChange]
    spec: list[SpecChange]
    labels_added: list[str]
    labels_removed: list[str]
    weights: WeightComparison
