"""Eight-wide vectors inside numba kernels.

Label rows are padded to a multiple of eight, so the inner loop of every kernel is a whole number of vectors. Without
explicit vectors the compiler adds alias checks and remainder loops and keeps accumulators in memory; with them,
forward-backward is about three times as fast (measured in docs/decisions/0006).

A `Vector` is a value of eight float32 or float64 lanes. `load` and `store` take a one-dimensional array and an element
index, and do not check bounds. All operations are deterministic: the order of a horizontal sum is fixed.
"""

# Intrinsics are typed by numba at compile time, and llvmlite has no type information.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator, no-any-return, type-arg"

import mmap
import platform
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from tagsmith.core.base.jit import inlined

_HUGE_PAGE = 1 << 21
_X86 = platform.machine().lower() in ("x86_64", "amd64")

#: Lanes of a vector. Label rows are padded to a multiple of it.
LANES = 8


class Vector(types.Type):
    """Eight lanes of `element`."""

    def __init__(self, element: Any) -> None:
        self.element = element
        super().__init__(name=f"Vector8({element})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Vector) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(_element(fe_type), LANES))


def _element(vector: Vector):
    return ir.FloatType() if vector.element == types.float32 else ir.DoubleType()


def _suffix(vector: Vector) -> str:
    return "v8f32" if vector.element == types.float32 else "v8f64"


def _itemsize(vector: Vector) -> int:
    return 4 if vector.element == types.float32 else 8


def _floating(array: Any) -> bool:
    return isinstance(array, types.Array) and array.dtype in (types.float32, types.float64)


def _constant(builder, vector_type, value: float):
    return ir.Constant(vector_type, [value] * LANES)


def _pointer(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


@intrinsic
def load(typingctx, array, index):
    """Load eight elements, starting at `array[index]`."""
    if not _floating(array):
        return None
    vector = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        vector_type = ir.VectorType(_element(vector), LANES)
        cast = builder.bitcast(pointer, vector_type.as_pointer())
        return builder.load(cast, align=_itemsize(vector))

    return vector(array, types.intp), codegen


@intrinsic
def store(typingctx, array, index, value):
    """Store eight elements, starting at `array[index]`."""
    if not (_floating(array) and isinstance(value, Vector)):
        return None

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        cast = builder.bitcast(pointer, args[2].type.as_pointer())
        builder.store(args[2], cast, align=_itemsize(value))
        return context.get_dummy_value()

    return types.void(array, types.intp, value), codegen


def _splatted(builder, scalar):
    vector_type = ir.VectorType(scalar.type, LANES)
    undefined = ir.Constant(vector_type, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, mask)


@intrinsic
def splat(typingctx, scalar):
    """Return a vector with the scalar in every lane."""
    if scalar not in (types.float32, types.float64):
        return None

    def codegen(context, builder, signature, args):
        return _splatted(builder, args[0])

    return Vector(scalar)(scalar), codegen


@intrinsic
def zero(typingctx, array):
    """Return a vector of zeros with the element type of `array`."""
    if not _floating(array):
        return None
    vector = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        return ir.Constant(ir.VectorType(_element(vector), LANES), [0.0] * LANES)

    return vector(array), codegen


def _binary(build):
    @intrinsic
    def operation(typingctx, a, b):
        if not (isinstance(a, Vector) and a == b):
            return None

        def codegen(context, builder, signature, args):
            return build(builder, *args)

        return a(a, b), codegen

    return operation


add = _binary(lambda builder, a, b: builder.fadd(a, b))
subtract = _binary(lambda builder, a, b: builder.fsub(a, b))
multiply = _binary(lambda builder, a, b: builder.fmul(a, b))
divide = _binary(lambda builder, a, b: builder.fdiv(a, b))
maximum = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
minimum = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))


@intrinsic
def kept(typingctx, bits, value):
    """Return lane i of `value` where bit i of the byte is set, else zero.

    Each lane tests its own bit of the broadcast byte. A bit cast to eight lanes would be shorter here, but on
    processors without mask registers it is compiled to one move per bit.
    """
    if not (bits == types.uint8 and isinstance(value, Vector)):
        return None

    def codegen(context, builder, signature, args):
        integer = ir.IntType(8 * _itemsize(value))
        lanes = ir.VectorType(integer, LANES)
        own = ir.Constant(lanes, [1 << i for i in range(LANES)])
        set_ = builder.and_(_splatted(builder, builder.zext(args[0], integer)), own)
        mask = builder.sext(builder.icmp_unsigned("==", set_, own), lanes)
        return builder.bitcast(builder.and_(builder.bitcast(args[1], lanes), mask), args[1].type)

    return value(bits, value), codegen


def _call(builder, name: str, vector_type, args):
    function_type = ir.FunctionType(vector_type, [vector_type] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), args)


@intrinsic
def fma(typingctx, a, b, c):
    """Return a * b + c, rounded once."""
    if not (isinstance(a, Vector) and a == b == c):
        return None

    def codegen(context, builder, signature, args):
        return _call(builder, f"llvm.fma.{_suffix(a)}", args[0].type, args)

    return a(a, b, c), codegen


@intrinsic
def widened(typingctx, value):
    """Convert eight lanes to float64."""
    if not isinstance(value, Vector):
        return None

    def codegen(context, builder, signature, args):
        if value.element == types.float64:
            return args[0]
        return builder.fpext(args[0], ir.VectorType(ir.DoubleType(), LANES))

    return Vector(types.float64)(value), codegen


