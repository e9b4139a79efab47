"""The benchmarks of parsing: cells that survive a killed run, the choice of settings, and the tables of the page."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import common, parsing_selection
from benchmarks.parsing import __main__ as parsing
from benchmarks.parsing import cells, page, treebanks, udpipe

CONLLX = """1\ta\ta\tX\tXY\tn=1|id=7\t2\tdep\t_\t_
2\tb\tb\tX\tXY\tn=2|id=8\t0\tROOT\t_\t_
3\tc\tc\tX\tXY\tid=9\t2\tmod\t_\t_

1\tb\tb\tX\tXY\t_\t0\tROOT\t_\t_

"""


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    return tmp_path


def measured(value: int, count: list[int]) -> Callable[[], dict[str, Any]]:
    def measure() -> dict[str, Any]:
        count.append(value)
        return {"value": value}

    return measure


@pytest.mark.usefixtures("results")
def test_a_recorded_cell_is_not_measured_again() -> None:
    count: list[int] = []
    cells.filled("some", ("danish", "mira"), measured(1, count))
    again = cells.filled("some", ("danish", "mira"), measured(2, count))
    assert count == [1]
    assert again["value"] == 1
    assert {"at", "load_average", "commit"} <= set(again["measured"])


def test_a_run_that_was_killed_continues_with_the_next_cell(results: Path) -> None:
    def killed() -> dict[str, Any]:
        raise KeyboardInterrupt

    count: list[int] = []
    cells.filled("some", ("danish", "mira"), measured(1, count))
    with pytest.raises(KeyboardInterrupt):
        cells.filled("some", ("danish", "lasso"), killed)
    assert [path.name for path in results.iterdir()] == ["some.json"]
    cells.filled("some", ("danish", "mira"), measured(1, count))
    cells.filled("some", ("danish", "lasso"), measured(2, count))
    assert count == [1, 2]


@pytest.mark.usefixtures("results")
def test_a_cell_is_added_to_those_that_others_recorded() -> None:
    cells.keep("some", ("danish", "mira"), {"value": 1})
    cells.keep("some", ("turkish", "mira"), {"value": 2})
    cells.keep("some", ("danish", "lasso"), {"value": 3})
    found = cells.read("some")
    assert cells.at(found, "danish", "mira") == {"value": 1}
    assert cells.at(found, "danish", "lasso") == {"value": 3}
    assert cells.at(found, "turkish") == {"mira": {"value": 2}}
    assert cells.at(found, "spanish", "mira") is None


@pytest.mark.usefixtures("results")
def test_a_dropped_cell_is_measured_again_and_the_others_stay() -> None:
    count: list[int] = []
    cells.filled("some", ("danish", "mira"), measured(1, count))
    cells.filled("some", ("danish", "lasso"), measured(2, count))
    cells.drop("some", ("danish", "mira"))
    cells.drop("some", ("danish", "never"))
    cells.filled("some", ("danish", "lasso"), measured(3, count))
    cells.filled("some", ("danish", "mira"), measured(4, count))
    assert count == [1, 2, 4]


def test_the_file_names_the_machine_and_the_versions(results: Path) -> None:
    cells.keep("some", ("danish",), {})
    assert {"cpu", "cores", "packages"} <= set(json.loads((results / "some.json").read_text())["machine"])


def test_the_choice_on_dev_is_the_first_best_pass_of_the_best_trainer() -> None:
    choice = {"averaged-perceptron": {"uas": [70.0, 80.0, 80.5]}, "mira": {"uas": [75.0, 81.0, 81.0, 80.0]}}
    assert parsing.chosen(choice) == {"kind": "mira", "passes": 2}


def test_the_exponent_of_the_cost_is_that_of_the_times() -> None:
    found = parsing.fitted({n: 3.0 * n**2.2 for n in range(4, 60)})
    assert found["exponent"] == pytest.approx(2.2)
    assert found["microseconds_at_25"] == pytest.approx(3 * 25**2.2, rel=1e-3)
    assert found["from_length"] == parsing.FIT_FROM


def test_short_sentences_are_left_out_of_the_exponent() -> None:
    times = {n: 3.0 * n**2 for n in range(1, 60)} | dict.fromkeys(range(1, parsing.FIT_FROM), 1e6)
    assert parsing.fitted(times)["exponent"] == pytest.approx(2.0)


def test_udpipe_gets_the_trees_of_conllx_with_the_relations_it_wants() -> None:
    corpus = treebanks.of_lines(CONLLX.encode(), "conllx")
    lines = treebanks.conllu_of(corpus).splitlines()
    assert lines == [
        "1\ta\ta\tX\tXY\tn=1\t2\tdep\t_\t_",
        "2\tb\tb\tX\tXY\tn=2\t0\troot\t_\t_",
        "3\tc\tc\tX\tXY\t_\t2\tmod\t_\t_",
        "",
        "1\tb\tb\tX\tXY\t_\t0\troot\t_\t_",
        "",
    ]
    assert treebanks.roots_are_single(corpus)
    assert udpipe.options_for(True) == ""


def test_sentences_with_several_roots_keep_their_relations() -> None:
    corpus = treebanks.of_lines(CONLLX.replace("\t2\tmod", "\t0\tmod").encode(), "conllx")
    assert not treebanks.roots_are_single(corpus)
    assert "\t0\tROOT\t" in treebanks.conllu_of(corpus)
    assert udpipe.options_for(False) == "single_root=0"


def test_unusable_relations_are_one_relation_for_udpipe() -> None:
    corpus = treebanks.of_lines(CONLLX.replace("\tmod\t", "\t_\t").encode(), "conllx")
    assert not treebanks.usable(corpus)
    assert "3\tc\tc\tX\tXY\t_\t2\tdep\t_\t_" in treebanks.conllu_of(corpus)


def test_every_tenth_training_sentence_is_held_out() -> None:
    whole = treebanks.of_lines((CONLLX * 15).encode(), "conllx")
    found = treebanks.with_held_out("some", whole, whole)
    assert (found.train.sentences, found.dev.sentences, found.whole.sentences) == (27, 3, 30)
    assert np.diff(found.dev.offsets).tolist() == [1, 1, 1]


def test_rows_of_a_corpus_are_its_columns_by_sentence() -> None:
    rows = treebanks.rows_of(treebanks.of_lines(CONLLX.encode(), "conllx"))
    assert rows[0][2] == ["c", "c", "X", "XY", "_"]
    assert [len(sentence) for sentence in rows] == [3, 1]


@pytest.mark.parametrize("method", parsing_selection.METHODS)
def test_every_cell_of_the_selection_is_a_valid_spec(method: str) -> None:
    for value in parsing_selection.settings(method).values():
        features, trainer = parsing_selection.spec_of(method, value, 400)
        assert (features.preset, features.relations, features.projective) == ("parsing-wide", False, False)
        assert trainer.get("every", 400) == 400


def test_cells_are_ordered_by_language_and_method() -> None:
    found = [name for _, _, name, _ in parsing_selection.wanted(["danish"], ["group lasso", "all"])]
    assert found == ["group lasso, 200", "group lasso, 300", "group lasso, 400", "all"]


def test_large_treebanks_lose_their_long_sentences_then_the_last_ones() -> None:
    most = parsing_selection.MOST_ARCS
    small = np.array([10, 100, 20], np.int64)
    assert parsing_selection.in_memory(small).tolist() == [0, 1, 2]
    large = np.concatenate([small, np.full(most // 40**2, 40)])
    found = parsing_selection.in_memory(large)
    assert found.tolist() == [0, 2, *range(3, found.size + 1)]
    assert most - 40**2 < (large[found] ** 2).sum() <= most


def cell(uas_dev: float, uas_test: float, right: str, features: int = 1_000_000) -> dict[str, Any]:
    return {"uas_dev": uas_dev, "uas_test": uas_test, "features": features, "correct_by_sentence": right}


#: 2 sentences of 4 tokens.
OWN = {
    "group lasso, 200": cell(80.0, 100.0, "4 4"),
    "group lasso, 300": cell(82.0, 75.0, "3 3"),
    "group lasso, 400": cell(82.0, 87.5, "3 4", 2_000_000),
    "information gain, 200": cell(70.0, 50.0, "2 2"),
    "information gain, 300": cell(71.0, 62.5, "2 3"),
    "information gain, 400": cell(72.0, 50.0, "1 3"),
    "lasso, 0.1": cell(79.0, 87.5, "4 3"),
}


def test_the_best_cell_of_a_method_is_chosen_on_dev() -> None:
    assert page.best_on_dev(OWN, "group lasso") == "group lasso, 300"
    assert page.best_on_dev(OWN, "information gain") == "information gain, 400"
    assert page.best_on_dev(OWN, "coarse-to-fine") is None


def test_methods_are_compared_by_the_mean_over_the_budgets() -> None:
    found = page.difference(OWN, "group lasso", "information gain")
    assert found is not None
    mean, half = found
    assert mean == pytest.approx(100 * (21 / 3 - 13 / 3) / 8)
    each = np.array([10 / 3 - 5 / 3, 11 / 3 - 8 / 3])
    assert half == pytest.approx(1.96 * 100 * each.std(ddof=1) * 2**0.5 / 8)
    assert page.difference(OWN, "group lasso", "coarse-to-fine") is None


def test_the_table_has_a_row_for_each_method_that_was_measured() -> None:
    rows = list(page.selected({"danish": OWN}))
    assert [row[:2] for row in rows] == [
        ["Danish", "group lasso"],
        ["Danish", "information gain"],
        ["Danish", "lasso"],
    ]
    assert rows[0][2:] == [
        "100.00 (1.00 M)",
        "75.00 (1.00 M)",
        "87.50 (2.00 M)",
        "300: 75.00 (1.00 M)",
    ]
    assert rows[2][2:] == ["", "", "", "0.1: 87.50 (1.00 M)"]


@pytest.mark.parametrize(("kept", "shown"), [(1, "1/24"), (3, "+ 3/24"), (15, "+ 15/24"), (16, "++ 16/24")])
def test_kinds_of_templates_are_marked_by_the_share_that_survives(kept: int, shown: str) -> None:
    row = {"considered": {"shape": 24}, "kept": {"shape": kept}}
    assert page.mark(row, "shape") == shown


def test_missed_targets_are_on_the_page() -> None:
    row = {"uas": 84.9}
    found = page.verdict({"english": {"tagsmith": row}, "danish": {"tagsmith": {"uas": 85.0}}})
    assert list(found.values()) == [False, True]


def test_the_page_is_up_to_date() -> None:
    if page.PAGE.exists() or cells.read("parsing"):
        assert page.PAGE.read_text(encoding="utf-8") == page.text(), "run python -m benchmarks.parsing.page"
