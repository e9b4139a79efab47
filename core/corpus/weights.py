"""Weights of sentences: how much each of them counts in training. A sentence without a weight counts 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The range of a weight. A sentence that should not count is left out.
MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e6
#: What is wrong with any other weight.
WEIGHT_REASON = f"a weight is a number from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}"


def is_weight(value: Any) -> bool:
    """Whether a value of JSON is a weight."""
    return type(value) in (int, float) and MIN_WEIGHT <= value <= MAX_WEIGHT


def joined_weights(parts: Sequence[NDArray[np.floating]]) -> NDArray[np.float32] | None:
    """Return the weights of all sentences, or None if all of them are 1."""
    weights = np.concatenate(parts).astype(np.float32)
    return None if (weights == 1).all() else weights
