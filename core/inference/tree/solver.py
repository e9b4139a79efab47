"""The tree algorithms behind one function pointer, for kernels that handle sentences of either structure.

Numba copies the machine code of a callee into every kernel that calls it. The tree algorithms are long, and every
trainer has kernels of its own, so linking them would multiply the compile time, also for those who never parse. Kernels
therefore call them by an address that is passed at run time, as a C function.
"""

from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import c_function, inlined
from tagsmith.core.inference.tree.inside_outside import projective_log_z, projective_marginals
from tagsmith.core.inference.tree.matrix_tree import spanning_log_z, spanning_marginals
from tagsmith.core.inference.tree.projective import projective_tree
from tagsmith.core.inference.tree.rules import TreeRules
from tagsmith.core.inference.tree.scratch import Floats, Integers, TreeMemory, divided, memory_for, sizes
from tagsmith.core.inference.tree.spanning import spanning_tree

_BITS = 64
#: The size of views of the memory. `divided` takes no more than there is.
_ENOUGH = 1 << 48


class Task(IntEnum):
    """What to compute."""

    LOG_Z = 0
    MARGINALS = 1  # and log Z
    BEST = 2  # the best tree and its score


class Solver(NamedTuple):
    """Buffers for one tree of up to `longest` words, and the address of the algorithms."""

    scores: (
        Floats  # (N * N,) of n words: (n + 1) * (n + 1), the arc from head h to modifier m at h * (n + 1) + m
    )
    marginals: Floats  # (N * N,) likewise
    heads: Integers  # (N,) of the best tree: -1, then the head of each word
    memory: TreeMemory
    longest: int
    address: int


def solver(longest: int) -> Solver:
    """Allocate buffers for sentences of up to `longest` words."""
    size = (longest + 1) ** 2
    heads = np.zeros(longest + 1, np.int32)
    return Solver(np.zeros(size), np.zeros(size), heads, memory_for(longest), longest, _compiled().address)


class SolverBlock(NamedTuple):
    """The buffers of a solver in one array; empty if there are no trees.

    Kernels of chains pass this from call to call. The arrays of a solver would cost them a sixth of their time.
    """

    block: Floats
    longest: int
    address: int


def solver_block(longest: int) -> SolverBlock:
    """Allocate buffers for sentences of up to `longest` words."""
    return SolverBlock(v.zeros(_ends(longest)[-1], np.float64), longest, _compiled().address)


@cache
def no_solver() -> SolverBlock:
    """Return the solver of chains, which is never called."""
    return SolverBlock(np.empty(0), 0, 0)


