"""Kernel compilation: the decorators, the fast-math flags and the cache.

Numba's disk cache detects a change in the file of a kernel, but not in the files of the kernels that it calls, and
would keep running the old code. The name of the cache directory therefore contains a digest of all modules with
kernels: an edit to one of them starts a new cache, and an unchanged tree finds its own.

Kernels are compiled without numba's runtime for allocation (NRT): they cannot allocate, and arrays passed between
kernels are not reference-counted. With NRT, atomic counts stay in inner loops that have a branch: an SGD pass over
CoNLL-2000 took 0.42 s with NRT and 0.11 s without.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import njit, types
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Scalar = TypeVar("Scalar", bound=np.generic)

#: Sums may be reordered and multiply-adds fused, so that loops vectorise. NaN and infinity keep their semantics:
#: overflow checks depend on them.
FAST = {"reassoc", "contract", "nsz", "arcp"}
#: Zero as an argument of a kernel. A literal 0 has a type of its own, for which all callees are compiled again.
ZERO: Any = np.int64(0)


def _point_cache_at_sources() -> None:
    here = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(here.rglob("*.py")):
        source = path.read_bytes()
        if b"core.base.jit" in source:
            digest.update(source)
    base = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else here / "__pycache__"
    numba.config.CACHE_DIR = str(base / f"kernels-{digest.hexdigest()[:16]}")


_point_cache_at_sources()


class _Inner(CPUDispatcher):  # type: ignore[misc]  # numba has no types
    """A kernel that Python cannot call, because it has no wrapper that unpacks Python arguments."""

    def __call__(self, *args: object) -> None:
        del args
        raise TypeError(f"{self.py_func.__qualname__} can be called by kernels only.")


def kernel(function: F) -> F:
    """Compile a serial kernel that releases the GIL, with strict floating-point semantics."""
    return cast(F, njit(cache=True, nogil=True, _nrt=False)(function))


def inner(function: F) -> F:
    """Compile a kernel that only kernels call. Without a Python wrapper it compiles faster."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = njit(cache=True, nogil=True, _nrt=False, **options)(function)
    if not numba.config.DISABLE_JIT:  # without the JIT it is the plain function
        compiled.__class__ = _Inner
    return cast(F, compiled)


def inlined(function: F) -> F:
    """Compile a helper that is always inlined into the kernels that call it."""
    return cast(F, njit(cache=True, nogil=True, _nrt=False, forceinline=True)(function))


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def keep_apart(typing_context: Any) -> Any:
    """Called in a kernel: keep it out of its callers, so that its inner loops have the registers to themselves.

    Numba lets a kernel inherit `forceinline` from the caller it was first compiled for, so without this the machine
    code would depend on which trainer was compiled first.
    """
    del typing_context

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature, arguments
        builder.function.attributes.discard("alwaysinline")
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


def fast_kernel(function: F) -> F:
    """Compile a serial kernel that releases the GIL and may reorder sums."""
    return cast(F, njit(cache=True, nogil=True, _nrt=False, fastmath=FAST)(function))


def readonly(array: NDArray[Any], dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return a contiguous, aligned, read-only view; copy the array only if necessary.

    Numba compiles a kernel separately for writable and read-only arrays. Kernels take all inputs read-only, so that
    arrays in memory and arrays mapped from a model file use the same machine code.
    """
    view = np.ascontiguousarray(array, dtype=dtype).view()
    if not view.flags.aligned:
        view = view.copy()
    view.flags.writeable = False
    return view
