"""What a model shows of its weights, against a look at every one of them."""

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.model.inspection import FeatureWeight, histogram, top_features, top_transitions
from tagsmith.core.model.model import SparseModel


def _every(model: SparseModel) -> list[FeatureWeight]:
    """Every weight in the order of the arrays, read one by one."""
    out = []
    labels = model.labels
    a = model.attributes
    for i in range(a.size):
        for k in range(int(a.starts[i]), int(a.starts[i + 1])):
            name = model.attribute_name(i)
            out.append(FeatureWeight(name, "", None, labels[a.labels[k]], float(a.weights[k])))
    if model.edges is not None:
        b = model.edges.attributes
        for i in range(b.size):
            for k in range(int(b.starts[i]), int(b.starts[i + 1])):
                before, label = divmod(int(b.labels[k]), len(labels))
                name = model.edge_attribute_name(i)
                out.append(FeatureWeight(name, "", labels[before], labels[label], float(b.weights[k])))
    return out


def _bare(found: list[FeatureWeight]) -> list[tuple[str, str | None, str, float]]:
    return [(each.feature, each.before, each.label, each.weight) for each in found]


def test_pages_list_every_weight_once_the_strongest_first(model: SparseModel) -> None:
    expected = sorted(_every(model), key=lambda each: -abs(each.weight))
    found: list[FeatureWeight] = []
    after = None
    while True:
        part, after = top_features(model, None, None, 997, after)
        found += part
        if after is None:
            break
        assert len(part) == 997
    assert _bare(found) == _bare(expected)


def test_weights_can_be_of_one_label_and_one_template(model: SparseModel) -> None:
    label = model.labels[1]
    template = "UW+0"
    found, rest = top_features(model, label, template, 100_000, None)
    assert rest is None
    expected = [
        each for each in _every(model) if each.label == label and each.feature.startswith(f"{template}:")
    ]
    assert len(found) == len(expected) > 5
    assert {each.template for each in found} == {template}
    assert sorted(_bare(found), key=str) == sorted(_bare(expected), key=str)


def test_transitions_are_those_of_the_matrix(model: SparseModel) -> None:
    found, rest = top_transitions(model, None, None, 3, None)
    assert rest is not None
    assert abs(found[0].weight) == np.abs(model.transitions).max()
    row, _ = top_transitions(model, model.labels[2], None, 1000, None)
    assert len(row) == np.count_nonzero(model.transitions[2])
    column, _ = top_transitions(model, None, model.labels[2], 1000, None)
    assert sorted(each.weight for each in column) == sorted(
        model.transitions[:, 2][model.transitions[:, 2] != 0].tolist()
    )
    assert {each.after for each in column} == {model.labels[2]}


def test_the_histogram_counts_every_weight(model: SparseModel) -> None:
    found = histogram(model, 7)
    assert len(found.bounds) == 8
    assert sum(found.features) == len(model.attributes.weights)
    assert sum(found.edge_features) == (0 if model.edges is None else len(model.edges.attributes.weights))
    assert sum(found.transitions) == np.count_nonzero(model.transitions)


@pytest.mark.parametrize(
    ("label", "template", "after", "code"),
    [
        ("nobody", None, None, "unknown_label"),
        (None, "nobody", None, "unknown_template"),
        (None, None, 10**9, "invalid_cursor"),
    ],
)
def test_what_a_model_has_not_is_refused(
    model: SparseModel, label: str | None, template: str | None, after: int | None, code: str
) -> None:
    with pytest.raises(Invalid) as caught:
        top_features(model, label, template, 5, after)
    assert caught.value.code == code
