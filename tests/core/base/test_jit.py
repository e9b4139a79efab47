"""The ways to compile a kernel."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tagsmith.core.base import jit
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


def test_an_edit_changes_the_caches_of_the_modules_that_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "part").mkdir()
    sources = {
        "part/below.py": "x = 1\n",
        "part/middle.py": "from tagsmith.core.part.below import (\n    x,\n)\n",
        "above.py": "from tagsmith.core.part import middle as m\n",
        "beside.py": "import numpy\n",
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(jit, "_CORE", tmp_path)

    def caches() -> dict[str, str]:
        jit._imports.cache_clear()
        jit._cache_of.cache_clear()
        return {name: jit._cache_of(tmp_path / name) for name in sources}

    before = caches()
    assert caches() == before
    assert len(set(before.values())) == len(sources)
    (tmp_path / "part/below.py").write_text("x = 2\n")
    changed = {name for name, cache in caches().items() if cache != before[name]}
    assert changed == {"part/below.py", "part/middle.py", "above.py"}
    jit._imports.cache_clear()
    jit._cache_of.cache_clear()