@intrinsic
def total(typingctx, value):
    """Return the sum of the lanes, in a fixed tree: 4 pairs four apart, 2 pairs two apart, the last pair."""
    if not isinstance(value, Vector):
        return None

    def codegen(context, builder, signature, args):
        current = args[0]
        for step in (4, 2, 1):
            lanes = ir.Constant(
                ir.VectorType(ir.IntType(32), LANES), [(i + step) % LANES for i in range(LANES)]
            )
            moved = builder.shuffle_vector(current, ir.Constant(current.type, ir.Undefined), lanes)
            current = builder.fadd(current, moved)
        return builder.extract_element(current, ir.Constant(ir.IntType(32), 0))

    return value.element(value), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Prefetch the cache line of `array[index]`."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        flags = [ir.Constant(word, 0), ir.Constant(word, 3), ir.Constant(word, 1)]
        builder.call(function, [builder.bitcast(pointer, byte), *flags])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


#: Bits FTZ and DAZ of the x86 control register: denormal results and denormal operands become zero.
_FLUSH = 0x8040


def _control_register(builder, name: str, slot) -> None:
    function_type = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()])
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.x86.sse.{name}")
    builder.call(function, [builder.bitcast(slot, ir.IntType(8).as_pointer())])


@intrinsic
def flush_denormals(typingctx):
    """Treat denormals as zero on this thread; return the state for `restore_denormals`.

    Marginals of a confident model are often below 1e-38, and some x86 cores are slow with such operands. On the
    machines we measured, denormals did not slow training down (docs/decisions/0006); this precaution costs nothing. On
    other architectures it does nothing.
    """

    def codegen(context, builder, signature, args):
        word = ir.IntType(32)
        slot = cgutils.alloca_once_value(builder, ir.Constant(word, 0))
        if not _X86:
            return builder.load(slot)
        _control_register(builder, "stmxcsr", slot)
        before = builder.load(slot)
        builder.store(builder.or_(before, ir.Constant(word, _FLUSH)), slot)
        _control_register(builder, "ldmxcsr", slot)
        return before

    return types.uint32(), codegen


@intrinsic
def restore_denormals(typingctx, before):
    """Undo `flush_denormals`."""

    def codegen(context, builder, signature, args):
        if _X86:
            _control_register(builder, "ldmxcsr", cgutils.alloca_once_value(builder, args[0]))
        return context.get_dummy_value()

    return types.void(types.uint32), codegen


#: exp(x) = 2^n exp(r), n = rint(x / ln 2), |r| <= 0.347. Error of the series: 1.2e-7 up to r^6, 4e-18 up to r^13.
_LOG2E = 1.4426950408889634


class _Exponential(NamedTuple):
    """Constants of exp for one element type: degree of the series, ln 2 in two parts, range, bit layout."""

    degree: int
    ln2: tuple[float, float]
    low: float
    high: float
    bits: int
    bias: int
    shift: int


_SINGLE = _Exponential(6, (0.693359375, -2.12194440e-4), -87.0, 88.0, 32, 127, 23)
_DOUBLE = _Exponential(
    13, (6.93147180369123816490e-01, 1.90821492927058770002e-10), -708.0, 709.0, 64, 1023, 52
)


@intrinsic
def exp(typingctx, value):
    """Return e to the power of each lane, clamped to the range of the type; NaN is not preserved."""
    if not isinstance(value, Vector):
        return None
    plan = _SINGLE if value.element == types.float32 else _DOUBLE
    suffix = _suffix(value)

    def codegen(context, builder, signature, args):
        vector_type = args[0].type

        def constant(number):
            return _constant(builder, vector_type, number)

        x = args[0]
        x = builder.select(builder.fcmp_ordered(">", x, constant(plan.low)), x, constant(plan.low))
        x = builder.select(builder.fcmp_ordered("<", x, constant(plan.high)), x, constant(plan.high))
        n = _call(builder, f"llvm.rint.{suffix}", vector_type, [builder.fmul(x, constant(_LOG2E))])
        high, low = plan.ln2
        r = _call(builder, f"llvm.fma.{suffix}", vector_type, [n, constant(-high), x])
        r = _call(builder, f"llvm.fma.{suffix}", vector_type, [n, constant(-low), r])
        factorial, coefficients = 1.0, [1.0]
        for i in range(1, plan.degree + 1):
            factorial *= i
            coefficients.append(1.0 / factorial)
        series = constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            series = _call(builder, f"llvm.fma.{suffix}", vector_type, [series, r, constant(coefficient)])
        integer = ir.VectorType(ir.IntType(plan.bits), LANES)
        exponent = builder.add(builder.fptosi(n, integer), ir.Constant(integer, [plan.bias] * LANES))
        power = builder.bitcast(
            builder.shl(exponent, ir.Constant(integer, [plan.shift] * LANES)), vector_type
        )
        return builder.fmul(series, power)

    return value(value), codegen


@inlined
def soft(value: Any, threshold: Any) -> Any:
    """Soft threshold: reduce the magnitude of `value` by `threshold` (a vector, not negative), at most to zero."""
    return subtract(
        value, maximum(minimum(value, threshold), subtract(subtract(threshold, threshold), threshold))
    )


def padded(labels: int) -> int:
    """Return the row width for this number of labels."""
    return -(-labels // LANES) * LANES


def zeros(shape: int, dtype: Any) -> "np.ndarray":
    """Allocate zeroed memory that is aligned to a cache line, so that no vector straddles two lines.

    Weights are read in random order. Large arrays use huge pages; otherwise page walks take most of the time.
    """
    size = shape * np.dtype(dtype).itemsize
    if size < _HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        raw = np.zeros(size + 64, np.uint8)
        skip = -raw.ctypes.data % 64
    else:
        region = mmap.mmap(-1, size + _HUGE_PAGE)
        region.madvise(mmap.MADV_HUGEPAGE)
        raw = np.frombuffer(region, np.uint8)
        skip = -raw.ctypes.data % _HUGE_PAGE
    return raw[skip : skip + size].view(dtype)