def _ends(longest: int) -> tuple[int, int, int, int, int, int]:
    """Return where the parts of a block end: scores, marginals, heads, and the three arrays of the memory."""
    floats, integers, places = sizes(longest)
    matrix, heads = (longest + 1) ** 2, longest // 2 + 1
    first = -(-(2 * matrix + heads) // v.LANES) * v.LANES
    in_integers = first + floats + (integers + 1) // 2
    return matrix, 2 * matrix, first, first + floats, in_integers, in_integers + places


_ends_in_kernels = inlined(_ends)


@inlined
def solver_of(b: SolverBlock) -> Solver:
    """Divide a block into the buffers of a solver."""
    matrix, matrices, heads, floats, integers, places = _ends_in_kernels(b.longest)
    memory = TreeMemory(
        b.block[heads:floats],
        b.block[floats:integers].view(np.int32),
        b.block[integers:places].view(np.int64),
    )
    found = b.block[matrices:heads].view(np.int32)
    return Solver(b.block[:matrix], b.block[matrix:matrices], found, memory, b.longest, b.address)


def solver_bytes(longest: int) -> int:
    """Estimate the memory of a solver."""
    # Scores, marginals, contraction, seven tables of spans, escape, and about 7/3 graphs.
    return 8 * 14 * (longest + 9) ** 2


@inlined
def solve(task: Any, rules: TreeRules, n: Any, s: Solver) -> float:
    """Carry out a task for the scores of n words in `s.scores`; return log Z, or the score of the best tree."""
    code = np.int64(task) * 4 + (2 if rules.projective else 0) + (1 if rules.single_root else 0)
    numbers = (code, np.int64(n), np.int64(s.longest))
    memory = (s.memory.floats, s.memory.integers, s.memory.places)
    return float(_call(s.address, numbers, (s.scores, s.marginals, s.heads, *memory)))


_NUMBERS, _IDS, _PLACES = (types.CPointer(kind) for kind in (types.float64, types.int32, types.int64))
_SIGNATURE = types.float64(
    types.int64, types.int64, types.int64, _NUMBERS, _NUMBERS, _IDS, _NUMBERS, _IDS, _PLACES
)


@cache
def _compiled() -> Any:
    """Compile the algorithms, or load them from the cache."""
    return c_function(_SIGNATURE, _solved)


def _solved(
    code: int, n: int, longest: int, scores: Any, marginals: Any, heads: Any, floats: Any, integers: Any,
    places: Any,
) -> float:  # fmt: skip
    """Carry out a task; `code` is 4 * task + 2 * projective + single root."""
    s = divided(longest, _view(floats, _ENOUGH), _view(integers, _ENOUGH), _view(places, _ENOUGH))
    side, single_root, projective = n + 1, code & 1 != 0, code & 2 != 0
    given, out, found = _matrix(scores, side), _matrix(marginals, side), _view(heads, side)
    task = code >> 2
    if task == Task.BEST:
        if projective:
            return projective_tree(given, single_root, s, found)
        return spanning_tree(given, single_root, s, found)
    if task == Task.MARGINALS:
        if projective:
            return projective_marginals(given, single_root, s, out)
        return spanning_marginals(given, single_root, s, out)
    if projective:
        return projective_log_z(given, single_root, s)
    return spanning_log_z(given, single_root, s)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _view(typing_context: Any, pointer: Any, size: Any) -> Any:
    """Return an array of this size over the memory at a pointer."""
    del typing_context
    array = types.Array(pointer.dtype, 1, "C")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _array(context, builder, signature, arguments[0], [_wide(builder, arguments[1])])

    return array(pointer, size), codegen


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _matrix(typing_context: Any, pointer: Any, side: Any) -> Any:
    """Return a square matrix over the memory at a pointer."""
    del typing_context
    array = types.Array(pointer.dtype, 2, "C")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        side = _wide(builder, arguments[1])
        return _array(context, builder, signature, arguments[0], [side, side])

    return array(pointer, side), codegen


def _wide(builder: Any, value: Any) -> Any:
    """Return an integer as one of 64 bits."""
    return builder.sext(value, ir.IntType(64)) if value.type.width < _BITS else value


def _array(context: Any, builder: Any, signature: Any, data: Any, shape: list[Any]) -> Any:
    """Build a contiguous array that owns no memory."""
    kind = signature.return_type
    array = context.make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides, step = list[Any](), ir.Constant(ir.IntType(64), size)
    for length in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, length)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()  # noqa: SLF001  # as numba's own code does


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _call(typing_context: Any, address: Any, numbers: Any, arrays: Any) -> Any:
    """Call the function at an address with integers, and with the data of arrays."""
    del typing_context
    signature = types.float64(types.int64, numbers, arrays)
    del address

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, numbers, arrays = arguments
        values = [builder.extract_value(numbers, i) for i in range(len(signature.args[1]))]
        for i, kind in enumerate(signature.args[2]):
            array = context.make_array(kind)(context, builder, builder.extract_value(arrays, i))
            values.append(array.data)
        function = ir.FunctionType(ir.DoubleType(), [value.type for value in values])
        return builder.call(builder.inttoptr(address, function.as_pointer()), values)

    return signature, codegen
