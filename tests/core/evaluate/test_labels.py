"""Labels of a corpus and of a model that do not fit together."""

import pytest

from tagsmith.core.evaluate.labels import disjoint_labels, one_label


@pytest.mark.parametrize(
    ("corpus", "model", "said"),
    [
        (["PER", "LOC", "O"], ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"], "PER, LOC here, B-PER, I-PER, B-LOC, ..."),
        (["PER"], ["O"], "PER here, none there"),
        (["PER"], ["PER", "LOC"], None),
        (["O"], ["B-PER"], None),
        ([], ["B-PER"], None),
    ],
)  # fmt: skip
def test_labels_without_a_common_one_but_o_are_a_warning(
    corpus: list[str], model: list[str], said: str | None
) -> None:
    warning = disjoint_labels(corpus, model)
    assert warning is None if said is None else said in (warning or "")


def test_a_single_label_is_a_warning() -> None:
    assert one_label(["O"]) == "There is one label only, O: nothing can be learned from it."
    assert one_label(["O", "X"]) is None
