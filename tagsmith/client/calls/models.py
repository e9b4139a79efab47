"""Calls about models and their versions."""

from tagsmith.client.call import (
    Call,
    Pages,
    UploadSource,
    as_bytes,
    as_model,
    as_nothing,
    as_text,
    forced,
    given,
    path_of,
    upload_call,
)
from tagsmith.wire import (
    ModelInfo,
    ModelVersion,
    TemplateInfo,
    TemplateSelection,
    VersionComparison,
    VersionTemplates,
    WeightedFeature,
    WeightedTransition,
    WeightHistogram,
)


def models() -> Pages[ModelInfo]:
    """List all models, newest first."""
    return Pages(ModelInfo, "/models")


def model(name: str) -> Call[ModelInfo]:
    """Get one model."""
    return Call("GET", path_of("models", name), as_model(ModelInfo))


def versions(name: str) -> Pages[ModelVersion]:
    """List the versions of a model, newest first."""
    return Pages(ModelVersion, path_of("models", name, "versions"))


def version(name: str, number: int) -> Call[ModelVersion]:
    """Get one version."""
    return Call("GET", path_of("models", name, "versions", number), as_model(ModelVersion))


def artifact(name: str, number: int) -> Call[bytes]:
    """Get the model file of a version. `Tagger.open` opens it in process."""
    return Call("GET", path_of("models", name, "versions", number, "artifact"), as_bytes)


def import_model(
    name: str,
    artifact: UploadSource,
    format: str | None = None,  # noqa: A002  # the name in the API
    *,
    idempotency_key: str | None = None,
) -> Call[ModelVersion]:
    """Publish a model file, of Tagsmith or of another program, as the next version of a model."""
    path = path_of("models", name, "versions")
    return upload_call(path, ModelVersion, artifact, given(format=format), idempotency_key)


def templates(name: str, number: int) -> Pages[TemplateInfo]:
    """List what a version has of each template; dropped templates come last."""
    return Pages(TemplateInfo, path_of("models", name, "versions", number, "templates"))


def template_selection(name: str, number: int) -> Call[TemplateSelection | None]:
    """Get how the trainer selected the templates of a version; None if it selects none."""
    read = as_model(VersionTemplates)
    path = path_of("models", name, "versions", number, "templates")
    return Call("GET", path, lambda response: read(response).selection)


def template_plot(name: str, number: int) -> Call[str]:
    """Get a plot of the templates of a version as SVG: norms and, if they were selected, the path of the selection."""
    return Call("GET", path_of("models", name, "versions", number, "templates.svg"), as_text)


def features(
    name: str, number: int, *, label: str | None = None, template: str | None = None, top: int = 50
) -> Pages[WeightedFeature]:
    """List the weights of features, strongest first, fetching `top` at a time."""
    path = path_of("models", name, "versions", number, "features")
    return Pages(WeightedFeature, path, given(label=label, template=template, top=top))


def transitions(
    name: str, number: int, *, before: str | None = None, label: str | None = None, top: int = 50
) -> Pages[WeightedTransition]:
    """List the weights of label pairs, strongest first, fetching `top` at a time."""
    path = path_of("models", name, "versions", number, "transitions")
    return Pages(WeightedTransition, path, given(before=before, label=label, top=top))


def weights(name: str, number: int, *, bins: int = 20) -> Call[WeightHistogram]:
    """Get a histogram of the non-zero weights of a version."""
    path = path_of("models", name, "versions", number, "weights")
    return Call("GET", path, as_model(WeightHistogram), {"bins": bins})


def compare_versions(name: str, base: int, head: int, *, top: int = 20) -> Call[VersionComparison]:
    """Get the differences between two versions: metrics, spec, weights."""
    params = {"base": base, "head": head, "top": top}
    return Call("GET", path_of("models", name, "compare"), as_model(VersionComparison), params)


def delete_version(name: str, number: int) -> Call[None]:
    """Delete a version. One that an alias points to cannot be deleted."""
    return Call("DELETE", path_of("models", name, "versions", number), as_nothing)


def delete_model(name: str, *, force: bool = False) -> Call[None]:
    """Delete a model with all its versions. `force` also deletes one that has aliases."""
    return Call("DELETE", path_of("models", name), as_nothing, forced(force=force))
