"""Arrays in the one form kernels are compiled for."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

Bytes = NDArray[np.uint8]
Ids = NDArray[np.int32]
Places = NDArray[np.int64]


def readonly(array: NDArray[Scalar], dtype: type[Scalar]) -> NDArray[Scalar]:
    """A contiguous, aligned, read-only view of `array` (a copy only when it is not so already).

    numba compiles a kernel once more for read-only arguments. Inputs of kernels therefore always pass through
    here: one specialisation serves arrays made in memory and arrays mapped from a model file alike.
    """
    view = np.ascontiguousarray(array, dtype=dtype).view()
    if not view.flags.aligned:
        view = view.copy()
    view.flags.writeable = False
    return view
