import numpy as np
import pytest

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import kernel


@kernel
def _exponentials(source, out):
    for i in range(0, source.size, v.LANES):
        v.store(out, i, v.exp(v.load(source, i)))


@kernel
def _folded(source):
    return v.total(v.load(source, 0))


@kernel
def _thresholded(source, threshold, out):
    limit = v.splat(threshold)
    for i in range(0, source.size, v.LANES):
        v.store(out, i, v.soft(v.load(source, i), limit))


@kernel
def _kept(bits, source, out):
    v.store(out, 0, v.kept(bits[0], v.load(source, 0)))


@kernel
def _squares_flushed(source, out):
    before = v.flush_denormals()
    for i in range(0, source.size, v.LANES):
        x = v.load(source, i)
        v.store(out, i, v.multiply(x, x))
    v.restore_denormals(before)


@pytest.mark.parametrize(
    ("dtype", "low", "high", "error"), [(np.float32, -87, 88, 3e-7), (np.float64, -708, 709, 5e-16)]
)
def test_exp_is_right_to_a_few_units_in_the_last_place(dtype, low, high, error):
    source = np.linspace(low, high, 80_000).astype(dtype)
    out = np.empty_like(source)
    _exponentials(source, out)
    exact = np.exp(source.astype(np.longdouble))
    assert np.max(np.abs(out / exact - 1)) < error


def test_exp_clamps_what_the_type_cannot_hold():
    source = np.array([-1e30, -1000, 1000, 1e30, 0, 0, 0, 0], np.float32)
    out = np.empty_like(source)
    _exponentials(source, out)
    assert np.all(np.isfinite(out))
    assert np.all(out[:2] < 2e-38)
    assert np.all(out[2:4] > 1e38)


def test_lanes_fold_to_their_sum():
    source = np.array([3, -1, 4, 1, -5, 9, 2, 6], np.float64)
    assert _folded(source) == 19.0


def test_soft_threshold_shrinks_and_stops_at_zero():
    source = np.array([3.0, -3.0, 0.5, -0.5, 0.0, 1.0, -1.0, 2.0], np.float32)
    out = np.empty_like(source)
    _thresholded(source, np.float32(1.0), out)
    assert out.tolist() == [2.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_are_kept_where_their_bit_is_set(dtype):
    values, out = np.array([1, -2, np.inf, 4, 5, 6, -7, 8], dtype), v.zeros(8, dtype)
    for bits in range(256):
        _kept(np.array([bits], np.uint8), values, out)
        flags = np.unpackbits(np.array([bits], np.uint8), bitorder="little").astype(bool)
        np.testing.assert_array_equal(out, np.where(flags, values, 0))


def test_denormals_are_flushed_inside_and_kept_outside():
    source = np.full(8, 1e-20, np.float32)
    out = np.empty_like(source)
    _squares_flushed(source, out)
    assert source[0] * source[0] > 0
    assert out[0] in (0.0, source[0] * source[0])  # only x86 flushes


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_zeros_are_aligned_to_cache_lines(size):
    array = v.zeros(size, np.float32)
    assert array.ctypes.data % 64 == 0
    assert not array.any()
    assert len(array) == size
