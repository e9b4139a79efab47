"""Two models compared by the names of their weights."""

from pathlib import Path

from tagsmith.core.model.difference import WeightChange, weight_difference
from tagsmith.core.model.importing import import_model
from tagsmith.core.model.model import SparseModel
from tests.core.model.forging import rich_model, words_model
from tests.core.model.strings import StringCrf


def _model(folder: Path, name: str, crf: StringCrf) -> SparseModel:
    (folder / name).write_text(crf.crfpp())
    return import_model(folder / name, folder / f"{name}.model").model


def test_weights_are_matched_by_name_and_told_by_the_size_of_their_change(tmp_path: Path) -> None:
    lines = ["U:%x[0,0]", "B", "B1:%x[0,0]"]
    pairs = {"B": [0.0, 1.0, 2.0, 0.0], "B1:a": [0.0, 0.0, 0.0, 3.0]}
    base = StringCrf(["A", "B"], lines, {"U:a": [1.0, 2.0], "U:b": [0.75, 0.0]}, pairs)
    # Other numbers of the same labels and words, another label, and some weights changed.
    head = StringCrf(
        ["C", "B", "A"],
        lines,
        {"U:c": [4.0, 0.0, 0.0], "U:a": [0.0, -7.0, 1.0]},
        {"B": [0.0, 0.0, 0.0, 0.0, 0.0, 2.5, 0.0, 1.0, 0.0], "B1:a": [0, 0, 0, 0, 3.0, 0, 0, 0, 0]},
    )
    found = weight_difference(_model(tmp_path, "base", base), _model(tmp_path, "head", head), 3)
    assert (found.base, found.head) == (6, 6)
    assert (found.added, found.removed, found.changed, found.unchanged) == (1, 1, 2, 3)
    assert found.top == [
        WeightChange("U:a", None, "B", 2.0, -7.0),
        WeightChange("U:c", None, "C", 0.0, 4.0),
        WeightChange("U:b", None, "A", 0.75, 0.0),
    ]
    rest = weight_difference(_model(tmp_path, "base", base), _model(tmp_path, "head", head), 10).top[3:]
    assert rest == [WeightChange(None, "B", "A", 2.0, 2.5)]


def test_a_model_does_not_differ_from_itself_and_wholly_from_another() -> None:
    for model in (rich_model(), words_model()):
        same = weight_difference(model, model, 5)
        assert (same.added, same.removed, same.changed, same.top) == (0, 0, 0, [])
        assert same.unchanged == same.base == same.head > 20
    other = weight_difference(rich_model(), words_model(), 5)
    assert other.added == other.head
    assert other.removed == other.base
    assert len(other.top) == 5
