"""The estimate of memory against what a process really takes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.trainers import memory
from tagsmith.core.learn.trainers.sizes import sizes_of
from tests.core.learn import peaks

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
#: Every trainer, with all pairs of attributes and labels or with those of the data.
CASES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "sgd-l1", "passes": 2}, "all"),
    ({"kind": "sgd", "passes": 2}, "all"),
    ({"kind": "lbfgs", "passes": 14}, "seen"),
    ({"kind": "owlqn", "passes": 14}, "all"),
    ({"kind": "owlqn", "passes": 41}, "seen"),
    ({"kind": "two-stage", "passes": 19}, "seen"),
    ({"kind": "averaged-perceptron", "passes": 2}, "all"),
    ({"kind": "asgd", "passes": 2}, "all"),
    ({"kind": "arow", "passes": 2}, "all"),
    ({"kind": "adf", "passes": 2}, "all"),
    ({"kind": "madf", "passes": 2}, "all"),
    ({"kind": "prox-grad", "passes": 2}, "all"),
]


def spec(trainer: dict[str, Any], pairs: str = "all", **more: Any) -> TrainSpec:
    features = {"preset": "chunking", "pairs": pairs}
    body = {
        "kind": "train",
        "model": "m",
        "corpus": "crp_a",
        "trainer": trainer,
        "features": features,
        **more,
    }
    return TrainSpec.model_validate(body)


def test_the_estimate_is_within_half_of_the_measured_peak_for_every_trainer() -> None:
    # Fixed thresholds: an array that is freed goes back to the system at once, and so counts for its own run only.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "262144"}
    done = subprocess.run(
        [sys.executable, "-m", peaks.__name__, *(spec(*case).model_dump_json() for case in CASES)],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(CASES)
    for (trainer, pairs), (measured, told) in zip(CASES, lines, strict=True):
        found = re.search(r"takes about ([\d,]+) MiB", told)
        assert found is not None
        ratio = int(found[1].replace(",", "")) * MIB / measured
        assert 1 / 1.5 < ratio < 1.5, (
            f"{trainer['kind']}, {pairs} pairs: {told}, took {measured / MIB:.0f} MiB"
        )


def test_what_a_spec_adds_is_counted() -> None:
    corpus = read_conll(generate("references", 300, 1), max_line_bytes=1 << 16)
    problem = compile_corpus(spec({"kind": "owlqn"}).features.resolve(2), corpus).problem
    sizes = sizes_of(problem)
    assert sizes.matrix == 4 * (problem.attributes + len(problem.labels)) * problem.width
    rich = FeatureSpec(templates="U:%x[0,0]\nB1:%x[0,0]").resolve(2)
    edges = compile_corpus(rich, corpus).problem
    labels = len(edges.labels)
    blocks = edges.edge_attributes * labels
    assert sizes_of(edges).matrix == 4 * (edges.attributes + labels + blocks) * edges.width
    assert sizes_of(edges).parameters == (edges.attributes + blocks) * labels
    assert sizes.parameters == (problem.attributes + len(problem.labels)) * len(problem.labels)

    def peak(trainer: dict[str, Any], **more: Any) -> int:
        job = spec(trainer, **more)
        return memory.peak_bytes(
            job.trainer,
            problem,
            threads=job.threads,
            keeps_best=job.dev is not None and job.stop.keeps_best,
            warm=job.init is not None,
        )

    plain = peak({"kind": "owlqn", "memory": 10})
    assert peak({"kind": "owlqn", "memory": 15}) - plain == 10 * sizes.vector
    assert peak({"kind": "owlqn"}, dev={"fraction": 0.1}, stop={"patience": 3}) - plain == sizes.matrix
    assert peak({"kind": "owlqn"}, init="m:1") - plain == sizes.matrix
    # A run may turn to float64 at any tolerance.
    assert peak({"kind": "owlqn", "tolerance": 0.0}) == plain
    assert plain > 31 * sizes.vector + 2 * (sizes.matrix + sizes.marginals * sizes.tokens)
    fixed = {"kind": "sgd-l1", "schedule": {"eta0": 0.5}}
    assert peak({"kind": "sgd-l1"}) - peak(fixed) > sizes.matrix
    assert peak({"kind": "two-stage"}) > plain
