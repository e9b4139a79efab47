"""How kernels are compiled: one decorator, one set of floating-point liberties, one cache.

Numba's disk cache notices a change in the file a kernel stands in, but not in the files of the kernels it calls, and
would go on running the old code. The cache directory is therefore named after the content of every module of `core`:
any edit starts a fresh one, and an unchanged tree always finds its own.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import njit

F = TypeVar("F", bound=Callable[..., Any])

#: Sums may be reordered and multiply-adds fused, so that loops vectorise. NaN and infinity keep their meaning:
#: overflow checks rely on it.
FAST = {"reassoc", "contract", "nsz", "arcp"}


def _point_cache_at_sources() -> None:
    here = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(here.rglob("*.py")):
        digest.update(path.read_bytes())
    base = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else here / "__pycache__"
    numba.config.CACHE_DIR = str(base / f"kernels-{digest.hexdigest()[:16]}")


_point_cache_at_sources()


def kernel(function: F) -> F:
    """Compile a serial kernel that releases the GIL, strict in its floating point."""
    return cast(F, njit(cache=True, nogil=True)(function))


def fast_kernel(function: F) -> F:
    """Compile a serial kernel that releases the GIL and may reorder sums."""
    return cast(F, njit(cache=True, nogil=True, fastmath=FAST)(function))
