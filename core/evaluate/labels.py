"""Warnings about the labels of corpora and models, from which scores would only show that something is wrong."""

from collections.abc import Sequence

#: The label outside of chunks. It is in every set of labels, so it tells none apart.
_OUTSIDE = "O"
#: Labels of each side that a message shows.
_SHOWN = 3


def one_label(labels: Sequence[str]) -> str | None:
    """Return a warning if a corpus has a single label."""
    return (
        None if len(labels) != 1 else f"There is one label only, {labels[0]}: nothing can be learned from it."
    )


def disjoint_labels(
    corpus: Sequence[str], model: Sequence[str], of_corpus: str = "the corpus", of_model: str = "the model"
) -> str | None:
    """Return a warning if a corpus and a model have no label in common, apart from O."""
    own = [label for label in corpus if label != _OUTSIDE]
    if not own or not set(own).isdisjoint(model):
        return None
    known = [label for label in model if label != _OUTSIDE]
    return (
        f"No label of {of_corpus} is among those of {of_model}: {_some(own)} here, {_some(known)} there. "
        "Use the same names and coding."
    )


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:_SHOWN]) + (", ..." if len(labels) > _SHOWN else "") or "none"
