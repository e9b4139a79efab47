"""The effect of explicit vectors and of flushing denormals to zero in kernels (decision 0006).

    python -m benchmarks.lanes --data ../shared/data [--rounds 5] [--part chain | denormals]

`chain` times forward-backward with expected transitions, 22 labels and 25 tokens as in CoNLL-2000, compared with scalar
loops that the compiler may vectorise: over the same padded rows, with unit stride and all fast-math flags.
`denormals` times 15 passes of `sgd-l1` over CoNLL-2000 with and without the flush, each run in its own process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from benchmarks import common, learners
from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import kernel
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference.chain import Chain, Edges, Floats

LABELS, TOKENS, CHAINS, PASSES = 22, 25, 50_000, 15


def plain(function: Callable[..., Any]) -> Any:
    """Compile scalar code with all fast-math flags."""
    return njit(nogil=True, fastmath=True, _nrt=False)(function)


@plain
def _plain_exponentiate(c: Chain, n: int, labels: int, width: int) -> None:
    for t in range(n):
        psi = c.psi[t * width : (t + 1) * width]
        top = psi[0]
        for j in range(1, labels):
            top = max(top, psi[j])
        for j in range(labels):
            psi[j] = np.exp(psi[j] - top)
        for j in range(labels, width):
            psi[j] = 0


@plain
def _plain_times(a: Floats, matrix: Floats, labels: int, width: int, out: Floats) -> None:
    for j in range(width):
        out[j] = 0
    for i in range(labels):
        row = matrix[i * width : (i + 1) * width]
        for j in range(width):
            out[j] += a[i] * row[j]


@plain
def _plain_forward(c: Chain, n: int, e: Edges, labels: int, width: int) -> float:
    log_z = 0.0
    for t in range(n):
        psi, alpha = c.psi[t * width : (t + 1) * width], c.alpha[t * width : (t + 1) * width]
        if t == 0:
            for j in range(width):
                alpha[j] = psi[j]
        else:
            _plain_times(c.alpha[(t - 1) * width : t * width], e.forward, labels, width, alpha)
            scale = c.sums.dtype.type(1) / c.sums[t - 1]
            for j in range(width):
                alpha[j] *= psi[j] * scale
        total = c.sums.dtype.type(0)
        for j in range(width):
            total += alpha[j]
        c.sums[t] = total
        log_z += np.log(total)
    return log_z


@plain
def _plain_backward(c: Chain, n: int, e: Edges, labels: int, width: int) -> None:
    one = c.sums.dtype.type(1)
    for t in range(n - 1, -1, -1):
        psi, alpha = c.psi[t * width : (t + 1) * width], c.alpha[t * width : (t + 1) * width]
        beta = c.beta[t * width : (t + 1) * width]
        if t == n - 1:
            for j in range(width):
                beta[j] = one / c.sums[t]
        else:
            _plain_times(c.psi[(t + 1) * width : (t + 2) * width], e.backward, labels, width, beta)
        scale = one / c.sums[t - 1] if t > 0 else one
        for j in range(width):
            psi[j] *= beta[j] * scale
            beta[j] *= alpha[j]


@plain
def _plain_pairs(c: Chain, n: int, e: Edges, labels: int, width: int) -> None:
    for i in range(labels):
        pairs, matrix = c.pairs[i * width : (i + 1) * width], e.forward[i * width : (i + 1) * width]
        for t in range(n - 1):
            after = c.psi[(t + 1) * width : (t + 2) * width]
            for j in range(width):
                pairs[j] += c.alpha[t * width + i] * after[j] * matrix[j]


@plain
def _plain_chains(
    scores: Floats, c: Chain, e: Edges, labels: int, width: int, scored: bool, count: int
) -> float:
    log_z = 0.0
    n = scores.shape[0] // width
    for _ in range(count):
        for k in range(scores.shape[0]):
            c.psi[k] = scores[k]
        if scored:
            _plain_exponentiate(c, n, labels, width)
        log_z += _plain_forward(c, n, e, labels, width)
        _plain_backward(c, n, e, labels, width)
        _plain_pairs(c, n, e, labels, width)
    return log_z


@kernel
def _chains(scores: Floats, c: Chain, e: Edges, labels: int, width: int, scored: bool, count: int) -> float:
    log_z = 0.0
    n = scores.shape[0] // width
    for _ in range(count):
        for k in range(scores.shape[0]):
            c.psi[k] = scores[k]
        if scored:
            ch.exponentiate(c, 0, n, e, 0.0, labels, width)
        log_z += ch.forward(c, 0, n, e, labels, width)
        ch.backward(c, 0, n, e, labels, width)
        ch.add_pairs(c, 0, n, e, labels, width)
    return log_z


def measure_chain(rounds: int) -> dict[str, Any]:
    """Time both ways on the same chain, from scores and from their exponentials, after checking that they agree."""
    width, rng = v.padded(LABELS), np.random.default_rng(1)
    scores = v.zeros(TOKENS * width, np.float32)
    scores[:] = rng.normal(0, 2, len(scores))
    e = ch.edges(LABELS, np.float32)
    e.scores[:] = rng.normal(0, 1, len(e.scores))
    ch.set_edges(LABELS, width, e)
    ways = {"vectors": _chains, "plain loops": _plain_chains}
    chains = {name: ch.chain(TOKENS, LABELS, np.float32) for name in ways}
    for name, way in ways.items():
        way(scores, chains[name], e, LABELS, width, True, 1)
    for ours, other in zip(chains["vectors"], chains["plain loops"], strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-3, atol=1e-6)

    def contender(name: str, potentials: Floats, scored: bool) -> Callable[[], float]:
        arguments = (potentials, chains[name], e, LABELS, width, scored, CHAINS)
        return lambda: common.timed(lambda: ways[name](*arguments))

    result: dict[str, Any] = {"labels": LABELS, "tokens": TOKENS, "chains": CHAINS}
    exponentials = np.exp(scores - scores.reshape(-1, width).max(axis=1).repeat(width))
    exponentials.reshape(-1, width)[:, LABELS:] = 0
    for part, potentials in (("from_scores", scores), ("from_exponentials", exponentials)):
        scored = part == "from_scores"
        seconds = common.alternate({name: contender(name, potentials, scored) for name in ways}, rounds)
        result[part] = common.summary(seconds, "vectors")
    return {**result, "measured": common.moment()}


def one_run(data: Path, flush: bool) -> float:
    """Seconds of training, with every kernel compiled beforehand."""
    if not flush:
        v._X86 = False  # type: ignore[attr-defined] # noqa: SLF001
    train, _ = learners.conll2000(data)
    trainer = {"kind": "sgd-l1", "schedule": {"eta0": 0.5}}
    learners.trained({**trainer, "passes": 1}, FeatureSpec(preset="chunking"), train)
    return learners.trained(
        {**trainer, "passes": PASSES}, FeatureSpec(preset="chunking"), train
    ).train_seconds


def measure_denormals(data: Path, rounds: int) -> dict[str, Any]:
    """Run a variant in its own process and with its own kernel cache, because the machine code differs."""

    def child(way: str, caches: str) -> float:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.lanes", "--data", str(data), "--child", way],
            env={**os.environ, "NUMBA_CACHE_DIR": f"{caches}/{way}"},
            check=True,
            capture_output=True,
        )
        return float(json.loads(done.stdout))

    with tempfile.TemporaryDirectory() as caches:
        ways = {"flushed": lambda: child("flush", caches), "kept": lambda: child("keep", caches)}
        seconds = common.alternate(ways, rounds)
    return {"passes": PASSES, "measured": common.moment(), **common.summary(seconds, "flushed")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--part", choices=["chain", "denormals"])
    parser.add_argument("--child", choices=["flush", "keep"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(one_run(options.data, options.child == "flush")))
        return
    result = common.recorded("lanes")
    if options.part != "denormals":
        result["chain"] = measure_chain(options.rounds)
    if options.part != "chain":
        result["denormals"] = measure_denormals(options.data, options.rounds)
    print(common.record("lanes", result).read_text())


if __name__ == "__main__":
    main()
