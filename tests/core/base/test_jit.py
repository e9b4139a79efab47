"""The ways to compile a kernel."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tagsmith.core.base.jit import inner, kernel


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
    with pytest.raises(TypeError, match="_doubled can be called by kernels only"):
        _doubled(1.0)


def test_kernels_run_as_plain_python_where_numba_is_told_not_to_compile():
    """The fuzzer sees into them only so."""
    script = (
        "from tagsmith.core.corpus.formats import registry as formats\n"
        "corpus = formats.read([b'a X\\nb Y\\n\\na X\\n'], 'conll', max_line_bytes=9, max_text_bytes=99)\n"
        "print(corpus.offsets.tolist(), corpus.columns[0].vocabulary.strings())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "[0, 2, 3] ['a', 'b']\n"
