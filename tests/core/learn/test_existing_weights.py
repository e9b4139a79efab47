"""Which weights exist, counted by hand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

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
