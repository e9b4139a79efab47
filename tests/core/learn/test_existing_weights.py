"""Which weights exist, counted by hand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tagsmith.core.features.resolved import ExistingWeights
from tagsmith.core.learn.trainers.sizes import sizes_of
from tagsmith.core.learn.weights.pairs import existing_marks, mask_of, pairs_of
from tests.core.problems import random_problem


@pytest.mark.parametrize("least", [0.0, 2.0])
@pytest.mark.parametrize("seen_transitions", [False, True])
@pytest.mark.parametrize("seen_pairs", [False, True])
def test_weights_exist_for_what_was_seen_often_enough(
    seen_pairs: bool, seen_transitions: bool, least: float
) -> None:
    problem, _ = random_problem(3, labels=4, sentences=6, valued=True)
    problem = replace(problem, existing=ExistingWeights(seen_pairs, seen_transitions, least))
    data, labels = problem.data, len(problem.labels)
    states: Counter[tuple[int, int]] = Counter()
    steps: Counter[tuple[int, int]] = Counter()
    for begin, end in zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True):
        for token in range(begin, end):
            y = int(data.gold[token])
            for k in range(data.starts[token], data.starts[token + 1]):
                states[int(data.rows[k]), y] += float(data.values[k])  # type: ignore[assignment]
            if token > begin:
                steps[int(data.gold[token - 1]), y] += 1

    def exists(counts: Counter[tuple[int, int]], key: tuple[int, int], seen: bool) -> bool:
        return (key in counts or not seen) and (least == 0 or counts[key] >= least)

    expected = np.array(
        [[exists(states, (row, y), seen_pairs) for y in range(labels)] for row in range(problem.attributes)]
        + [[exists(steps, (row, y), seen_transitions) for y in range(labels)] for row in range(labels)]
    )
    np.testing.assert_array_equal(existing_marks(problem), expected)
    assert sizes_of(problem).parameters == len(pairs_of(problem).labels) == np.count_nonzero(expected)
    mask = np.unpackbits(mask_of(problem), bitorder="little")
    assert mask.sum() == (0 if problem.existing.all else np.count_nonzero(expected))


@pytest.mark.parametrize("seen_pairs", [False, True])
def test_of_the_existing_weights_only_the_trainable_ones_are_left(seen_pairs: bool) -> None:
    problem, _ = random_problem(3, labels=4, sentences=6, seen_pairs=seen_pairs, edge_attributes=3)
    chosen = np.random.default_rng(1).random((problem.rows, len(problem.labels))) < 0.5
    expected = existing_marks(problem) & chosen
    limited = replace(problem, trainable=bits_of(chosen, problem.width))
    np.testing.assert_array_equal(existing_marks(limited), expected)
    np.testing.assert_array_equal(mask_of(limited), bits_of(expected, problem.width))
    assert sizes_of(limited).parameters == len(pairs_of(limited).labels) == np.count_nonzero(expected)
    assert problem.has_all_weights == (not seen_pairs)
    assert not limited.has_all_weights


def test_trainable_weights_stay_with_their_attributes() -> None:
    problem, _ = random_problem(3, labels=4, sentences=6, edge_attributes=3)
    chosen = np.random.default_rng(1).random((problem.rows, len(problem.labels))) < 0.5
    limited = replace(problem, trainable=bits_of(chosen, problem.width))
    used, used_edges = np.arange(problem.attributes) % 2 == 0, np.array([False, True, True])
    few = limited.with_attributes(used, used_edges)
    np.testing.assert_array_equal(existing_marks(few), chosen[problem.rows_with(used, used_edges)])
    np.testing.assert_array_equal(existing_marks(few.sample(2)), existing_marks(few))


def bits_of(marks: NDArray[np.bool_], width: int) -> NDArray[np.uint8]:
    """One bit per weight of rows of `width`, the first label in the lowest bit."""
    bits = np.zeros(marks.shape[0] * width // 8, np.uint8)
    for row, label in np.argwhere(marks):
        bits[(row * width + label) // 8] |= 1 << (label % 8)
    return bits
