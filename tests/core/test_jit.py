"""The ways to compile a kernel."""

import numpy as np
import pytest

from core.jit import inner, kernel


@inner
def _doubled(x):
    return 2.0 * x


@kernel
def _sum_doubled(values):
    total = 0.0
    for i in range(values.shape[0]):
        total += _doubled(values[i])
    return total


def test_what_is_for_kernels_alone_refuses_python():
    assert _sum_doubled(np.arange(4.0)) == 12.0
    with pytest.raises(TypeError, match="_doubled is for kernels alone"):
        _doubled(1.0)
