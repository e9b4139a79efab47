"""Kernel compilation: the decorators, the fast-math flags and the cache.

Numba's disk cache detects a change in the file of a kernel, but not in the files of the kernels that it calls, and
would keep running the old code. Each module with kernels therefore has a cache directory of its own, whose name
contains a digest of the module and of all modules that it imports: an edit starts a new cache for the kernels that may
depend on it, and an unchanged tree finds its own.

Kernels are compiled without numba's runtime for allocation (NRT): they cannot allocate, and arrays passed between
kernels are not reference-counted. With NRT, atomic counts stay in inner loops that have a branch: an SGD pass over
CoNLL-2000 took 0.42 s with NRT and 0.11 s without.
"""

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import cfunc, njit, types
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


#: The folder of `tagsmith.core`, and the caches of all its modules.
_CORE = Path(__file__).resolve().parents[1]
_CACHES = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else _CORE / "__pycache__"
_IMPORT = re.compile(r"^\s*from tagsmith\.core\.([\w.]+) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Return the files of the modules of `core` that a module imports."""
    found = set[Path]()
    for module, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        base = _CORE.joinpath(*module.split("."))
        parts = [base, *(base / name for name in re.findall(r"\w+", names))] if base.is_dir() else [base]
        found.update(file for part in parts if (file := part.with_suffix(".py")).is_file())
    return tuple(sorted(found))


@cache
def _cache_of(path: Path) -> str:
    """Return the cache directory of the kernels of a module."""
    known, new = {path}, [path]
    while new:
        new = [each for each in _imports(new.pop()) if each not in known] + new
        known.update(new)
    digest = hashlib.sha256(numba.__version__.encode())
    for each in sorted(known):
        digest.update(each.read_bytes())
    return str(_CACHES / f"kernels-{digest.hexdigest()[:16]}")


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a kernel, cached by the sources that it may depend on."""
    # Numba reads the setting when it decorates a function.
    numba.config.CACHE_DIR = _cache_of(Path(function.__code__.co_filename).resolve())
    return njit(cache=True, nogil=True, _nrt=False, **options)(function)


def c_function(signature: Any, function: Callable[..., Any]) -> Any:
    """Compile a kernel at once, as a C function of pointers and numbers. Keep the result: it owns the machine code."""
    numba.config.CACHE_DIR = _cache_of(Path(function.__code__.co_filename).resolve())
    return cfunc(signature, cache=True, _nrt=False)(function)


class _Inner(CPUDispatcher):  # type: ignore[misc]  # numba has no types
    """A kernel that Python cannot call, because it has no wrapper that unpacks Python arguments."""

    def __call__(self, *args: object) -> None:
        del args
        raise TypeError(f"{self.py_func.__qualname__} can be called by kernels only.")


def kernel(function: F) -> F:
    """Compile a serial kernel that releases the GIL, with strict floating-point semantics."""
    return cast(F, _compiled(function))


def inner(function: F) -> F:
    """Compile a kernel that only kernels call. Without a Python wrapper it compiles faster."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = _compiled(function, **options)
    if not numba.config.DISABLE_JIT:  # without the JIT it is the plain function
        compiled.__class__ = _Inner
    return cast(F, compiled)


def inlined(function: F) -> F:
    """Compile a helper that is always inlined into the kernels that call it."""
    return cast(F, _compiled(function, forceinline=True))


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
    return cast(F, _compiled(function, fastmath=FAST))


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
